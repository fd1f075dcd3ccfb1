"""A theorem is an object with three verbs: what it supposes, what it promises, and what shows the promise.

Three kinds: a `Theorem` promises for certain, a `LikelyClaim` with some probability, a `ScalingClaim` only how
something grows. Each kind judges its promises in its own way.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

from torch import Generator

from brittle.common.errors import InputError, require_chance
from brittle.common.result import Result
from brittle.networks import Network
from brittle.theorems.comparison import Comparison, Promise, Scaling, Witness
from brittle.theorems.instance import Instance
from brittle.theorems.judgement import CheckOutcome, Findings, Judgement, list_comparisons


@dataclass(frozen=True)
class ParameterRange(Result):
    """The values of one parameter for which the hypotheses can hold.

    `id` names the theorem, `unknown` the parameter; `least` and `most` are the ends of its range, NaN where there is
    none. `given` are the other parameters, `explanation` is the condition in words.

    Examples:
        >>> from brittle.theorems import find
        >>> answer = find("vardi2022/4.1").solve_for("dim")
        >>> answer.unknown, answer.explanation
        ('dim', 'm ≤ (d+1)/(3(p+1)), with at least one example of each label')
    """

    id: str
    unknown: str
    least: float
    most: float
    given: Mapping[str, float]
    explanation: str


@dataclass(frozen=True)
class Failures(Result):
    """What a theorem counted itself over many draws at once.

    `failures` is how often the promise failed, `skipped` on how many draws a hypothesis did, and
    `promised_failure_rate` how often it may fail.

    Examples:
        >>> from brittle.theorems import Failures
        >>> counted = Failures(failures=3, skipped=0, promised_failure_rate=0.05)
        >>> counted.failures
        3
    """

    failures: int
    skipped: int
    promised_failure_rate: float


def chance(default: float) -> Any:
    """A field that is a probability, such as γ: other values than those between 0 and 1 are refused."""
    return field(default=default, metadata={"chance": True})


class Theorem(ABC):
    """One statement of one paper, certain where its hypotheses hold.

    Its fields are tolerances and the sizes of its default instance. A statement names itself, by paper and number,
    where its class is declared: `class UniversalPerturbation(Theorem, id="vardi2022/4.1")`. A class without an `id` is
    what several statements share. It says of itself: `claim` one line; `applies_to` one line on which data and
    networks; `flaw` what is wrong with the statement as printed ("false: ...", or "vacuous: ..."); `repaired` the id of
    the statement that stands in its place; `note` where the paper and its proof disagree, or what must be known to read
    the verdict; `unknowns` what `solve_for` can be asked.

    Examples:
        >>> from brittle.theorems import Theorem, find
        >>> theorem = find("vardi2022/4.1")
        >>> isinstance(theorem, Theorem), theorem.paper, theorem.applies_to
        (True, 'vardi2022', 'nearly orthogonal examples of norm √d, two-layer networks at a KKT point')
    """

    id: ClassVar[str]
    claim: ClassVar[str]
    applies_to: ClassVar[str]
    flaw: ClassVar[str] = ""
    repaired: ClassVar[str] = ""
    note: ClassVar[str] = ""
    unknowns: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, id: str | None = None) -> None:
        super().__init_subclass__()
        if id is not None:
            cls.id = id

    def __post_init__(self) -> None:
        assert is_dataclass(self)
        for each in fields(self):
            if "chance" in each.metadata:
                require_chance(each.name, getattr(self, each.name))

    @abstractmethod
    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        """Every supposition with its measured value; cheap ones first, the driver stops at none."""

    @abstractmethod
    def bound(self, instance: Instance) -> list[Promise]:
        """What is promised; must not be computed from the witness."""

    @abstractmethod
    def witness(self, instance: Instance) -> Witness:
        """What is measured or applied; must not look at the bound."""

    @abstractmethod
    def default(self, rng: Generator) -> Instance:
        """An instance that satisfies every hypothesis and takes seconds."""

    def judge(self, instance: Instance, findings: Findings) -> Judgement:
        """The outcome where every hypothesis holds: a broken promise is a violation."""
        if not findings.promises:
            return Judgement(CheckOutcome.INCONCLUSIVE, "nothing is promised here")
        if findings.undefined:
            return Judgement(CheckOutcome.INCONCLUSIVE, f"the limit of {findings.undefined[0].name} is no number here")
        if findings.unmeasured:
            return Judgement(CheckOutcome.INCONCLUSIVE, f"{findings.unmeasured[0].name} could not be measured")
        if findings.broken:
            broken, outcome = list_comparisons(findings.broken), CheckOutcome.VIOLATED
            return Judgement(outcome, f"{broken} does not hold although every hypothesis does: {outcome.advice}")
        if findings.vacuous:
            return Judgement(CheckOutcome.INCONCLUSIVE, f"the promise is vacuous here: {findings.vacuous}")
        return Judgement(CheckOutcome.CONFIRMED, CheckOutcome.CONFIRMED.advice)

    def failures(self, trials: int, rng: Generator) -> Failures | None:
        """Many draws at once; None where the driver must draw the default instance again and again."""
        return None

    def solve_for(self, unknown: str) -> ParameterRange:
        """The range of one parameter, the other fields of the theorem being given."""
        offered = ", ".join(self.unknowns) or "nothing"
        raise InputError(f"{self.id} cannot be solved for {unknown!r}; it can be solved for {offered}")

    def comparator(self, instance: Instance) -> Network | None:
        """The robust network of the same paper that the witness should not flip, where there is one."""
        return None

    def supposes(self, instance: Instance) -> bool:
        """Whether every hypothesis holds; where not, there is nothing to count."""
        return all(hypothesis.holds for hypothesis in self.hypotheses(instance))

    @property
    def paper(self) -> str:
        """The part of the id that names the paper."""
        return self.id.split("/")[0]


class LikelyClaim(Theorem):
    """A statement that holds with a probability, over the randomness that it names.

    Examples:
        >>> from brittle.theorems import THEOREMS, LikelyClaim
        >>> [name for name, each in THEOREMS.items() if isinstance(each, LikelyClaim)][:2]
        ['vardi2022/L3.1', 'frei2023/L2.1']
    """

    @abstractmethod
    def probability(self, instance: Instance) -> float:
        """How likely the promise is at least."""

    def judge(self, instance: Instance, findings: Findings) -> Judgement:
        """One failure refutes nothing unless the broken promise is certain; what may fail always promises nothing."""
        chance = self.probability(instance)
        judgement = replace(super().judge(instance, findings), probability=chance)
        if judgement.outcome is CheckOutcome.VIOLATED and chance < 1 and not findings.surely_broken:
            broken = list_comparisons(findings.broken)
            advice = f"{broken} does not hold; promised only with probability {chance:.4g}: use trials"
            return replace(judgement, outcome=CheckOutcome.INCONCLUSIVE, advice=advice)
        if not findings.broken and not chance > 0:
            advice = f"the promise is vacuous here: it holds with probability ≥ {chance:.3g}"
            return replace(judgement, outcome=CheckOutcome.INCONCLUSIVE, advice=advice)
        return judgement


class ScalingClaim(Theorem):
    """A statement on how something grows, without constants: exponents are fitted and nothing is confirmed.

    Examples:
        >>> from brittle.theorems import THEOREMS, ScalingClaim
        >>> [name for name, each in THEOREMS.items() if isinstance(each, ScalingClaim)][:2]
        ['vardi2022/Ex1', 'frei2023/4.2-scaling']
    """

    @abstractmethod
    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        """Fitted exponents beside the claimed ones, with the confounders; none where the instance is no sweep."""

    def bound(self, instance: Instance) -> list[Promise]:
        """Without constants nothing is promised of one instance."""
        return []

    def judge(self, instance: Instance, findings: Findings) -> Judgement:
        """The exponents, beside those that are claimed."""
        scaling, outcome = self.scaling(instance), CheckOutcome.SCALING_ONLY
        exponents = "; ".join(map(str, scaling)) or "one instance has no exponent: check the default instance"
        return Judgement(outcome, f"{outcome.advice}: {exponents}", scaling=scaling)
