"""The one driver: evaluates a theorem's three verbs and judges them itself."""

import enum
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Generator

from brittle.attacks import flip_intervals
from brittle.common.errors import require, require_count
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result
from brittle.networks import Network
from brittle.settings import Data
from brittle.theorems.base import (
    COMPARATOR_FLIPPED,
    LARGEST_MARGIN,
    LONGEST,
    SMALLEST_NORM,
    SMALLEST_SCALE,
    Comparison,
    Instance,
    Promise,
    Theorem,
    Witness,
)
from brittle.theorems.scaling import Scaling


class Outcome(enum.Enum):
    CONFIRMED = "confirmed"
    HYPOTHESES_FAIL = "hypotheses_fail"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"
    SCALING_ONLY = "scaling_only"


@dataclass(frozen=True)
class Verdict(Result):
    """What became of one theorem on one instance."""

    id: str
    claim: str
    verdict: Outcome
    advice: str
    hypotheses: tuple[Comparison, ...]
    bound: tuple[Comparison, ...]
    measured: dict[str, float]
    probability: float
    note: str
    seconds: float
    scaling: tuple[Scaling, ...] = ()

    @property
    def failed(self) -> list[str]:
        return [hypothesis.name for hypothesis in self.hypotheses if not hypothesis.holds]


def check(theorem: Theorem | str, data: Data, network: Network | None = None, **facts: object) -> Verdict:
    """The theorem, itself or by its id, on these data and this network."""
    from brittle.theorems.registry import find

    known = find(theorem) if isinstance(theorem, str) else theorem
    return check_instance(known, Instance(data, network, facts))


def check_default(theorem: Theorem, rng: Generator) -> Verdict:
    """The theorem on its own default instance."""
    begun = time.perf_counter()
    verdict = check_instance(theorem, theorem.default(rng))
    return replace(verdict, seconds=time.perf_counter() - begun)


def check_instance(theorem: Theorem, instance: Instance) -> Verdict:
    begun = time.perf_counter()
    hypotheses = tuple(theorem.hypotheses(instance))
    failed = [hypothesis for hypothesis in hypotheses if not hypothesis.holds]
    probability = theorem.probability(instance) if not failed else math.nan
    measured = {} if failed else measure(theorem.witness(instance), instance, theorem.comparator(instance))
    promises = [] if failed else theorem.bound(instance)
    bound = tuple(promise.against(measured[promise.measure]) for promise in promises)
    scaling = () if failed else theorem.scaling(instance)
    outcome, advice = judge(failed, bound, probability, promises)
    if outcome is not Outcome.HYPOTHESES_FAIL:
        outcome, advice = qualify(theorem, outcome, advice, bound, scaling)
    seconds = time.perf_counter() - begun
    known = (hypotheses, bound, measured, probability, theorem.note(), seconds, scaling)
    return Verdict(theorem.id, theorem.claim, outcome, advice, *known)


def measure(witness: Witness, instance: Instance, comparator: Network | None = None) -> dict[str, float]:
    """The witness's own quantities, and those of its perturbations, which are applied here."""
    measured = {name: float(value) for name, value in witness.measures.items()}
    if witness.perturbations is None:
        return measured
    network = instance.network
    require(network is not None, "a perturbation needs a network to be applied to")
    assert network is not None
    X = instance.data.X if witness.examples is None else witness.examples
    y = instance.data.y if witness.labels is None else witness.labels
    measured[LONGEST] = float(torch.linalg.vector_norm(witness.perturbations, dim=1).max())
    measured[LARGEST_MARGIN] = float(network.margins(X + witness.perturbations, y).max())
    measured[SMALLEST_SCALE] = flip_intervals(network, X, y, witness.perturbations).overlap()[0]
    measured[SMALLEST_NORM] = measured[SMALLEST_SCALE] * measured[LONGEST]
    if comparator is not None:
        margins = comparator.margins(X + witness.perturbations, y)
        measured[COMPARATOR_FLIPPED] = float((margins < 0).double().mean())
    return measured


def judge(
    failed: list[Comparison], bound: tuple[Comparison, ...], probability: float, promises: Sequence[Promise] = ()
) -> tuple[Outcome, str]:
    """The verdict and one sentence on what to do about it."""
    if failed:
        worst = "; ".join(f"{comparison} does not hold (slack {comparison.slack:.3g})" for comparison in failed)
        return Outcome.HYPOTHESES_FAIL, f"the theorem says nothing here: {worst}"
    broken = [comparison for comparison in bound if not comparison.holds]
    unmeasured = [comparison for comparison in bound if math.isnan(comparison.value)]
    if unmeasured:
        return Outcome.INCONCLUSIVE, f"{unmeasured[0].name} could not be measured"
    if not broken and not (probability > 0):
        return Outcome.INCONCLUSIVE, f"the promise is vacuous here: it holds with probability ≥ {probability:.3g}"
    vacuous = "; ".join(str(promise) for promise in promises if promise.vacuous)
    if not broken and vacuous:
        return Outcome.INCONCLUSIVE, f"the promise is vacuous here: {vacuous}"
    if not broken:
        return Outcome.CONFIRMED, "every hypothesis holds and so does the conclusion"
    shown = "; ".join(str(comparison) for comparison in broken)
    certain = {promise.measure for promise in promises if promise.certain}
    if probability < 1 and not any(comparison.name in certain for comparison in broken):
        return (
            Outcome.INCONCLUSIVE,
            f"{shown} does not hold; promised only with probability {probability:.4g}: use trials",
        )
    return Outcome.VIOLATED, f"{shown} does not hold although every hypothesis does: a counterexample or a bug"


def qualify(
    theorem: Theorem, outcome: Outcome, advice: str, bound: tuple[Comparison, ...], scaling: tuple[Scaling, ...]
) -> tuple[Outcome, str]:
    """What is known about the statement itself: a flaw as printed, or constants that the paper does not give."""
    if theorem.flaw and outcome is not Outcome.CONFIRMED:
        stands = f"; {theorem.repaired} is the statement that stands" if theorem.repaired else ""
        broken = "; ".join(f"{comparison} does not hold" for comparison in bound if not comparison.holds)
        return outcome, f"as printed it is {theorem.flaw}{stands} ({broken or advice})"
    if theorem.explicit_constants or outcome is Outcome.VIOLATED:
        return outcome, advice
    shown = "; ".join(str(each) for each in scaling) or "one instance has no exponent: check the default instance"
    return Outcome.SCALING_ONLY, f"the paper gives no constants, so this can be measured and not confirmed: {shown}"


@dataclass(frozen=True)
class Trials(Result):
    """How often a promise failed over many draws, beside how often it may."""

    id: str
    verdict: Outcome
    advice: str
    trials: int
    skipped: int  # draws on which a hypothesis failed
    failures: int
    failure_rate: float
    confidence_interval: tuple[float, float]  # Clopper-Pearson, 99 %
    promised_failure_rate: float
    seconds: float


def check_many(theorem: Theorem, trials: int, rng: Generator, watch: Watch = silent) -> Trials:
    """Draws the default instance again and again and counts how often the promise fails."""
    require_count("trials", trials)
    begun = time.perf_counter()
    counted = theorem.failures(trials, rng)
    if counted is not None:
        rates = (counted.skipped, counted.failures, counted.promised_failure_rate)
        return judge_trials(theorem.id, trials, *rates, time.perf_counter() - begun)
    failures, skipped, promised = 0, 0, 1.0
    for trial in range(trials):
        verdict = check_default(theorem, rng)
        skipped += verdict.verdict is Outcome.HYPOTHESES_FAIL
        failures += verdict.verdict is not Outcome.HYPOTHESES_FAIL and not all(c.holds for c in verdict.bound)
        promised = promised if math.isnan(verdict.probability) else min(promised, verdict.probability)
        watch(Progress((trial + 1) / trials, f"{failures} failures"))
    return judge_trials(theorem.id, trials, skipped, failures, 1 - promised, time.perf_counter() - begun)


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


def clopper_pearson(failures: int, trials: int, confidence: float = 0.99) -> tuple[float, float]:
    """The exact interval for a binomial rate."""
    from scipy.stats import beta

    tail = (1 - confidence) / 2
    low = 0.0 if failures == 0 else float(beta.ppf(tail, failures, trials - failures + 1))
    high = 1.0 if failures == trials else float(beta.ppf(1 - tail, failures + 1, trials - failures))
    return low, high
