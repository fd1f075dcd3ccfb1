"""A theorem over many draws of its default instance: how often does the promise fail?"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Generator

from brittle.common.errors import require, require_count
from brittle.common.kinds import check_kinds
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result
from brittle.theorems.base import Failures, Theorem
from brittle.theorems.check import CheckResult, check_default
from brittle.theorems.comparison import Comparison
from brittle.theorems.helpers import clopper_pearson
from brittle.theorems.judgement import CheckOutcome

ROUNDING = 1e-5


@dataclass(frozen=True)
class SweepCase(Result):
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
    verdict: CheckResult | None
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


@check_kinds
def sweep(
    theorem: Theorem, axes: Mapping[str, Sequence[Any]], rng: Generator, *, beyond: bool = True, watch: Watch = silent
) -> tuple[SweepCase, ...]:
    """Every combination begins with the randomness of `rng` as it is: each row can be had again by itself.

    Examples:
        >>> import torch
        >>> from brittle.theorems import find, sweep
        >>> cases = sweep(find("vardi2022/3.1"), {"dim": [50, 100]}, torch.Generator().manual_seed(0))
        >>> [(case.values["dim"], case.outcome) for case in cases]
        [(50, 'confirmed'), (100, 'confirmed')]
    """
    cases, rows, state = list[SweepCase](), combinations(theorem, axes), rng.get_state()
    for values, statement in rows:
        cases.append(_case(values, statement, torch.Generator().set_state(state), beyond))
        watch(Progress(len(cases) / len(rows), f"{len(cases)} of {len(rows)}"))
    return tuple(cases)


def _case(values: Mapping[str, Any], theorem: Theorem, rng: Generator, beyond: bool) -> SweepCase:
    try:
        return SweepCase(values, check_default(theorem, rng, beyond=beyond))
    except (ValueError, ArithmeticError) as error:  # sizes that have no instance
        return SweepCase(values, None, str(error) or type(error).__name__)


def is_violated(cases: Sequence[SweepCase]) -> bool:
    """Whether a claim did not hold somewhere although its hypotheses do."""
    return any(case.verdict is not None and case.verdict.verdict is CheckOutcome.VIOLATED for case in cases)


@dataclass(frozen=True)
class Trials(Result):
    """How often a promise failed over many draws, beside how often it may.

    `id` names the theorem; `verdict` and `advice` are the judgement. Of `trials` draws a hypothesis failed on
    `skipped`, and the promise on `failures` of the others: a share of `failure_rate`, with the 99 % Clopper-Pearson
    `confidence_interval`, where `promised_failure_rate` is allowed. `seconds` is what it took.

    Examples:
        >>> import torch
        >>> from brittle.theorems import check_many, find
        >>> counted = check_many(find("frei2023/D.1"), 2, torch.Generator().manual_seed(0))
        >>> counted.trials, counted.failures
        (2, 0)
    """

    id: str
    verdict: CheckOutcome
    advice: str
    trials: int
    skipped: int
    failures: int
    failure_rate: float
    confidence_interval: tuple[float, float]
    promised_failure_rate: float
    seconds: float


@check_kinds
def check_many(theorem: Theorem, trials: int, rng: Generator, watch: Watch = silent) -> Trials:
    """Draws the default instance again and again and counts how often the promise fails.

    Examples:
        >>> import torch
        >>> from brittle.theorems import check_many, find
        >>> check_many(find("frei2023/D.1"), 2, torch.Generator().manual_seed(0)).confidence_interval[0]
        0.0
    """
    require_count("trials", trials)
    begun = time.perf_counter()
    count = theorem.failures(trials, rng) or _one_by_one(theorem, trials, rng, watch)
    rates = (count.skipped, count.failures, count.promised_failure_rate)
    return judge_trials(theorem.id, trials, *rates, time.perf_counter() - begun)


def _one_by_one(theorem: Theorem, trials: int, rng: Generator, watch: Watch) -> Failures:
    failures, skipped, promised = 0, 0, 1.0
    for trial in range(trials):
        verdict = check_default(theorem, rng)
        skipped += verdict.verdict is CheckOutcome.HYPOTHESES_FAIL
        failures += verdict.verdict is not CheckOutcome.HYPOTHESES_FAIL and not all(c.holds for c in verdict.bound)
        promised = promised if math.isnan(verdict.probability) else min(promised, verdict.probability)
        watch(Progress((trial + 1) / trials, f"{failures} failures"))
    return Failures(failures, skipped, 1 - promised)


def judge_trials(
    identity: str, trials: int, skipped: int, failures: int, promised_failure_rate: float, seconds: float
) -> Trials:
    """Violated only when even the lower end of the interval is above what is allowed."""
    counted = trials - skipped
    interval = clopper_pearson(failures, counted)
    rate = failures / counted if counted else math.nan
    if not counted:
        outcome, advice = CheckOutcome.HYPOTHESES_FAIL, "a hypothesis failed in every draw"
    elif promised_failure_rate >= 1:
        outcome, advice = CheckOutcome.INCONCLUSIVE, "the promise is vacuous: it may fail always"
    elif interval[0] > promised_failure_rate:
        outcome, advice = CheckOutcome.VIOLATED, "it fails more often than promised"
    elif rate <= promised_failure_rate:
        outcome, advice = CheckOutcome.CONFIRMED, "it fails no more often than promised"
    else:
        outcome, advice = CheckOutcome.INCONCLUSIVE, "the promised rate lies inside the interval: use more trials"
    return Trials(identity, outcome, advice, trials, skipped, failures, rate, interval, promised_failure_rate, seconds)
