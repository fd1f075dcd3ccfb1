"""The radius itself, by branch and bound on a dual bound: that of two layers, or that of all layers."""

import heapq
import itertools
import math
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from brittle.certificates import dual_bound
from brittle.certificates.base import Certificate, LowerBound
from brittle.certificates.deep_dual import DeepDual
from brittle.certificates.deep_exact import choose_search_radius, close_branch
from brittle.certificates.dual import first_iterate, refine, solve_closed_form
from brittle.certificates.dual_bound import Kind, initial_kinds, never_flips
from brittle.certificates.example import Example, RadiusInterval
from brittle.certificates.layers import Layers
from brittle.certificates.margins import LocalModel, RivalMargin, TwoLayerMargins
from brittle.certificates.relaxation import LinearRelaxation
from brittle.certificates.saddle import Saddle, SolvedSaddle
from brittle.certificates.settled_signs import trim
from brittle.common.errors import require_between, require_count, require_positive
from brittle.common.parts import option
from brittle.common.time_limit import TimeLimitReached, time_is_up
from brittle.networks import Network

MOST = 128  # curvatures that move in a branch: the looseness sits in a few neurons
TURNS = 3  # of trimming and polishing a branch, at most
PAYS = 0.9  # another turn, if the last one left less than this share of the gap


@dataclass(frozen=True, eq=False)
class ConcaveBranch:
    """A part of the ball, with what is proven of it."""

    solved: SolvedSaddle
    proven: float


@dataclass(frozen=True, eq=False)
class BranchAndBound:
    """Splits branches until the smallest proven radius is within `gap` of the shortest flip, or time or `nodes` are up.

    The relaxed solutions are those for margin ≤ -depth; each is tried as an attack. Radii are in the margin's unit.
    """

    margin: RivalMargin
    gap: float
    depth: float
    deadline: float
    nodes: float  # branches of the enclosure beyond which none is split

    def run(self, root: SolvedSaddle, enclosure: RadiusInterval) -> tuple[float, RadiusInterval]:
        """The radius that is proven in the end, and the enclosure after all attacks."""
        order = itertools.count()
        if not self._closed(root, enclosure):
            enclosure = self.margin.attacked(enclosure, root.point)
        first = self._close(root, self.margin.ball(enclosure))
        if not self._closed(first.solved, enclosure):
            enclosure = self.margin.attacked(enclosure, first.solved.point)
        enclosure = enclosure.branched()
        open_, closed = [(first.proven, next(order), first)], np.inf
        while open_ and enclosure.nodes < self.nodes and time.perf_counter() < self.deadline and not time_is_up():
            lowest, _, branch = open_[0]
            if lowest >= self._target(self.margin.ball(enclosure)):
                break
            heapq.heappop(open_)
            split = _loosest(branch.solved)
            if split is None:
                closed = min(closed, branch.proven)
                continue
            try:
                children = []
                for kind in (Kind.ACTIVE, Kind.INACTIVE):
                    children.append(self._child(branch, split, kind, self.margin.ball(enclosure)))
                    enclosure = self.margin.attacked(enclosure.branched(), children[-1].solved.point)
            except TimeLimitReached:
                heapq.heappush(open_, (branch.proven, next(order), branch))
                break
            for child in children:
                heapq.heappush(open_, (child.proven, next(order), child))
        return min(closed, open_[0][0] if open_ else np.inf), enclosure

    def _closed(self, solved: SolvedSaddle, enclosure: RadiusInterval) -> bool:
        """Whether no shorter flip is worth looking for in this branch."""
        return solved.value >= self._enough(solved.model, self.margin.ball(enclosure))

    def _target(self, upper: float) -> float:
        """Where a branch needs no more work."""
        return upper * (1 - self.gap)

    def _child(self, parent: ConcaveBranch, split: int, kind: Kind, upper: float) -> ConcaveBranch:
        model, start = parent.solved.model, parent.solved.iterate
        kinds, kappa = parent.solved.saddle.kinds.copy(), parent.solved.saddle.curvatures.copy()
        kinds[split], kappa[split] = kind, 0.0
        saddle = Saddle.at(model, kinds, kappa, self.depth)
        if never_flips(model, kinds):
            return ConcaveBranch(replace(parent.solved, saddle=saddle), model.ball)
        slopes = start.slopes.copy()
        slopes[split] = start.multiplier * model.c[split] if kind is Kind.ACTIVE else 0.0
        iterate = saddle.solve(start._replace(slopes=slopes), self._enough(model, upper), rounds=6, steps=6)
        return self._close(SolvedSaddle(saddle, iterate), upper, parent.proven)

    def _close(self, solved: SolvedSaddle, upper: float, floor: float = 0.0) -> ConcaveBranch:
        """Trim and polish while it pays; what was proven of the branch before (`floor`) still holds."""
        for _ in range(TURNS):
            value, enough = solved.value, self._enough(solved.model, upper)
            if value >= enough or never_flips(solved.model, solved.saddle.kinds):
                break
            solved = self._polish(trim(solved, self._target(upper)), enough)
            if enough - solved.value > PAYS * (enough - value):
                break
        return ConcaveBranch(solved, max(solved.proven_radius, floor))

    def _enough(self, model: LocalModel, upper: float) -> float:
        """A value of F that closes a branch, with something left for rounding."""
        return 0.5 * (upper * (1 - 0.5 * self.gap) * model.stretch) ** 2

    def _polish(self, solved: SolvedSaddle, enough: float) -> SolvedSaddle:
        """Curvatures for the room that was made, then tighter multipliers."""
        start, model, kappa = solved.iterate, solved.model, solved.saddle.curvatures.copy()
        N, _, c, kappa_N = solved.saddle.concave
        if len(N):
            nu = self.gap * max(start.value, 1e-300) / model.W.shape[1]
            C, z = -start.multiplier * c, solved.concave_inputs
            kappa[N] = dual_bound.newton(model.W[N], C, z, kappa_N, nu, most=MOST)
        saddle = Saddle.at(model, solved.saddle.kinds, kappa, self.depth)
        rounds, steps = (8, 8) if len(N) else (40, 30)  # without free neurons this is the branch's last word
        polished = SolvedSaddle(saddle, saddle.solve(start, enough, rounds, steps, tolerance=0.01 * self.gap))
        # As good is enough: the new point may flip where the old one does not.
        return polished if polished.value >= start.value - 1e-12 * abs(start.value) else solved


def _loosest(solved: SolvedSaddle) -> int | None:
    """The free neuron whose envelope is loosest at the relaxed point, else the one nearest to its kink."""
    free, _, c, kappa = solved.saddle.concave
    if len(free) == 0:
        return None
    z, t = solved.concave_inputs, -solved.iterate.multiplier * c / (2 * kappa)
    looseness = kappa * np.maximum(t**2 - z**2, 0)
    if looseness.max() > 0:
        return int(free[looseness.argmax()])
    return int(free[(np.abs(z) / solved.model.sizes[free]).argmin()])


QUICK = 5e8  # multiplications: a relaxation that takes about a second


@dataclass(frozen=True)
class Exact(Certificate):
    """Stops at the relative `gap`, or after `seconds` or `nodes` per example with the gap that is left (anytime).

    What time cuts short depends on the machine; what `nodes` cut short does not. The root of every rival is always
    looked at.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> robust = bt.networks.nearly_orthogonal(data.X, data.y)
        >>> found = bt.certificates.Exact().bound(robust.network, data)
        >>> [round(radius, 6) for radius in found.lower.tolist()]
        [1.414212, 1.414212, 1.414212, 1.414212]
    """

    name: ClassVar[str] = "exact"

    gap: float = field(default=1e-6, metadata=option("The relative gap to reach."))
    seconds: float = field(default=60.0, metadata=option("Time for one example; the gap that is left is shown."))
    nodes: int | None = field(
        default=None, metadata=option("Branches for one example; any number unless given.", check=require_count)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_between("gap", self.gap, 1e-9, 0.5)
        require_positive("seconds", self.seconds)

    @property
    def _gap(self) -> float:
        return self.gap * (1 + 1e-6)

    def prepare(self, network: Network) -> LowerBound:
        if network.depth is not None and network.depth > 2:
            dual = DeepDual.of(network, self.name, refined=False, boxed=False)
            return partial(self._enclose_deep, Layers.of(network, self.name), dual, LinearRelaxation().prepare(network))
        return partial(self._enclose, TwoLayerMargins.of(network, self.name))

    def _enclose_deep(
        self, layers: Layers, dual: DeepDual, relaxed: LowerBound, example: Example, enclosure: RadiusInterval
    ) -> RadiusInterval:
        """At least what the quick dual proves, and what the relaxation proves where that is quick too."""
        deadline = time.perf_counter() + self.seconds
        enclosure = dual.enclose(example, enclosure)
        if enclosure.lower >= choose_search_radius(enclosure, self.gap):
            return enclosure
        margins = layers.around(example.x, enclosure.ball, example.y)
        with suppress(TimeLimitReached):  # what was proved until then holds
            enclosure = close_branch(margins, example, enclosure, self.gap, partial(_expired, deadline), self._most)
            closed = enclosure.lower >= choose_search_radius(enclosure, self.gap)
            if not closed and (enclosure.lower <= 0 or layers.work <= QUICK):
                enclosure = relaxed(example, enclosure)
        return enclosure

    def _enclose(self, margins: TwoLayerMargins, example: Example, enclosure: RadiusInterval) -> RadiusInterval:
        deadline = time.perf_counter() + self.seconds
        radii, rivals = [], list(margins.rivals(example.y))
        for place, rival in enumerate(rivals):
            margin = margins.over(rival, example, enclosure.ball)
            fair = enclosure.nodes + (self._most - enclosure.nodes) / (len(rivals) - place)
            radius, enclosure = self._radius(margin, enclosure, deadline, fair)
            radii.append(margin.unit * radius)
        return enclosure.proven(min(radii))

    @property
    def _most(self) -> float:
        return math.inf if self.nodes is None else self.nodes

    def _radius(
        self, margin: RivalMargin, enclosure: RadiusInterval, deadline: float, nodes: float
    ) -> tuple[float, RadiusInterval]:
        """What is proved of this margin, in its unit, and the enclosure after further attacks."""
        model = margin.model
        if never_flips(model, initial_kinds(model)):
            return model.ball, enclosure
        enough = 0.5 * (model.reach * (1 - 0.5 * self.gap)) ** 2
        depth = 0.1 * self.gap * float(model.values(np.zeros(len(model.q))))
        start = solve_closed_form(model, first_iterate(model, margin.start(enclosure)), enough)
        if start.value < enough:  # otherwise the known flip is as short as any
            enclosure = margin.attacked(enclosure, start.point)
        root = refine(start, margin.ball(enclosure) * (1 - self.gap), min(1e-4, self.gap), enough)
        return BranchAndBound(margin, self.gap, depth, deadline, nodes).run(root, enclosure)


def _expired(deadline: float) -> bool:
    return time.perf_counter() > deadline or time_is_up()
