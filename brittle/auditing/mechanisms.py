"""The causes of a weakness with what was measured of each, named or not: what a picture of them needs."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brittle.auditing.instance import KKT_RESIDUAL
from brittle.auditing.regime import LAZY_MOVE, TrainingRegime
from brittle.auditing.verdict import AS_GOOD, COSTLY, DOUBTS, WEAK_MARGIN, causes, complete, off_subspace_cost
from brittle.auditing.vulnerability import Vulnerability
from brittle.common.result import Result

if TYPE_CHECKING:
    from brittle.auditing.found import Audit

KKT_DECADES = 6  # of its residual on the scale


@dataclass(frozen=True)
class Mechanism(Result):
    """One cause by its `name`: `named` where the audit names it, with its `sentence`.

    `measure` says what the `value` is, None where it was not measured; beyond the `threshold`, from the `harmless` end
    of the scale towards the `worst`, the cause is named. `factor` is what it costs in radii, or None, `of` of what.

    >>> from brittle.auditing import Mechanism
    >>> named = Mechanism("one direction", "universality", 0.9, 0.8, 0.0, 1.0, None, "", True, "It flips all.")
    >>> named.strength
    0.9
    """

    name: str
    measure: str
    value: float | None
    threshold: float
    harmless: float
    worst: float
    factor: float | None
    of: str
    named: bool
    sentence: str

    @property
    def strength(self) -> float | None:
        """Where the value lies on the scale from 0, harmless, to 1, the worst."""
        return None if self.value is None else self._place(self.value)

    @property
    def mark(self) -> float:
        """Where the threshold lies on it."""
        return self._place(self.threshold)

    def _place(self, value: float) -> float:
        share = (value - self.harmless) / (self.worst - self.harmless)
        return min(1.0, max(0.0, share))

    def content(self) -> dict[str, Any]:
        """The fields, with the two places on the scale."""
        return {**super().content(), "strength": self.strength, "mark": self.mark}


def mechanisms(found: "Audit") -> tuple[Mechanism, ...]:
    """All that were looked for: the named ones first, the others by how near they are to being named."""
    said = causes(found.geometry, found.regime, found.vulnerability, found.explanation, found.evidence, found.limit)
    rows = [Mechanism(*row, bool(said[row[0]]), said[row[0]]) for row in _measured(found)]
    return tuple(sorted(rows, key=lambda row: (not row.named, 0.0 if row.named else row.mark - (row.strength or 0.0))))


def _measured(found: "Audit") -> Iterator[tuple[str, str, float | None, float, float, float, float | None, str]]:
    """Name, measure, value, threshold, harmless and worst end, factor and what it is of."""
    weak, tells, regime = found.vulnerability, found.evidence, found.regime
    yield (
        "doubtful labels", "training examples whose neighbours agree on another class",
        tells.doubtful_share, DOUBTS, 0.0, 4 * DOUBTS,
        tells.allowed_gain, "what the data would allow without them, over what they allow",
    )  # fmt: skip
    cost = off_subspace_cost(weak)
    yield (
        "off-subspace weights", "median radius on the data's subspace, over that anywhere",
        cost, COSTLY, 1.0, 2.0,
        cost, "the radius without them, over the radius",
    )  # fmt: skip
    yield (
        "stopped early", "margin that a tenth of the examples miss, over the median; the bar grows as it falls",
        tells.weakest_margins, WEAK_MARGIN, 1.0, 0.0,
        None, "",
    )  # fmt: skip
    yield (
        "lazy training", "how far training moved the first layer, or its ReLUs' signs; the bar grows as it falls",
        _moved(regime), LAZY_MOVE, 1.0, 0.0,
        _one_step(weak), "one gradient step, over the shortest flip",
    )  # fmt: skip
    alone = tells.one_direction
    yield (
        "one direction", "median radius, over the size at which one direction flips half of the examples",
        alone, AS_GOOD, 0.0, 1.0,
        None if not alone else 1 / alone, "one direction for half of the examples, over each one's own",
    )  # fmt: skip
    yield (
        "KKT point", "distance ε from a KKT point; the bar grows with every power of ten that ε falls",
        _decades(regime.kkt_residual), _decades(KKT_RESIDUAL) or 0.0, 0.0, -float(KKT_DECADES),
        None, "",
    )  # fmt: skip


def _moved(regime: TrainingRegime) -> float | None:
    if regime.relative_move is None or regime.signs_changed is None:
        return None
    return max(regime.relative_move, regime.signs_changed)


def _one_step(weak: Vulnerability) -> float | None:
    step, shortest = weak.gradient_step, weak.free
    known = complete(step, shortest) and 0 < shortest.median < math.inf and step.median < math.inf
    return step.median / shortest.median if known else None


def _decades(residual: float | None) -> float | None:
    return None if residual is None else math.log10(max(residual, 10.0**-KKT_DECADES))
