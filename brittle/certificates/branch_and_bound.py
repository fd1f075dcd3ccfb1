"""Best-first branch and bound on the sign of concave neurons: the lower bound climbs until it meets the upper one."""

import heapq
import itertools
import time
from dataclasses import dataclass, replace

import numpy as np

from brittle.certificates import curvature
from brittle.certificates.dual_bound import Kind, never_flips
from brittle.certificates.example import Enclosure
from brittle.certificates.margins import RivalMargin
from brittle.certificates.neighbourhood import LocalModel
from brittle.certificates.saddle import Saddle, Solved
from brittle.certificates.settled_signs import trim
from brittle.common.time_limit import TimeLimitReached, time_is_up

MOST = 128  # curvatures that move in a branch: the looseness sits in a few neurons
TURNS = 3  # of trimming and polishing a branch, at most
PAYS = 0.9  # another turn, if the last one left less than this share of the gap


@dataclass(frozen=True, eq=False)
class Branch:
    """A part of the ball, with what is proven of it."""

    solved: Solved
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

    def run(self, root: Solved, enclosure: Enclosure) -> tuple[float, Enclosure]:
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

    def _closed(self, solved: Solved, enclosure: Enclosure) -> bool:
        """Whether no shorter flip is worth looking for in this branch."""
        return solved.value >= self._enough(solved.model, self.margin.ball(enclosure))

    def _target(self, upper: float) -> float:
        """Where a branch needs no more work."""
        return upper * (1 - self.gap)

    def _child(self, parent: Branch, split: int, kind: Kind, upper: float) -> Branch:
        model, start = parent.solved.model, parent.solved.iterate
        kinds, kappa = parent.solved.saddle.kinds.copy(), parent.solved.saddle.curvatures.copy()
        kinds[split], kappa[split] = kind, 0.0
        saddle = Saddle.at(model, kinds, kappa, self.depth)
        if never_flips(model, kinds):
            return Branch(replace(parent.solved, saddle=saddle), model.ball)
        slopes = start.slopes.copy()
        slopes[split] = start.multiplier * model.c[split] if kind is Kind.ACTIVE else 0.0
        iterate = saddle.solve(start._replace(slopes=slopes), self._enough(model, upper), rounds=6, steps=6)
        return self._close(Solved(saddle, iterate), upper, parent.proven)

    def _close(self, solved: Solved, upper: float, floor: float = 0.0) -> Branch:
        """Trim and polish while it pays; what was proven of the branch before (`floor`) still holds."""
        for _ in range(TURNS):
            value, enough = solved.value, self._enough(solved.model, upper)
            if value >= enough or never_flips(solved.model, solved.saddle.kinds):
                break
            solved = self._polish(trim(solved, self._target(upper)), enough)
            if enough - solved.value > PAYS * (enough - value):
                break
        return Branch(solved, max(solved.proven_radius, floor))

    def _enough(self, model: LocalModel, upper: float) -> float:
        """A value of F that closes a branch, with something left for rounding."""
        return 0.5 * (upper * (1 - 0.5 * self.gap) * model.stretch) ** 2

    def _polish(self, solved: Solved, enough: float) -> Solved:
        """Curvatures for the room that was made, then tighter multipliers."""
        start, model, kappa = solved.iterate, solved.model, solved.saddle.curvatures.copy()
        N, _, c, kappa_N = solved.saddle.concave
        if len(N):
            nu = self.gap * max(start.value, 1e-300) / model.W.shape[1]
            C, z = -start.multiplier * c, solved.concave_inputs
            kappa[N] = curvature.newton(model.W[N], C, z, kappa_N, nu, most=MOST)
        saddle = Saddle.at(model, solved.saddle.kinds, kappa, self.depth)
        rounds, steps = (8, 8) if len(N) else (40, 30)  # without free neurons this is the branch's last word
        polished = Solved(saddle, saddle.solve(start, enough, rounds, steps, tolerance=0.01 * self.gap))
        # As good is enough: the new point may flip where the old one does not.
        return polished if polished.value >= start.value - 1e-12 * abs(start.value) else solved


def _loosest(solved: Solved) -> int | None:
    """The free neuron whose envelope is loosest at the relaxed point, else the one nearest to its kink."""
    free, _, c, kappa = solved.saddle.concave
    if len(free) == 0:
        return None
    z, t = solved.concave_inputs, -solved.iterate.multiplier * c / (2 * kappa)
    looseness = kappa * np.maximum(t**2 - z**2, 0)
    if looseness.max() > 0:
        return int(free[looseness.argmax()])
    return int(free[(np.abs(z) / solved.model.sizes[free]).argmin()])
