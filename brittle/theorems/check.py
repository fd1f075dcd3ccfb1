"""The one driver: evaluates a theorem's three verbs and judges what it measured itself."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Generator

from brittle.attacks import flip_intervals
from brittle.common.errors import InputError
from brittle.common.kinds import check_kinds
from brittle.common.result import Result
from brittle.data import Data
from brittle.networks import Network
from brittle.theorems.base import Theorem
from brittle.theorems.comparison import (
    COMPARATOR_FLIPPED,
    LARGEST_MARGIN,
    LONGEST,
    SMALLEST_NORM,
    SMALLEST_SCALE,
    Comparison,
    Scaling,
    Witness,
)
from brittle.theorems.instance import Facts, Instance, NetworkNeeded
from brittle.theorems.judgement import (
    CheckOutcome,
    Findings,
    Judgement,
    findings,
    list_comparisons,
    unmet,
    without_network,
)

# what may be raised where a theorem's formulas are evaluated outside its hypotheses, and make no sense there
SENSELESS = (InputError, ArithmeticError, ValueError, RuntimeError)


@dataclass(frozen=True)
class CheckResult(Result):
    """What became of one theorem on one instance.

    `id`, `claim` and `note` are the theorem's; `verdict` is the outcome and `advice` a sentence on what to do about
    it. `hypotheses` and `bound` hold every supposition and every promise beside its measured value, `measured` all
    quantities by name, `probability` how likely the promise is at least (NaN where a hypothesis fails), `scaling`
    the fitted exponents. `seconds` of computing is what it took, however busy the machine. Where a hypothesis fails
    and it was asked for, `beyond` holds the promises beside what was measured although the theorem says nothing
    there; `unmeasurable` is why the conclusion is missing, where it cannot be measured.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> verdict = bt.theorems.check("vardi2022/4.1", data, bt.networks.orthogonal_kkt(data.X, data.y).network)
        >>> verdict.verdict.value, verdict.failed
        ('hypotheses_fail', ['examples'])
    """

    id: str
    claim: str
    verdict: CheckOutcome
    advice: str
    hypotheses: tuple[Comparison, ...]
    bound: tuple[Comparison, ...]
    measured: dict[str, float]
    probability: float
    note: str
    seconds: float
    scaling: tuple[Scaling, ...] = ()
    beyond: tuple[Comparison, ...] = ()
    unmeasurable: str = ""

    @property
    def failed(self) -> list[str]:
        """The names of the hypotheses that do not hold."""
        return [hypothesis.name for hypothesis in self.hypotheses if not hypothesis.holds]


@check_kinds
def check(
    theorem: Theorem | str,
    data: Data,
    network: Network | None = None,
    facts: Facts | None = None,
    *,
    beyond: bool = False,
) -> CheckResult:
    """The theorem, itself or by its id, on these data and this network; `beyond` as in `check_instance`.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(40).sample(40)
        >>> verdict = bt.theorems.check("vardi2022/3.1", data, bt.networks.nearly_orthogonal(data.X, data.y).network)
        >>> verdict.verdict.value
        'confirmed'
    """
    from brittle.theorems.registry import find

    statement = find(theorem) if isinstance(theorem, str) else theorem
    return check_instance(statement, Instance(data, network, facts), beyond=beyond)


@check_kinds
def check_default(theorem: Theorem, rng: Generator, *, beyond: bool = False) -> CheckResult:
    """The theorem on its own default instance; `beyond` as in `check_instance`.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> bt.theorems.check_default(bt.theorems.find("vardi2022/3.1"), torch.Generator().manual_seed(0)).verdict.value
        'confirmed'
    """
    begun = time.process_time()
    verdict = check_instance(theorem, theorem.default(rng), beyond=beyond)
    return replace(verdict, seconds=time.process_time() - begun)


@check_kinds
def check_instance(theorem: Theorem, instance: Instance, *, beyond: bool = False) -> CheckResult:
    """The theorem on this instance; with `beyond` the conclusion is evaluated even where a hypothesis fails.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> instance = bt.theorems.Instance(data, bt.networks.orthogonal_kkt(data.X, data.y).network)
        >>> bt.theorems.check_instance(bt.theorems.find("vardi2022/5.1"), instance).id
        'vardi2022/5.1'
    """
    begun = time.process_time()
    verdict = _judged(theorem, instance, tuple(theorem.hypotheses(instance)), beyond)
    return replace(verdict, seconds=time.process_time() - begun)


@check_kinds
def check_data(theorem: Theorem, data: Data, facts: Facts | None = None, *, beyond: bool = False) -> CheckResult:
    """The theorem on data alone: a whole verdict where it needs no network, else what it supposes of the data.

    That is every hypothesis before the first that looks at the network; one that fails settles the matter.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Sphere(dim=20).sample(15, torch.Generator().manual_seed(0))
        >>> bt.theorems.check_data(bt.theorems.find("vardi2022/4.1"), data).verdict.value
        'hypotheses_fail'
    """
    begun, instance, hypotheses = time.process_time(), Instance(data, None, facts), list[Comparison]()
    try:
        for hypothesis in theorem.hypotheses(instance):
            hypotheses.append(hypothesis)
        verdict = _judged(theorem, instance, tuple(hypotheses), beyond)
    except NetworkNeeded as needed:
        judgement = without_network(hypotheses)
        verdict = _verdict(theorem, judgement, tuple(hypotheses), unmeasurable=str(needed))
    return replace(verdict, seconds=time.process_time() - begun)


def _judged(theorem: Theorem, instance: Instance, hypotheses: tuple[Comparison, ...], beyond: bool) -> CheckResult:
    failed = [hypothesis for hypothesis in hypotheses if not hypothesis.holds]
    fared, measured, unmeasurable = findings([], {}), dict[str, float](), ""
    if not failed or beyond:
        try:
            measured = measure(theorem.witness(instance), instance, theorem.comparator(instance))
            fared = findings(theorem.bound(instance), measured)
        except SENSELESS as error:
            if not failed:
                raise
            unmeasurable = str(error) or type(error).__name__
    if not failed:
        judgement = add_known_flaw(theorem, theorem.judge(instance, fared), fared)
        return _verdict(theorem, judgement, hypotheses, bound=fared.bound, measured=measured)
    judgement = unmet(failed)
    if beyond:
        judgement = replace(judgement, advice=judgement.advice + outside(fared.bound, unmeasurable))
    return _verdict(theorem, judgement, hypotheses, measured=measured, beyond=fared.bound, unmeasurable=unmeasurable)


def _verdict(
    theorem: Theorem,
    judgement: Judgement,
    hypotheses: tuple[Comparison, ...],
    *,
    bound: tuple[Comparison, ...] = (),
    measured: dict[str, float] | None = None,
    beyond: tuple[Comparison, ...] = (),
    unmeasurable: str = "",
) -> CheckResult:
    return CheckResult(
        id=theorem.id,
        claim=theorem.claim,
        verdict=judgement.outcome,
        advice=judgement.advice,
        hypotheses=hypotheses,
        bound=bound,
        measured=measured or {},
        probability=judgement.probability,
        note=theorem.note,
        seconds=0.0,  # whoever began the work knows
        scaling=judgement.scaling,
        beyond=beyond,
        unmeasurable=unmeasurable,
    )


def outside(conclusion: Sequence[Comparison], unmeasurable: str) -> str:
    """What became of a conclusion that was not promised."""
    if unmeasurable:
        return f"; outside the theorem, its conclusion cannot be evaluated: {unmeasurable}"
    broken = [comparison for comparison in conclusion if not comparison.holds]
    fared = f"does not hold: {list_comparisons(broken)}" if broken else "holds nevertheless"
    return f"; outside the theorem, its conclusion {fared}" if conclusion else ""


def measure(witness: Witness, instance: Instance, comparator: Network | None = None) -> dict[str, float]:
    """The witness's own quantities, and those of its perturbations, which are applied here."""
    measured = {name: float(value) for name, value in witness.measures.items()}
    if witness.perturbations is None:
        return measured
    if (network := instance.network) is None:
        raise NetworkNeeded("a perturbation needs a network to be applied to")
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


def add_known_flaw(theorem: Theorem, judgement: Judgement, fared: Findings) -> Judgement:
    """What is known about the statement itself: a flaw as printed."""
    if not theorem.flaw or judgement.outcome is CheckOutcome.CONFIRMED:
        return judgement
    stands = f"; {theorem.repaired} is the statement that stands" if theorem.repaired else ""
    broken = "; ".join(f"{comparison} does not hold" for comparison in fared.broken)
    advice = f"as printed it is {theorem.flaw}{stands} ({broken or judgement.advice})"
    return replace(judgement, advice=advice)
