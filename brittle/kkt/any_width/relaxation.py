"""The convex program of one node: multipliers affine in the free signs, as good as they get for all patterns at once.

Free own examples have c_i = (1 + s_i)λ_i/2. With slopes V the others have c_j = -(λ_j/2 + V_j0 + Σ_l V_jl s_l), where
|V_j0| + Σ|V_jl| ≤ λ_j/2, and own examples with a fixed sign c_i = λ_i + V_i0 + Σ_l V_il s_l or the negative of
V_i0 + Σ_l V_il s_l, where V_i0 ≥ Σ|V_il|. The bound is convex in slopes and curvatures together.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from brittle.kkt.any_width.proof import Array, Signs
from brittle.kkt.any_width.side import SideExamples


def into_balls(V: Array, radius: Array) -> Array:
    """The nearest matrix with Σ_l |V_il| ≤ radius_i."""
    sizes = np.abs(V)
    outside = np.flatnonzero(sizes.sum(1) > radius)
    if not len(outside):
        return V
    V = V.copy()
    V[outside] = np.copysign(
        np.maximum(sizes[outside] - _excess(sizes[outside], radius[outside])[:, None], 0), V[outside]
    )
    return V


def into_cones(V: Array) -> Array:
    """The nearest matrix with V_i0 ≥ Σ_l |V_il|."""
    sizes = np.abs(V[:, 1:])
    outside = np.flatnonzero(sizes.sum(1) > V[:, 0])
    if not len(outside):
        return V
    V = V.copy()
    if V.shape[1] == 1:
        V[outside] = np.maximum(V[outside], 0)
        return V
    rest = np.maximum(sizes[outside] - _shrinkage(sizes[outside], V[outside, 0])[:, None], 0)
    V[outside, 1:] = np.copysign(rest, V[outside, 1:])
    V[outside, 0] = rest.sum(1)
    return V


def _excess(sizes: Array, radius: Array) -> Array:
    """θ with Σ max(size - θ, 0) = radius."""
    falling = -np.sort(-sizes, axis=1)
    sums = falling.cumsum(1) - radius[:, None]
    counts = np.maximum((falling * np.arange(1, sizes.shape[1] + 1) > sums).sum(1), 1)
    return np.asarray(np.maximum(sums[np.arange(len(sizes)), counts - 1] / counts, 0))


def _shrinkage(sizes: Array, first: Array) -> Array:
    """θ with Σ max(size - θ, 0) = first + θ, or so large that nothing is left."""
    falling = -np.sort(-sizes, axis=1)
    sums = falling.cumsum(1) - first[:, None]
    counts: NDArray[np.intp] = (falling * np.arange(2, sizes.shape[1] + 2) > sums).sum(1)
    theta = sums[np.arange(len(sizes)), np.maximum(counts, 1) - 1] / (np.maximum(counts, 1) + 1)
    return np.where(counts > 0, theta, np.inf)


# The best curvatures y of a node for given slopes: Newton's method on a barrier.
#
# For p(s) = p̄ + Bs with Q = BᵀB, b = Bᵀp̄ and diag(y) - Q = S⁻¹ positive definite, v̂ = Sb:
#
#     ‖p(s)‖² = D - (s - v̂)ᵀS⁻¹(s - v̂) ≤ D = Σy + ‖p̄‖² + b·v̂     for all s in {±1}^f.
#
# The potential is D - ν log det(diag(y) - Q), with gradient 1 - v̂² - νS_ii and Hessian (2v̂v̂ᵀ + νS)∘S.


NEWTON = 12  # steps
NEAR = 0.05  # a decrement below this share of ν is the end
GROWTH = 1.03  # of curvatures that are too small
ATTEMPTS = 60  # to make them large enough
SHORTEST = 1e-4


class CurvatureChoice(NamedTuple):
    """Curvatures y (f,), the bound D there, the potential, S = (diag y - Q)⁻¹ and v̂ = Sb."""

    y: Array
    bound: float
    potential: float
    S: Array
    v: Array


def choose_curvatures(G: Array, y: Array, nu: float) -> CurvatureChoice | None:
    """From G (f+1, f+1) = [p̄, B]ᵀ[p̄, B] and first curvatures; None if no growth of them is enough."""
    square, b, Q = float(G[0, 0]), G[1:, 0], G[1:, 1:]
    if not len(y):
        return CurvatureChoice(y, square, square, np.zeros((0, 0)), np.zeros(0))
    grown = _large_enough(Q, y)
    if grown is None:
        return None
    y, L = grown
    for _ in range(NEWTON):
        at = _at(L, y, b, square, nu)
        gradient = 1 - at.v * at.v - nu * at.S.diagonal()
        hessian, info = dpotrf((2 * at.v[:, None] * at.v + nu * at.S) * at.S, lower=1, clean=0, overwrite_a=1)
        if info:
            return at
        step = -dpotrs(hessian, gradient, lower=1)[0]
        if -gradient @ step < NEAR * nu:
            return at
        moved = _moved(Q, b, square, nu, at, step)
        if moved is None:
            return at
        y, L = moved
    return _at(L, y, b, square, nu)


def _at(L: Array, y: Array, b: Array, square: float, nu: float) -> CurvatureChoice:
    """What there is to know at curvatures y, whose diag(y) - Q = LLᵀ."""
    inverse = dpotri(L, lower=1)[0]  # its upper triangle is that of L: zero
    S = inverse + inverse.T
    S.flat[:: len(y) + 1] *= 0.5
    v = S @ b
    bound = float(y.sum()) + square + float(b @ v)
    return CurvatureChoice(y, bound, bound - 2 * nu * float(np.log(L.diagonal()).sum()), S, v)


def _factor(Q: Array, y: Array) -> Array | None:
    A = -Q
    A.flat[:: len(y) + 1] += y
    L, info = dpotrf(A.T, lower=1, clean=1, overwrite_a=1)
    return L if info == 0 else None


def _large_enough(Q: Array, y: Array) -> tuple[Array, Array] | None:
    """The curvatures, grown until diag(y) - Q is positive definite, and its factor."""
    for _ in range(ATTEMPTS):
        L = _factor(Q, y)
        if L is not None:
            return y, L
        y = y * GROWTH + 1e-5 * max(1e-3, float(y.max()))
    y = 1.01 * np.abs(Q).sum(1) + 1e-12
    L = _factor(Q, y)
    return None if L is None else (y, L)


def _moved(
    Q: Array, b: Array, square: float, nu: float, at: CurvatureChoice, step: Array
) -> tuple[Array, Array] | None:
    """As far along a step as the potential falls."""
    length = 1.0
    while length > SHORTEST:
        y = at.y + length * step
        L = _factor(Q, y)
        if L is not None:
            bound = float(y.sum()) + square + float(b @ dpotrs(L, b, lower=1)[0])
            if bound - 2 * nu * float(np.log(L.diagonal()).sum()) <= at.potential:
                return y, L
        length *= 0.4
    return None


class RelaxationValue(NamedTuple):
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
class NodeRelaxation:
    """The program of the node in which own examples have these signs (k,), 0 where free.

    fixed: the own examples whose sign is not 0, in the order of their rows of V, which stand below those of the others
    """

    side: SideExamples
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

    def at(self, V: Array, y: Array, nu: float) -> RelaxationValue | None:
        """The program at feasible slopes, its curvatures improved from y; None if numbers are out of reach."""
        G0, linear, K = self._constant
        KV = K @ V
        cross = linear.T @ V
        best = choose_curvatures(G0 + cross + cross.T + V.T @ KV, y, nu)
        if best is None:
            return None
        M = np.empty_like(G0)
        M[0, 0], M[0, 1:], M[1:, 0] = 1, best.v, best.v
        M[1:, 1:] = best.v[:, None] * best.v + nu * best.S
        gradient = 2 * (linear + KV) @ M
        return RelaxationValue(V, best.y, best.bound, best.potential, best.v, best.S.diagonal().copy(), gradient)
