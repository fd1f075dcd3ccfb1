"""What an audit found: the verdict and everything it rests on."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor

from brittle.auditing.budget import WorkBudget
from brittle.auditing.causes import Evidence, WeaknessShares
from brittle.auditing.change import Change, compare_audits
from brittle.auditing.costs import AuditPlan
from brittle.auditing.geometry import Geometry, NearestNeighbourLimit
from brittle.auditing.pieces import select_audited_data
from brittle.auditing.regime import KKT_RESIDUAL, LAZY_MOVE, TrainingRegime
from brittle.auditing.treatment import RemedyResult
from brittle.auditing.verdict import AS_GOOD, COSTLY, DOUBTS, WEAK_MARGIN, causes, complete, off_subspace_cost
from brittle.auditing.vulnerability import Vulnerability
from brittle.common.errors import InputError, require
from brittle.common.result import Result, frame, short, tabular
from brittle.common.time_limit import TimeLimitReached
from brittle.data import Data
from brittle.networks import Network
from brittle.theorems import CheckOutcome, Comparison, Instance, Theorem, check_instance, find

# The statements about a given network on given data; the lemmas and the laws of random draws are left to `check`.
HEADLINES = (
    "vardi2022/4.1",
    "vardi2022/C4.1",
    "vardi2022/3.1",
    "frei2023/A2.2",
    "frei2023/3.1",
    "frei2023/4.1",
    "frei2023/4.2",
    "melamed2023/4.1",
    "melamed2023/5.1",
    "melamed2023/6.1",
    "wang2022/B.5",
    "wang2022/B.7",
    "wang2022/3.1",
)


@dataclass(frozen=True)
class TheoremRow(Result):
    """`applies`: every hypothesis holds; otherwise `obstacle` is the first that fails, or why none can be measured.

    `hypotheses` are all of them with what was measured, none where they cannot be.
    """

    id: str
    claim: str
    applies: bool
    verdict: str
    obstacle: str
    slack: float | None
    predicted: tuple[Comparison, ...]
    hypotheses: tuple[Comparison, ...]


def applicable(instance: Instance, budget: WorkBudget) -> tuple[TheoremRow, ...]:
    """One row per statement, those that apply first; fewer rows where the time limit came first."""
    rows: list[TheoremRow] = []
    for name in HEADLINES:
        if budget.late:
            break
        try:
            rows.append(_row(find(name), instance))
        except TimeLimitReached:
            break
    return tuple(sorted(rows, key=lambda row: not row.applies))


def _row(theorem: Theorem, instance: Instance) -> TheoremRow:
    try:
        verdict = check_instance(theorem, instance)
    except InputError as error:
        return TheoremRow(theorem.id, theorem.claim, False, "not_applicable", str(error), None, (), ())
    failed = [hypothesis for hypothesis in verdict.hypotheses if not hypothesis.holds]
    obstacle = str(failed[0]) if failed else ""
    slack = failed[0].slack if failed else None
    applies = verdict.verdict is not CheckOutcome.HYPOTHESES_FAIL
    outcome, promised = verdict.verdict.value, verdict.bound
    return TheoremRow(theorem.id, theorem.claim, applies, outcome, obstacle, slack, promised, verdict.hypotheses)


# The causes of a weakness with what was measured of each, named or not: what a picture of them needs.


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


@dataclass(frozen=True, eq=False)
class Audit(Result):
    """The `verdict` in words and everything it rests on.

    `weaknesses` are the named mechanisms, the likeliest cause first; `network` describes what was audited,
    `geometry` its data, `regime` how it was trained, as far as that shows. `vulnerability` holds the radii,
    attacked and certified, `limit` what the data allow (None for one class), `explanation` where the flips point,
    `evidence` what else tells causes apart, `theorems` what each paper says here, `remedies` what each changes. The
    `plan` says what was to be done for the `budget`, `work` how much of it was spent; both are counted in seconds
    of a nominal machine, on which a pass takes `speed` times as long as its operations. `partial` names what the time
    limit cut short: only an audit where nothing was is reproducible, with the same speed. It took `seconds`. `model`
    and `data` are what was audited, as the audit saw it.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> found = bt.audit(bt.networks.orthogonal_kkt(data.X, data.y).network, data, budget=1, remedies="none")
        >>> found.reproducible, found.network["kind"]
        (True, 'two-layer ReLU network')
    """

    verdict: str
    weaknesses: tuple[str, ...]
    network: dict[str, Any]
    geometry: Geometry
    regime: TrainingRegime
    vulnerability: Vulnerability
    limit: NearestNeighbourLimit | None
    explanation: WeaknessShares
    evidence: Evidence
    theorems: tuple[TheoremRow, ...]
    remedies: tuple[RemedyResult, ...]
    plan: AuditPlan
    speed: float
    partial: tuple[str, ...]
    work: float
    budget: float
    seconds: float
    model: Network
    data: Data

    def report(self, path: str | Path, title: str = "", since: "Audit | None" = None) -> None:
        """Write the page: one HTML file with everything in it. `title` is its heading; `since` is compared with."""
        require(Path(path).suffix.lower() == ".html", f"{path}: the page is HTML; choose a name like audit.html")
        kind = self.network["kind"]
        page = import_module("brittle.report")  # the room that draws is below this one, and nothing here needs it
        other = None if since is None else ("the other one", since.to_json())
        page.write_audit_page(self, self.model, self.data, path, title or f"Audit of a {kind}", None, other)

    def change(self, since: "Audit") -> Change:
        """What is different from another audit, such as that of an earlier network on the same data."""
        return compare_audits(since.to_json(), self.to_json())

    def by_example(self) -> dict[str, Any]:
        """Of every audited example: its place in the data, its label, its radii by method, None where not reached."""
        weak, rows = self.vulnerability, self.vulnerability.examples
        y = select_audited_data(self.data, weak.held_out).y[rows].tolist()
        columns: dict[str, Any] = {"example": rows.tolist(), "label": [self.class_name(label) for label in y]}
        for name in ("free", "on", "off", "gradient_step"):
            radii = getattr(weak, name)
            if radii is not None:
                columns[name] = _spread(radii.rows, radii.norms.tolist(), len(rows))
        if weak.certified is not None:
            proofs = weak.certified
            named = {"lower": proofs.lower.tolist(), "upper": proofs.upper.tolist(), "status": proofs.status}
            columns |= {name: _spread(proofs.rows, values, len(rows)) for name, values in named.items()}
        return columns

    def class_name(self, label: float) -> Any:
        """What the data call this label; the label itself where they do not say."""
        names = self.data.truth.names
        if self.data.binary and label == 0:
            return "undecided"
        return label if names is None else names[int((label + 1) / 2 if self.data.binary else label)]

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """All causes that were looked for with their measures, the named ones first."""
        return mechanisms(self)

    def remedy_frame(self) -> Any:
        """A pandas DataFrame with a row for every remedy."""
        return frame([each.plain() for each in self.remedies])

    def to_latex(self) -> str:
        """A tabular with the rules of booktabs: the median of every kind of radius, and how many it rests on."""
        weak = self.vulnerability
        radii = {"anywhere": weak.free, "on the subspace": weak.on, "off it": weak.off, "one step": weak.gradient_step}
        rows = [[name, short(each.median), str(len(each.rows))] for name, each in radii.items() if each is not None]
        if weak.certified is not None:
            rows.append(["proved", short(weak.certified.median_lower), str(len(weak.certified.rows))])
        return tabular(("radius", "median", "examples"), rows, "lrr")

    @property
    def reproducible(self) -> bool:
        """The same seed and speed give the same audit, however busy the machine is."""
        return not self.partial

    def content(self) -> dict[str, Any]:
        """Everything but the network and the data themselves, with the word on whether it is reproducible."""
        content = {name: value for name, value in super().content().items() if name not in ("model", "data")}
        return {**content, "mechanisms": self.mechanisms, "reproducible": self.reproducible}

    def remedy(self, name: str) -> RemedyResult:
        for treatment in self.remedies:
            if treatment.name == name:
                return treatment
        raise InputError(f"the audit tried no remedy {name!r}; it tried {[each.name for each in self.remedies]}")


def _spread(rows: Tensor, values: Sequence[Any], count: int) -> list[Any]:
    """The values at their rows, None elsewhere."""
    known = dict(zip(rows.tolist(), values, strict=True))
    return [known.get(row) for row in range(count)]
