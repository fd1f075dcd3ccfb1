"""A theorem on its default instance at every combination of some of its fields."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Generator

from brittle.common.errors import require
from brittle.common.kinds import kinds_checked
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result
from brittle.theorems.base import Theorem
from brittle.theorems.check import Verdict, check_default
from brittle.theorems.comparison import Comparison
from brittle.theorems.judgement import Outcome

ROUNDING = 1e-5


@dataclass(frozen=True)
class Case(Result):
    """One combination of a sweep.

    `values` are those of the fields, by name. `verdict` is what became of the theorem there; None where there is no
    such instance, for the reason that is the `problem`.

    Examples:
        >>> import torch
        >>> from brittle.theorems import find, sweep
        >>> case = sweep(find("vardi2022/3.1"), {"dim": [50]}, torch.Generator().manual_seed(0))[0]
        >>> case.values, case.outcome
        ({'dim': 50}, 'confirmed')
    """

    values: Mapping[str, Any]
    verdict: Verdict | None
    problem: str = ""

    @property
    def outcome(self) -> str:
        """The verdict in one word."""
        return "impossible" if self.verdict is None else self.verdict.verdict.value

    @property
    def hypothesis(self) -> Comparison | None:
        """The one that fails by most, or else holds by least, beside its threshold."""
        return None if self.verdict is None else _tightest(self.verdict.hypotheses)

    @property
    def conclusion(self) -> Comparison | None:
        """The same of the promises; those outside the theorem where a hypothesis fails."""
        return None if self.verdict is None else _tightest(self.verdict.bound or self.verdict.beyond)


def _tightest(comparisons: Sequence[Comparison]) -> Comparison | None:
    return min(comparisons, key=_looseness, default=None)


def _looseness(comparison: Comparison) -> tuple[bool, float]:
    """Slacks have units of their own, so they count beside the threshold; what is 0 but for rounding comes last."""
    rounding = comparison.holds and abs(comparison.threshold) <= ROUNDING
    relative = math.inf if rounding else comparison.slack / max(abs(comparison.threshold), ROUNDING)
    return comparison.holds, relative


def combinations(theorem: Theorem, axes: Mapping[str, Sequence[Any]]) -> list[tuple[dict[str, Any], Theorem]]:
    """The theorem at every combination of these values, the last field varying fastest."""
    for name, values in axes.items():
        require(len(values) > 0, f"no value of {name} is given")
    rows = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    return [(row, replace(theorem, **row)) for row in rows]  # type: ignore[type-var]


@kinds_checked
def sweep(
    theorem: Theorem, axes: Mapping[str, Sequence[Any]], rng: Generator, *, beyond: bool = True, watch: Watch = silent
) -> tuple[Case, ...]:
    """Every combination begins with the randomness of `rng` as it is: each row can be had again by itself.

    Examples:
        >>> import torch
        >>> from brittle.theorems import find, sweep
        >>> cases = sweep(find("vardi2022/3.1"), {"dim": [50, 100]}, torch.Generator().manual_seed(0))
        >>> [(case.values["dim"], case.outcome) for case in cases]
        [(50, 'confirmed'), (100, 'confirmed')]
    """
    cases, rows, state = list[Case](), combinations(theorem, axes), rng.get_state()
    for values, statement in rows:
        cases.append(_case(values, statement, torch.Generator().set_state(state), beyond))
        watch(Progress(len(cases) / len(rows), f"{len(cases)} of {len(rows)}"))
    return tuple(cases)


def _case(values: Mapping[str, Any], theorem: Theorem, rng: Generator, beyond: bool) -> Case:
    try:
        return Case(values, check_default(theorem, rng, beyond=beyond))
    except (ValueError, ArithmeticError) as error:  # sizes that have no instance
        return Case(values, None, str(error) or type(error).__name__)


def violated(cases: Sequence[Case]) -> bool:
    """Whether a claim did not hold somewhere although its hypotheses do."""
    return any(case.verdict is not None and case.verdict.verdict is Outcome.VIOLATED for case in cases)
