"""The convex program of one node: multipliers affine in the free signs, as good as they get for all patterns at once.

Free own examples have c_i = (1 + s_i)λ_i/2. With slopes V the others have c_j = -(λ_j/2 + V_j0 + Σ_l V_jl s_l), where
|V_j0| + Σ|V_jl| ≤ λ_j/2, and own examples with a fixed sign c_i = λ_i + V_i0 + Σ_l V_il s_l or the negative of
V_i0 + Σ_l V_il s_l, where V_i0 ≥ Σ|V_il|. The bound of `curvatures.py` is convex in slopes and curvatures together.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brittle.margin.any_width.curvatures import curved
from brittle.margin.any_width.proof import Array, Signs
from brittle.margin.any_width.rows import into_balls, into_cones
from brittle.margin.any_width.side import Side


class Value(NamedTuple):
    """The program at slopes V, with the best curvatures y there.

    bound: D, at least the squared gain of every pattern of the node; potential: D with the barrier
    v, spread (f,): v̂ and the diagonal of S; gradient: of the potential in V
    """

    V: Array
    y: Array
    bound: float
    potential: float
    v: Array
    spread: Array
    gradient: Array

    def excluded(self, threshold: float) -> Array:
        """For each free example the sign that it must have where a gain exceeds √threshold, 0 if it may have both.

        Patterns with s_i = -σ lie at most at D - (1 + σv̂_i)²/S_ii.
        """
        if self.bound <= threshold or not len(self.v):
            return np.zeros(len(self.v))
        settled = (1 + np.abs(self.v)) ** 2 > (self.bound - threshold) * self.spread * (1 + 1e-9)
        return np.where(settled, np.where(self.v >= 0, 1.0, -1.0), 0.0)


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The program of the node in which own examples have these signs (k,), 0 where free.

    fixed: the own examples whose sign is not 0, in the order of their rows of V, which stand below those of the others
    """

    side: Side
    signs: Signs
    fixed: NDArray[np.intp]

    @cached_property
    def free(self) -> NDArray[np.intp]:
        """The own examples whose sign is 0."""
        return np.flatnonzero(self.signs == 0)

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """The examples of the rows of V."""
        return np.concatenate([np.arange(self.side.k, len(self.side.K)), self.fixed])

    @cached_property
    def directions(self) -> Array:
        """±1 for each row: by which sign V enters c."""
        return np.concatenate([-np.ones(len(self.side.others)), self.signs[self.fixed].astype(np.float64)])

    @cached_property
    def anchor(self) -> Array:
        """c for own and other examples where s = 0 and V = 0."""
        k, lam = self.side.k, self.side.lam
        return np.concatenate([lam[:k] * (1 + self.signs) / 2, -lam[k:] / 2])

    @cached_property
    def _constant(self) -> tuple[Array, Array, Array]:
        """G at V = 0, half its gradient (r, f+1), and K on the rows with their directions."""
        K, half = self.side.K, self.side.lam[self.free] / 2
        heights, columns = K @ self.anchor, K[:, self.free] * half
        G = np.empty((len(half) + 1, len(half) + 1))
        G[0, 0] = self.anchor @ heights
        G[0, 1:] = G[1:, 0] = half * heights[self.free]
        G[1:, 1:] = half[:, None] * columns[self.free]
        linear = self.directions[:, None] * np.concatenate([heights[self.rows, None], columns[self.rows]], 1)
        return G, linear, K[np.ix_(self.rows, self.rows)] * self.directions[:, None] * self.directions

    def feasible(self, V: Array) -> Array:
        """The nearest slopes that are allowed."""
        count = len(self.side.others)
        return np.concatenate([into_balls(V[:count], self.side.lam[self.side.k :] / 2), into_cones(V[count:])])

    def bound(self, V: Array, y: Array) -> float:
        """D at feasible slopes and curvatures as they are."""
        G0, linear, K = self._constant
        cross = linear.T @ V
        G = G0 + cross + cross.T + V.T @ (K @ V)
        A = np.diag(y) - G[1:, 1:]
        return float(y.sum() + G[0, 0] + G[1:, 0] @ np.linalg.solve(A, G[1:, 0]))

    def at(self, V: Array, y: Array, nu: float) -> Value | None:
        """The program at feasible slopes, its curvatures improved from y; None if numbers are out of reach."""
        G0, linear, K = self._constant
        KV = K @ V
        cross = linear.T @ V
        best = curved(G0 + cross + cross.T + V.T @ KV, y, nu)
        if best is None:
            return None
        M = np.empty_like(G0)
        M[0, 0], M[0, 1:], M[1:, 0] = 1, best.v, best.v
        M[1:, 1:] = best.v[:, None] * best.v + nu * best.S
        gradient = 2 * (linear + KV) @ M
        return Value(V, best.y, best.bound, best.potential, best.v, best.S.diagonal().copy(), gradient)
