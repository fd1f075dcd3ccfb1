"""Every remedy is tried and measured on the same examples as the network itself."""

import math
import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from brittle.attacks import FREE
from brittle.auditing.budget import Unaffordable, WorkBudget, afford
from brittle.auditing.costs import Costs, judging_work
from brittle.auditing.curve import CurveEnds, TradeoffCurve, curve
from brittle.auditing.geometry import share_of
from brittle.auditing.pieces import median, median_interval, tenth
from brittle.auditing.proofs import CertifiedExamples, CertifiedSubject
from brittle.auditing.remedy import (
    Diagnostics,
    Forecast,
    Remedy,
    RemedyContext,
    RemedyOutput,
    forecast,
    measure_accuracy,
)
from brittle.auditing.vulnerability import Radii, measure_ties, smallest
from brittle.common.errors import InputError, require
from brittle.common.result import Result
from brittle.common.time_limit import TimeLimitReached, limit_time
from brittle.data import Data
from brittle.networks import Network

HELPS = 1.05  # a smaller gain is not worth naming
AS_MUCH = 0.95  # of the best one's factor: what is between is the luck of a training
TRAINING_SHARE = 0.5  # of a remedy's work; the rest measures what it made
NAN = float("nan")


@dataclass(frozen=True, eq=False)
class RemedyResult(Result):
    """Before and after the remedy `name`; where `applied` is False there is a `reason` why it is none here.

    `unaffordable` says that the reason is the budget, so that a larger one may apply it.
    `explains` says what it does. `accuracy_before` and `accuracy_after` are on the `judged_on` examples: held-out where
    there are any, otherwise training. A remedy that costs more than the `tolerance` of this accuracy is refused.
    `radius_before` and `radius_after` are median radii of the same examples by the same attack, a tie counted as a
    flip, the second that of the radii `norms_after`; `strict_before` and `strict_after` are those where a tie is none,
    None where they are the same. `tenth_before` and `tenth_after` are what nine tenths of the examples have at least,
    `share_before` and `share_after` the median radius over what the data allow, None for one class. `proved_before` and
    `proved_after` are medians of what is proved of the same examples, `proved_tenth_before` and `proved_tenth_after`
    what is proved of nine tenths, None where nothing was; `proved_examples` are how many of them were proved both
    times, the first of the sample where the budget does not pay for all.
    `projected` says that weights off the data's subspace were removed first. `forecast` is what was expected, None
    without an opinion, and `curve` the networks that can be had on the way, None where there is none. `network` is what
    it made, None where not applied; it took `seconds`, and was given `examples` of the training examples.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> tried = bt.audit(network, data, budget=1, remedies=["robust-construction"]).remedies[0]
        >>> tried.applied, tried.factor > 1
        (True, True)
    """

    name: str
    explains: str
    applied: bool
    reason: str
    unaffordable: bool
    judged_on: str
    tolerance: float
    accuracy_before: float
    accuracy_after: float
    radius_before: float
    radius_after: float
    norms_after: Tensor
    strict_before: float | None
    strict_after: float | None
    tenth_before: float
    tenth_after: float
    share_before: float | None
    share_after: float | None
    proved_before: float | None
    proved_after: float | None
    proved_tenth_before: float | None
    proved_tenth_after: float | None
    proved_examples: int
    predictions_changed: int  # on the training examples that it was given
    examples: int
    projected: bool
    forecast: Forecast | None
    curve: TradeoffCurve | None
    seconds: float
    network: Network | None

    @classmethod
    def untried(cls, remedy: Remedy, patient: RemedyContext, before: "Baseline") -> "RemedyResult":
        """With what is known before it is tried."""
        return cls(
            name=remedy.name,
            explains=remedy.explains,
            applied=False,
            reason="",
            unaffordable=False,
            judged_on=describe_accuracy_data(patient.data),
            tolerance=remedy.tolerance,
            accuracy_before=patient.judged_accuracy,
            accuracy_after=NAN,
            radius_before=patient.radius,
            radius_after=NAN,
            norms_after=torch.zeros(0),
            strict_before=before.strict,
            strict_after=None,
            tenth_before=tenth(before.norms),
            tenth_after=NAN,
            share_before=before.signs.share,
            share_after=None,
            proved_before=None,
            proved_after=None,
            proved_tenth_before=None,
            proved_tenth_after=None,
            proved_examples=0,
            predictions_changed=0,
            examples=len(patient.data),
            projected=False,
            forecast=forecast(remedy, before.signs),
            curve=None,
            seconds=0.0,
            network=None,
        )

    @property
    def factor(self) -> float:
        return _ratio(self.radius_after, self.radius_before)

    @property
    def proved_factor(self) -> float | None:
        """The same of what is proved, None where nothing was."""
        before, after = self.proved_before, self.proved_after
        return None if before is None or after is None else _ratio(after, before)

    @property
    def fewer_proved(self) -> bool:
        """Whether what is proved is about fewer examples than were attacked: then its medians are of others."""
        return 0 < self.proved_examples < len(self.norms_after)

    @property
    def gain(self) -> float:
        """What it surely helps: the smaller of both factors, 0 where it was refused or a median was 0."""
        factors = (self.factor, self.factor if self.proved_factor is None else self.proved_factor)
        return min(factors) if self.applied and not any(map(math.isnan, factors)) else 0.0

    @property
    def interval_after(self) -> tuple[float, float]:
        """Encloses the median radius of all examples after it, with a probability of 95 % at least."""
        return median_interval(self.norms_after)

    def content(self) -> dict[str, Any]:
        """Everything but the weights, which belong in a network file, and the factors."""
        content = {name: value for name, value in super().content().items() if name != "network"}
        factors = {"factor": self.factor, "proved_factor": self.proved_factor}
        return {**content, **factors, "interval_after": self.interval_after if self.applied else None}


class PendingResult(NamedTuple):
    """A treatment, and perturbations that flip the audited examples of what it made; None where it made nothing."""

    treatment: RemedyResult
    flips: Tensor | None = None

    @property
    def subject(self) -> CertifiedSubject | None:
        """What can be certified."""
        network, flips = self.treatment.network, self.flips
        return None if network is None or flips is None else CertifiedSubject(network, flips)

    def proved(self, before: CertifiedExamples | None, after: CertifiedExamples | None) -> RemedyResult:
        """With the medians of what is proved of the same examples before and after."""
        if before is None or after is None or before.partial or after.partial:
            return self.treatment
        first, then = before.lower[: len(after.lower)], after.lower[: len(before.lower)]
        return replace(
            self.treatment,
            proved_before=median(first),
            proved_after=median(then),
            proved_tenth_before=tenth(first),
            proved_tenth_after=tenth(then),
            proved_examples=len(then),
        )


class Baseline(NamedTuple):
    """The `audited` examples, how far they keep their class (`norms`), what the data allow them, and other `signs`.

    `strict` is the median of strict flips where they are longer.
    """

    audited: Data
    norms: Tensor
    limits: Tensor | None
    signs: Diagnostics
    strict: float | None = None


def treat(
    remedy: Remedy, patient: RemedyContext, before: Baseline, rng: Generator, budget: WorkBudget
) -> PendingResult:
    """The remedy applied, and the audited examples attacked again."""
    begun, known = time.perf_counter(), RemedyResult.untried(remedy, patient, before)
    try:
        require(not (remedy.trains and patient.frozen), patient.frozen)
        training = budget.grant(_for_making(remedy, patient, before.audited, budget))
        given = patient.fewer(remedy.examples(patient, training), rng)
        known = replace(known, examples=len(given.data))
        made = _made(remedy, given, rng, training)
        afford(not budget.late, f"time limit reached during: {remedy.name}")
        known = replace(known, accuracy_after=measure_accuracy(made.network, patient.data))
        budget.charge(judging_work(made.network, len(_judges(patient.data))))
        _require_accurate(known)
        radii, flips, strict = _measured(made.network, before.audited, rng, budget)
        with limit_time(None):  # two passes, of something that is finished
            changed = _changed(patient.network, made.network, given.data)
        way = curve(made, _ends(known, before, radii), patient.data, before.audited, rng, budget)
    except (InputError, TimeLimitReached) as error:
        dear = isinstance(error, Unaffordable | TimeLimitReached)
        reason = str(error) or f"time limit reached during: {remedy.name}"
        return PendingResult(replace(known, reason=reason, unaffordable=dear, seconds=time.perf_counter() - begun))
    treatment = replace(
        known,
        applied=True,
        explains=known.explains + _some_of(given, patient),
        radius_after=radii.median,
        norms_after=radii.norms,
        strict_after=strict,
        tenth_after=tenth(radii.norms),
        share_after=None if before.limits is None else share_of(radii.norms, before.limits),
        predictions_changed=changed,
        projected=made.projected,
        curve=way,
        seconds=time.perf_counter() - begun,
        network=made.network,
    )
    expected = None if known.forecast is None else known.forecast.held_against(treatment.factor)
    return PendingResult(replace(treatment, forecast=expected), flips)


def _ends(known: RemedyResult, before: Baseline, after: Radii) -> CurveEnds:
    return CurveEnds((before.norms, after.norms), (known.accuracy_before, known.accuracy_after))


def _for_making(remedy: Remedy, patient: RemedyContext, audited: Data, budget: WorkBudget) -> float:
    """The work that may be spent before measuring: a training must leave enough for what it makes."""
    share = TRAINING_SHARE * budget.left
    if not remedy.trains:
        return share
    measuring = _attack_work(patient.network, audited) + judging_work(patient.network, len(_judges(patient.data)))
    afford(measuring < budget.left, _too_dear(measuring))
    return min(share, budget.left - measuring)


def _made(remedy: Remedy, patient: RemedyContext, rng: Generator, budget: WorkBudget) -> RemedyOutput:
    made = remedy.made(patient, rng, budget)
    return made._replace(network=made.network.to(torch.float64))


def _some_of(given: RemedyContext, patient: RemedyContext) -> str:
    return f", on {len(given.data)} of the {len(patient.data)} training examples" if given.part else ""


def _require_accurate(known: RemedyResult) -> None:
    before, after = known.accuracy_before, known.accuracy_after
    fair = after >= before - known.tolerance
    require(fair, f"refused: the {known.judged_on} accuracy falls from {before:.1%} to {after:.1%}")


def _changed(before: Network, after: Network, data: Data) -> int:
    return int((after.predict(data.X) != before.predict(data.X)).sum())


def _measured(
    treated: Network, audited: Data, rng: Generator, budget: WorkBudget
) -> tuple[Radii, Tensor, float | None]:
    """On all audited examples or not at all; with the median of strict flips where ties are closer."""
    work = _attack_work(treated, audited)
    afford(work <= budget.left, _too_dear(work))
    radii, flips = smallest(treated, audited, FREE, rng, budget)
    afford(not radii.partial, "time limit reached before it was measured")
    close = measure_ties(treated, audited, radii, flips, rng, budget)
    return (radii, flips, None) if close is None else (close, flips, radii.median)


def _attack_work(network: Network, audited: Data) -> float:
    return Costs.of(network).attack() * len(audited)


def _too_dear(work: float) -> str:
    return f"attacking what it makes takes {work:.2g} s of work: more than the budget affords"


def _judges(data: Data) -> Data:
    return data if data.X_test is None else data.test


def describe_accuracy_data(data: Data) -> str:
    """Which examples judge the accuracy of a remedy."""
    return "training" if data.X_test is None else "held-out"


def best(treatments: tuple[RemedyResult, ...]) -> RemedyResult | None:
    """The one that surely raises the radius most; all that are applied are accurate.

    One with proofs of more examples comes before others: medians of a few are no match for medians of all.
    """
    helpful = [each for each in treatments if each.gain >= HELPS]
    return max(helpful, key=lambda each: (each.proved_examples, each.gain), default=None)


def as_good(treatments: tuple[RemedyResult, ...]) -> list[str]:
    """Which others do about as much as the best one, so that another seed or budget may prefer them."""
    chosen = best(treatments)
    if chosen is None:
        return []
    near = [each for each in treatments if each.gain >= HELPS and each.factor >= AS_MUCH * chosen.factor]
    return [each.name for each in near if each is not chosen]


def _ratio(after: float, before: float) -> float:
    return after / before if before > 0 else float("nan")


def make_generator(rng: Generator) -> Generator:
    """A generator of its own for each remedy, so that leaving one out changes no other."""
    return torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=rng)))
