"""A theorem over many draws of its default instance: how often does the promise fail?"""

import math
import time
from dataclasses import dataclass

from torch import Generator

from brittle.common.errors import require_count
from brittle.common.kinds import kinds_checked
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result
from brittle.theorems.base import Failures, Theorem
from brittle.theorems.check import check_default
from brittle.theorems.intervals import clopper_pearson
from brittle.theorems.judgement import Outcome


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
    verdict: Outcome
    advice: str
    trials: int
    skipped: int
    failures: int
    failure_rate: float
    confidence_interval: tuple[float, float]
    promised_failure_rate: float
    seconds: float


@kinds_checked
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
        skipped += verdict.verdict is Outcome.HYPOTHESES_FAIL
        failures += verdict.verdict is not Outcome.HYPOTHESES_FAIL and not all(c.holds for c in verdict.bound)
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
        outcome, advice = Outcome.HYPOTHESES_FAIL, "a hypothesis failed in every draw"
    elif promised_failure_rate >= 1:
        outcome, advice = Outcome.INCONCLUSIVE, "the promise is vacuous: it may fail always"
    elif interval[0] > promised_failure_rate:
        outcome, advice = Outcome.VIOLATED, "it fails more often than promised"
    elif rate <= promised_failure_rate:
        outcome, advice = Outcome.CONFIRMED, "it fails no more often than promised"
    else:
        outcome, advice = Outcome.INCONCLUSIVE, "the promised rate lies inside the interval: use more trials"
    return Trials(identity, outcome, advice, trials, skipped, failures, rate, interval, promised_failure_rate, seconds)
