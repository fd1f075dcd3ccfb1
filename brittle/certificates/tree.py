"""Best-first branch and bound on the sign of concave neurons: the lower bound climbs until it meets the upper one."""

import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from brittle.certificates import curvature
from brittle.certificates.local import Array, Local
from brittle.certificates.root import Solved
from brittle.certificates.rounding import ACTIVE, INACTIVE, never_flips, proven_radius
from brittle.certificates.saddle import Saddle

MOST = 128  # curvatures that move in a branch: the looseness sits in a few neurons
Shorten = Callable[[Array], float]  # tries a direction ε as an attack, returns the shortest flip known


@dataclass(frozen=True)
class Branch:
    """A part of the ball, with what is proven of it."""

    solved: Solved
    proven: float

    @property
    def kinds(self) -> NDArray[np.int8]:
        return self.solved.saddle.kinds


@dataclass(frozen=True)
class Tree:
    """Grows branches until the smallest proven radius is within `gap` of the shortest flip, or time is up."""

    local: Local
    gap: float
    deadline: float
    shorten: Shorten

    @property
    def depth(self) -> float:
        return 0.1 * self.gap * float(self.local.values(np.zeros(len(self.local.q))))

    def grow(self, root: Solved) -> float:
        """The radius that is proven in the end."""
        order = itertools.count()
        upper = self.shorten(root.point)
        if len(root.saddle.N) == 0:
            root = self._polish(root, self._enough(upper))
            upper = self.shorten(root.point)
        first = self._judge(root)
        open_, closed = [(first.proven, next(order), first)], np.inf
        while open_ and time.perf_counter() < self.deadline:
            lowest, _, branch = open_[0]
            if lowest >= upper * (1 - self.gap):
                break
            heapq.heappop(open_)
            split = self._choose(branch)
            if split is None:
                closed = min(closed, branch.proven)
                continue
            for kind in (ACTIVE, INACTIVE):
                child = self._child(branch, split, kind, upper)
                upper = self.shorten(child.solved.point)
                heapq.heappush(open_, (child.proven, next(order), child))
        return min(closed, open_[0][0] if open_ else np.inf)

    def _judge(self, solved: Solved, floor: float = 0.0) -> Branch:
        """What holds in a branch holds in its parts."""
        proven = proven_radius(self.local, solved.saddle.dual_point(solved.iterate))
        return Branch(solved, max(proven, floor))

    def _choose(self, branch: Branch) -> int | None:
        """The free neuron whose envelope is loosest at the relaxed point, else the one nearest to its kink."""
        saddle = branch.solved.saddle
        free = saddle.N
        if len(free) == 0:
            return None
        z = self.local.a[free] + self.local.W[free] @ branch.solved.point
        t = -branch.solved.iterate.multiplier * saddle.c / (2 * saddle.k)
        looseness = saddle.k * np.maximum(t**2 - z**2, 0)
        if looseness.max() > 0:
            return int(free[looseness.argmax()])
        return int(free[(np.abs(z) / self.local.sizes[free]).argmin()])

    def _child(self, parent: Branch, split: int, kind: int, upper: float) -> Branch:
        kinds, kappa = parent.kinds.copy(), parent.solved.saddle.kappa.copy()
        kinds[split], kappa[split] = kind, 0.0
        saddle = Saddle(self.local, kinds, kappa, self.depth)
        if never_flips(self.local, kinds):
            return Branch(replace(parent.solved, saddle=saddle), self.local.ball)
        start = parent.solved.iterate
        slopes = start.slopes.copy()
        slopes[split] = start.multiplier * self.local.c[split] if kind == ACTIVE else 0.0
        enough = self._enough(upper)
        solved = Solved(saddle, saddle.solve(replace(start, slopes=slopes), enough, rounds=6, steps=6))
        if solved.iterate.value < enough:
            solved = self._polish(solved, enough)
        return self._judge(solved, parent.proven)

    def _enough(self, upper: float) -> float:
        """A value of F that closes a branch, with something left for rounding."""
        return 0.5 * (upper * (1 - 0.5 * self.gap) * self.local.stretch) ** 2

    def _polish(self, solved: Solved, enough: float) -> Solved:
        """Curvatures for the room that the split made, then tighter multipliers."""
        saddle, now = solved.saddle, solved.iterate
        kappa, N = saddle.kappa.copy(), saddle.N
        if len(N):
            W, z = self.local.W[N], self.local.a[N] + self.local.W[N] @ now.point
            nu = self.gap * max(now.value, 1e-300) / self.local.W.shape[1]
            kappa[N] = curvature.newton(W, -now.multiplier * saddle.c, z, kappa[N], nu, most=MOST)
        saddle = Saddle(self.local, saddle.kinds, kappa, self.depth)
        rounds, steps = (8, 8) if len(N) else (40, 30)  # without free neurons this is the branch's last word
        found = saddle.solve(now, enough, rounds, steps, tolerance=0.01 * self.gap)
        return Solved(saddle, found) if found.value > now.value else solved
