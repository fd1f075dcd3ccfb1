"""Best-first branch and bound on the sign of concave neurons: the lower bound climbs until it meets the upper one."""

import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from brittle.certificates import curvature
from brittle.certificates.dual_bound import Kind, never_flips, proven_radius
from brittle.certificates.dual_start import Solved, trim
from brittle.certificates.neighbourhood import LocalModel
from brittle.certificates.saddle import Saddle
from brittle.certificates.scales import Array

MOST = 128  # curvatures that move in a branch: the looseness sits in a few neurons
TURNS = 3  # of trimming and polishing a branch, at most
PAYS = 0.9  # another turn, if the last one left less than this share of the gap
Shorten = Callable[[Array], float]  # tries a direction ε as an attack, returns the shortest flip known


@dataclass(frozen=True)
class Branch:
    """A part of the ball, with what is proven of it."""

    solved: Solved
    proven: float


@dataclass(frozen=True)
class Tree:
    """Grows branches until the smallest proven radius is within `gap` of the shortest flip, or time is up.

    The relaxed solutions are those for margin ≤ -depth.
    """

    gap: float
    depth: float
    deadline: float
    shorten: Shorten

    def grow(self, root: Solved) -> float:
        """The radius that is proven in the end."""
        order = itertools.count()
        first = self._close(root, self.shorten(root.point))
        upper = self.shorten(first.solved.point)
        open_, closed = [(first.proven, next(order), first)], np.inf
        while open_ and time.perf_counter() < self.deadline:
            lowest, _, branch = open_[0]
            if lowest >= self._target(upper):
                break
            heapq.heappop(open_)
            split = _loosest(branch.solved)
            if split is None:
                closed = min(closed, branch.proven)
                continue
            for kind in (Kind.ACTIVE, Kind.INACTIVE):
                child = self._child(branch, split, kind, upper)
                upper = self.shorten(child.solved.point)
                heapq.heappush(open_, (child.proven, next(order), child))
        return min(closed, open_[0][0] if open_ else np.inf)

    def _target(self, upper: float) -> float:
        """Where a branch needs no more work."""
        return upper * (1 - self.gap)

    def _child(self, parent: Branch, split: int, kind: Kind, upper: float) -> Branch:
        model = parent.solved.saddle.model
        kinds, kappa = parent.solved.saddle.kinds.copy(), parent.solved.saddle.kappa.copy()
        kinds[split], kappa[split] = kind, 0.0
        saddle = Saddle(model, kinds, kappa, self.depth)
        if never_flips(model, kinds):
            return Branch(replace(parent.solved, saddle=saddle), model.ball)
        start = parent.solved.iterate
        slopes = start.slopes.copy()
        slopes[split] = start.multiplier * model.c[split] if kind == Kind.ACTIVE else 0.0
        start = saddle.solve(replace(start, slopes=slopes), self._enough(model, upper), rounds=6, steps=6)
        return self._close(Solved(saddle, start), upper, parent.proven)

    def _close(self, solved: Solved, upper: float, floor: float = 0.0) -> Branch:
        """Trim and polish while it pays; what held of the branch before (`floor`) still holds."""
        for _ in range(TURNS):
            model, value = solved.saddle.model, solved.iterate.value
            enough = self._enough(model, upper)
            if value >= enough or never_flips(model, solved.saddle.kinds):
                break
            solved = self._polish(trim(solved, self._target(upper)), enough)
            if enough - solved.iterate.value > PAYS * (enough - value):
                break
        proven = proven_radius(solved.saddle.model, solved.saddle.dual_point(solved.iterate))
        return Branch(solved, max(proven, floor))

    def _enough(self, model: LocalModel, upper: float) -> float:
        """A value of F that closes a branch, with something left for rounding."""
        return 0.5 * (upper * (1 - 0.5 * self.gap) * model.stretch) ** 2

    def _polish(self, solved: Solved, enough: float) -> Solved:
        """Curvatures for the room that was made, then tighter multipliers."""
        saddle, now, model = solved.saddle, solved.iterate, solved.saddle.model
        kappa, N = saddle.kappa.copy(), saddle.N
        if len(N):
            W, z = model.W[N], model.a[N] + model.W[N] @ now.point
            nu = self.gap * max(now.value, 1e-300) / model.W.shape[1]
            kappa[N] = curvature.newton(W, -now.multiplier * saddle.c, z, kappa[N], nu, most=MOST)
        saddle = Saddle(model, saddle.kinds, kappa, self.depth)
        rounds, steps = (8, 8) if len(N) else (40, 30)  # without free neurons this is the branch's last word
        found = saddle.solve(now, enough, rounds, steps, tolerance=0.01 * self.gap)
        # As good is enough: the new point may flip where the old one does not.
        return Solved(saddle, found) if found.value >= now.value - 1e-12 * abs(now.value) else solved


def _loosest(solved: Solved) -> int | None:
    """The free neuron whose envelope is loosest at the relaxed point, else the one nearest to its kink."""
    saddle, model = solved.saddle, solved.saddle.model
    free = saddle.N
    if len(free) == 0:
        return None
    z = model.a[free] + model.W[free] @ solved.point
    t = -solved.iterate.multiplier * saddle.c / (2 * saddle.k)
    looseness = saddle.k * np.maximum(t**2 - z**2, 0)
    if looseness.max() > 0:
        return int(free[looseness.argmax()])
    return int(free[(np.abs(z) / model.sizes[free]).argmin()])
