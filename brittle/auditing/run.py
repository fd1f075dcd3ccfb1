"""The audit: why is this network not robust, exactly how much, and what would help?"""

import time
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Generator, Tensor

from brittle.attacks.subject import Holder, Model, network_for, subject
from brittle.auditing.budget import WorkBudget
from brittle.auditing.causes import Evidence, evidence, explain
from brittle.auditing.costs import (
    AuditPlan,
    at_speed,
    chosen_speed,
    judging_work,
    largest_margin_work,
    limit_work,
    rows_at_once,
    theorem_work,
)
from brittle.auditing.found import HEADLINES, Audit, TheoremRow, applicable
from brittle.auditing.geometry import NearestNeighbourLimit, geometry, limit
from brittle.auditing.pieces import Crew, draw_rows, median, run_serially, select_audited_data
from brittle.auditing.proofs import CertifiedSubject, certifiable, certify
from brittle.auditing.regime import AuditedInstance, training_regime
from brittle.auditing.remedies import PARTS
from brittle.auditing.remedy import Diagnostics, Remedy, RemedyContext
from brittle.auditing.treatment import Baseline, PendingResult, RemedyResult, make_generator, treat
from brittle.auditing.verdict import off_subspace_cost, weaknesses, write_verdict
from brittle.auditing.vulnerability import Vulnerability, attack_examples, measure_ties
from brittle.common.errors import require, require_count, require_positive
from brittle.common.kinds import check_kinds
from brittle.common.progress import Progress, Watch, silent
from brittle.common.threads import one_thread
from brittle.common.time_limit import limit_time, limit_time_to_share
from brittle.data import Data
from brittle.data.arrays import Labels
from brittle.networks import Adapter, Network, as_layered
from brittle.training.base import frozen

Remedies: TypeAlias = str | Remedy | Sequence[str | Remedy] | None

ATTACKS, REMEDIES = 0.65, 0.7  # of the time that is left, that these may take at most


@check_kinds
def audit(
    model: Model,
    X: Holder,
    y: Labels | str | None = None,
    *,
    start: Model | None = None,
    budget: float = 60.0,
    examples: int = 200,
    test: bool = False,
    remedies: Remedies = None,
    speed: float | None = None,
    rng: Generator | None = None,
    crew: Crew = run_serially,
    watch: Watch = silent,
) -> Audit:
    """Audit a network on its training data, for a `budget` of so many seconds of work.

    The model is a network, a torch module or a classifier of scikit-learn. The data are examples X and labels y
    (arrays, tensors, lists, tables; of a table y may name the label column), or in one a `Data`, a torch `Dataset` or a
    `DataLoader`. `start` is the network at its initialisation, where it is known; `examples` is how many are attacked
    at most, held-out ones if `test`; `remedies` are those to try, by name or your own: one, several, "none", or None
    for all that have a name. Work is counted, in passes that take `speed` times as long as their operations on the
    nominal machine: a power of two, measured at the start unless given. The same seed and speed give the same audit,
    unless a time limit ends it: 1.4 budgets of computing or 1.8 by the clock, from the start. The `crew` attacks and
    certifies: `experiments.Executor` in many processes.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> found = bt.audit(network, data, budget=1, remedies="none")
        >>> round(found.vulnerability.free.median, 3), round(found.vulnerability.certified.median_lower, 3)
        (1.0, 1.0)
    """
    whole = WorkBudget(budget, crew=crew)  # its time runs from here on
    with one_thread():  # sums round differently with more, and the same seed is to give the same audit
        network, data, chosen = _checked(model, X, y, start, remedies)
        factor = chosen_speed(network, data, speed)
        with at_speed(factor), limit_time(whole.until):
            plan = _planned(network, data, budget, examples, test, len(chosen))
            rng = rng if rng is not None else torch.Generator().manual_seed(0)
            if isinstance(network, Adapter):
                network = network.in_batches(rows_at_once(network))
            examined = _Examined(network, data, test, frozen(model))
            return _Auditor(examined, plan, rng, whole, watch, factor).run(chosen)


@check_kinds
def plan_audit(
    model: Model,
    X: Holder,
    y: Labels | str | None = None,
    *,
    budget: float = 60.0,
    examples: int = 200,
    test: bool = False,
    remedies: Remedies = None,
    speed: float | None = None,
) -> AuditPlan:
    """What `audit` would do for this budget, at this speed or one that is measured.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> bt.auditing.plan_audit(network, data, budget=10, remedies="none").remedies
        0
    """
    network, data, chosen = _checked(model, X, y, None, remedies)
    with one_thread(), at_speed(chosen_speed(network, data, speed)):
        return _planned(network, data, budget, examples, test, len(chosen))


def _checked(
    model: Model, X: Holder, y: Labels | str | None, start: Model | None, remedies: Remedies
) -> tuple[Network, Data, tuple[Remedy, ...]]:
    chosen = _chosen(remedies)
    known, data = subject(model, X, y)
    network = _started(known, None if start is None else network_for(start, data))
    network.check(data.X, data.y)
    return network, data, chosen


def _planned(network: Network, data: Data, budget: float, examples: int, test: bool, remedies: int) -> AuditPlan:
    require_count("examples", examples)
    require_positive("budget", budget)
    return AuditPlan.of(network, data, len(select_audited_data(data, test)), budget, examples, remedies)


def _chosen(remedies: Remedies) -> tuple[Remedy, ...]:
    if remedies is None:
        return tuple(part() for part in PARTS.values())
    if remedies == "none":
        return ()
    return tuple(map(_remedy, [remedies] if isinstance(remedies, str | Remedy) else remedies))


def _remedy(remedy: str | Remedy) -> Remedy:
    if isinstance(remedy, Remedy):
        return remedy
    require(remedy in PARTS, f"remedy is {remedy!r}; it must be one of {', '.join(PARTS)}, or none")
    return PARTS[remedy]()


def _started(network: Network, start: Network | None) -> Network:
    if start is not None:
        same = type(start) is type(network)
        require(same, "start and model must be networks of the same linear layers")
        now, then = (as_layered(each, "an audit with a start") for each in (network, start))
        network = now.with_layers(now.layers, then.with_layers(then.layers))
    return network.to(torch.float64)


def _strict(weak: Vulnerability) -> float | None:
    """The median of strict flips where ties are closer."""
    return None if weak.tied is None else weak.free.median


def _judged(data: Data, count: int) -> Data:
    """The training examples on which margins are measured: so many of them."""
    return data if count >= len(data) else data.take(draw_rows(data.y, count, torch.Generator().manual_seed(0)))


class _Examined(NamedTuple):
    network: Network
    data: Data
    held_out: bool  # whether the held-out examples are audited
    frozen: str  # why the module is not to be trained, if so


class _Auditor:
    """One audit under way: what each section leaves of its work goes to those after it."""

    def __init__(
        self, examined: _Examined, plan: AuditPlan, rng: Generator, budget: WorkBudget, watch: Watch, speed: float
    ) -> None:
        self.network, self.data, self.held_out, self.frozen = examined
        self.plan, self.rng, self.budget, self.watch, self.cut = plan, rng, budget, watch, list[str]()
        self.speed, self.judged = speed, _judged(examined.data, plan.judged)

    def run(self, remedies: tuple[Remedy, ...]) -> Audit:
        begun = time.perf_counter()
        self._tell("data geometry")
        shape = geometry(self.data, self.plan.geometry_rows, self.plan.paired)
        self.budget.charge(self.plan.geometry_work(self.data))
        self._tell("training regime")
        instance = AuditedInstance(self.data, self.network, kkt_measured=self.plan.kkt)
        whole = len(self.judged) == len(self.data)
        with limit_time(None):
            regime = training_regime(
                instance if whole else AuditedInstance(self.judged, self.network, kkt_measured=False)
            )
        self.budget.charge(2 * judging_work(self.network, len(self.judged)))
        if regime.share_of_largest_margin is not None:
            self.budget.charge(largest_margin_work(self.data))
        self._tell("attacks")
        with limit_time_to_share(ATTACKS):
            weak, some = self._vulnerability(shape.basis)
        with limit_time(None):
            reasons = explain(self.network, some.take(weak.free.rows), shape.basis, weak.perturbations)
        self._tell("theorems")
        theorems = self._theorems(instance)
        bound = self._limit(weak, some)
        with limit_time_to_share(REMEDIES):
            cases = self._treat(remedies, shape.basis, weak, some, bound)
        weak, treatments = self._prove(weak, some, cases)
        bound = None if bound is None else bound.proving(None if weak.certified is None else weak.certified.lower)
        with limit_time(None):
            tells = self._evidence(weak, some, bound)
        named = weaknesses(shape, regime, weak, reasons, tells, bound)
        return Audit(
            verdict=write_verdict(weak, bound, treatments, named, self.cut),
            weaknesses=tuple(named),
            network=self.network.description,
            geometry=shape,
            regime=regime,
            vulnerability=weak,
            limit=bound,
            explanation=reasons,
            evidence=tells,
            theorems=theorems,
            remedies=treatments,
            plan=self.plan,
            speed=self.speed,
            partial=tuple(self.cut),
            work=self.budget.spent,
            budget=self.plan.budget,
            seconds=time.perf_counter() - begun,
            model=self.network,
            data=self.data,
        )

    def _vulnerability(self, basis: Tensor | None) -> tuple[Vulnerability, Data]:
        """All attacks, on examples that are drawn once."""
        pool = select_audited_data(self.data, self.held_out)
        rows = draw_rows(pool.y, self.plan.examples, make_generator(self.rng))
        some = pool.take(rows)
        found = attack_examples(self.network, some, basis, self.rng, self.budget)
        weak = Vulnerability(
            examples=rows,
            held_out=self.held_out,
            available=len(pool),
            norm_of_examples=median(torch.linalg.vector_norm(some.X, dim=1)),
            gradient_step=found.gradient_step,
            free=found.free,
            tied=measure_ties(self.network, some, found.free, found.perturbations, self.rng, self.budget),
            on=found.on,
            off=found.off,
            universal=found.universal,
            certified=None,
            perturbations=found.perturbations,
        )
        named = {"free": weak.free, "on": weak.on, "off": weak.off, "gradient step": weak.gradient_step}
        self.cut += [f"radii {name}" for name, radii in named.items() if radii is not None and radii.partial]
        return weak, some

    def _theorems(self, instance: AuditedInstance) -> tuple[TheoremRow, ...]:
        if not self.plan.theorems:
            return ()
        with limit_time_to_share(ATTACKS):
            rows = applicable(instance, self.budget)
        self.budget.charge(theorem_work(self.data))
        if len(rows) < len(HEADLINES):
            self.cut.append("theorems")
        return rows

    def _treat(
        self,
        remedies: tuple[Remedy, ...],
        basis: Tensor | None,
        weak: Vulnerability,
        some: Data,
        bound: NearestNeighbourLimit | None,
    ) -> tuple[PendingResult, ...]:
        """Every remedy, on all that the proofs do not need."""
        data = self.data
        if data.y_test is not None and len(data.y_test) > self.plan.judged:
            data = data.take_test(draw_rows(data.y_test, self.plan.judged, torch.Generator().manual_seed(0)))
        patient, cases = RemedyContext(self.network, data, basis, weak.kept.median, self.frozen), list[PendingResult]()
        with limit_time(None):  # once for all
            patient.judged_accuracy  # noqa: B018
        signs = Diagnostics(None if bound is None else bound.share, off_subspace_cost(weak))
        before = Baseline(some, weak.kept.norms, None if bound is None else bound.radii, signs, _strict(weak))
        for place, remedy in enumerate(remedies):
            self._tell(f"remedy: {remedy.name}")
            work = (self.budget.left - self.plan.proof_work) / (len(remedies) - place)
            with limit_time_to_share(min(1.0, 2 / (len(remedies) - place))):
                cases.append(treat(remedy, patient, before, make_generator(self.rng), self.budget.grant(work)))
                if self.budget.late:
                    self.cut.append(f"remedy {remedy.name}")
        return tuple(cases)

    def _prove(
        self, weak: Vulnerability, some: Data, cases: tuple[PendingResult, ...]
    ) -> tuple[Vulnerability, tuple[RemedyResult, ...]]:
        """Certificates of the network as it is and of what the remedies made of it, with all work that is left."""
        self._tell("certificates")
        promising = sorted(range(len(cases)), key=lambda place: -cases[place].treatment.gain)
        made = {place: subject for place in promising if (subject := cases[place].subject) is not None}
        subjects = [CertifiedSubject(self.network, weak.perturbations), *made.values()]
        before, *after = certify(subjects, some, self.budget)
        none = before is None and certifiable(self.network) and self.budget.late
        if none or any(each is not None and each.partial for each in (before, *after)):
            self.cut.append("certificates")
        proofs = dict(zip(made, after, strict=True))
        treatments = tuple(case.proved(before, proofs.get(place)) for place, case in enumerate(cases))
        return weak.proved(before), treatments

    def _limit(self, weak: Vulnerability, some: Data) -> NearestNeighbourLimit | None:
        self.budget.charge(limit_work(self.data, len(some)))
        return limit(self.data, some, weak.kept.norms)

    def _evidence(self, weak: Vulnerability, some: Data, bound: NearestNeighbourLimit | None) -> Evidence:
        self.budget.charge(limit_work(self.data.take(torch.arange(self.plan.paired)), self.plan.paired))
        margins = self.network.margins(self.judged.X, self.judged.y).double()
        return evidence(margins, self.data, some, weak, bound, self.plan.paired)

    def _tell(self, what: str) -> None:
        self.watch(Progress(min(1.0, self.budget.spent / self.budget.seconds), what))
