"""How a theorem fared: the outcomes, what they are read off, and the sentence that goes with them."""

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from brittle.common.errors import require
from brittle.theorems.comparison import Comparison, Promise, Scaling


class CheckOutcome(enum.Enum):
    """What became of a theorem; `advice` says what that means, whatever the instance.

    Examples:
        >>> from brittle.theorems import CheckOutcome
        >>> CheckOutcome.HYPOTHESES_FAIL.advice
        'the theorem says nothing here'
    """

    CONFIRMED = "confirmed"
    HYPOTHESES_FAIL = "hypotheses_fail"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"
    SCALING_ONLY = "scaling_only"

    @property
    def advice(self) -> str:
        """What the outcome means."""
        return ADVICE[self]


ADVICE = {
    CheckOutcome.CONFIRMED: "every hypothesis holds and so does the conclusion",
    CheckOutcome.HYPOTHESES_FAIL: "the theorem says nothing here",
    CheckOutcome.VIOLATED: "a counterexample or a bug",
    CheckOutcome.INCONCLUSIVE: "this instance decides nothing",
    CheckOutcome.SCALING_ONLY: "the paper gives no constants, so this can be measured and not confirmed",
}


@dataclass(frozen=True)
class Judgement:
    """An `outcome` with one sentence of `advice` about this instance.

    `probability` is that of the promise at least, 1 where it is certain; `scaling` holds the fitted exponents.

    Examples:
        >>> from brittle.theorems import Judgement, CheckOutcome
        >>> Judgement(CheckOutcome.CONFIRMED, CheckOutcome.CONFIRMED.advice).advice
        'every hypothesis holds and so does the conclusion'
    """

    outcome: CheckOutcome
    advice: str
    probability: float = 1.0
    scaling: tuple[Scaling, ...] = ()


@dataclass(frozen=True)
class Findings:
    """`promises` and, one for one, `bound`: the same beside what was measured.

    Examples:
        >>> from brittle.theorems import Findings, Promise, Relation
        >>> promise = Promise("size", Relation.AT_MOST, 3.0)
        >>> fared = Findings((promise,), (promise.against(5.0),))
        >>> [str(comparison) for comparison in fared.broken]
        ['size = 5 ≤ 3']
    """

    promises: tuple[Promise, ...]
    bound: tuple[Comparison, ...]

    @property
    def unmeasured(self) -> tuple[Comparison, ...]:
        """Promises about what could not be measured."""
        return tuple(comparison for comparison in self.bound if math.isnan(comparison.value))

    @property
    def undefined(self) -> tuple[Comparison, ...]:
        """Promises whose own limit is no number."""
        return tuple(comparison for comparison in self.bound if math.isnan(comparison.threshold))

    @property
    def broken(self) -> tuple[Comparison, ...]:
        """Promises that do not hold."""
        return tuple(comparison for comparison in self.bound if not comparison.holds)

    @property
    def surely_broken(self) -> bool:
        """Whether one of them was not only likely."""
        pairs = zip(self.promises, self.bound, strict=True)
        return any(promise.certain and not comparison.holds for promise, comparison in pairs)

    @property
    def vacuous(self) -> str:
        """The promises that say no more than what holds anyway."""
        return "; ".join(str(promise) for promise in self.promises if promise.vacuous)


def findings(promises: Sequence[Promise], measured: Mapping[str, float]) -> Findings:
    """Every promise beside its measure."""
    unknown = [promise.measure for promise in promises if promise.measure not in measured]
    known = ", ".join(map(repr, measured)) or "nothing"
    require(not unknown, f"the bound is about {', '.join(map(repr, unknown))}, and the witness measures {known}")
    return Findings(tuple(promises), tuple(promise.against(measured[promise.measure]) for promise in promises))


def unmet(hypotheses: Sequence[Comparison]) -> Judgement:
    """Where hypotheses fail: each of them, and by how much."""
    worst = "; ".join(f"{failure} does not hold (slack {failure.slack:.3g})" for failure in hypotheses)
    outcome = CheckOutcome.HYPOTHESES_FAIL
    return Judgement(outcome, f"{outcome.advice}: {worst}", probability=math.nan)


def without_network(hypotheses: Sequence[Comparison]) -> Judgement:
    """Where there are only data: a hypothesis on them that fails settles it, otherwise it depends on the network."""
    failed = [hypothesis for hypothesis in hypotheses if not hypothesis.holds]
    if failed:
        return replace(unmet(failed), advice=f"{unmet(failed).advice}; no network changes that")
    known = (
        f"{len(hypotheses)} hypotheses on the data hold" if hypotheses else "the network is looked at before the data"
    )
    return Judgement(CheckOutcome.INCONCLUSIVE, f"{known}; all else needs a network: give one", probability=math.nan)


def list_comparisons(comparisons: Sequence[Comparison]) -> str:
    """The comparisons in one line."""
    return "; ".join(str(comparison) for comparison in comparisons)
