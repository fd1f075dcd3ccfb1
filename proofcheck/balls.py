"""Balls: every number is a float64 `mid` with a bound `rad` on how far the real one may be from it.

What is trusted: +, -, ·, /, √ of float64 are rounded to nearest, within u = 2⁻⁵³ of the real result, or within TINY of
it below the normal floats; and a product of matrices is made of sums of products, in any order, fused or not, so that
it is within γ_n |A||B| of the real one, γ_n = nu/(1-nu). Radii are floats too: the factor UP pays for their rounding.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Array = NDArray[np.float64]
U, TINY, UP = 2.0**-53, 2.0**-1020, 1 + 2.0**-30
SHIFT = 1e-9  # the least eigenvalue that is asked for, where the diagonal is about 1


def gamma(n: int) -> float:
    return n * U / (1 - n * U) * UP


class Refused(Exception):
    """What is claimed is not proved, or a file cannot be used."""


def require(condition: object, words: str) -> None:
    if not condition:
        raise Refused(words)


@dataclass(frozen=True, eq=False)
class Ball:
    """All real arrays within `rad` of `mid`, entry by entry; NaN and infinity prove nothing."""

    mid: Array
    rad: Array
    __array_ufunc__ = None  # floats must come second, or become balls first: NumPy's own operators refuse

    def __neg__(self) -> "Ball":
        return Ball(-self.mid, self.rad)

    def __add__(self, other: Any) -> "Ball":
        other = ball(other)
        mid = self.mid + other.mid
        return Ball(mid, (self.rad + other.rad + U * abs(mid)) * UP)

    def __sub__(self, other: Any) -> "Ball":
        return self + -ball(other)

    def __mul__(self, other: Any) -> "Ball":
        other = ball(other)
        mid = self.mid * other.mid
        return Ball(mid, (abs(self.mid) * other.rad + self.rad * other.size() + U * abs(mid) + TINY) * UP)

    def __matmul__(self, other: Any) -> "Ball":
        other, n = ball(other), self.mid.shape[-1]
        rad = abs(self.mid) @ (gamma(n + 2) * abs(other.mid) + other.rad + TINY * U) + 2 * n * TINY
        rad = rad + self.rad @ other.size() if self.rad.any() else rad
        return Ball(self.mid @ other.mid, rad * UP)

    def __getitem__(self, where: Any) -> "Ball":
        return Ball(self.mid[where], self.rad[where])

    def widened(self, by: Array) -> "Ball":
        return Ball(self.mid, (self.rad + by * UP) * UP)

    @property
    def T(self) -> "Ball":
        return Ball(self.mid.T, self.rad.T)

    def low(self) -> Array:
        return np.nextafter(self.mid - self.rad, -np.inf)

    def high(self) -> Array:
        return np.nextafter(self.mid + self.rad, np.inf)

    def size(self) -> Array:
        """At least the absolute values."""
        return (abs(self.mid) + self.rad) * UP


def ball(value: Any) -> Ball:
    """A ball as it is, floats as balls of radius 0."""
    return value if isinstance(value, Ball) else Ball(np.asarray(value, dtype=np.float64), np.zeros(np.shape(value)))


def joined(balls: list[Ball]) -> Ball:
    return Ball(np.concatenate([each.mid for each in balls]), np.concatenate([each.rad for each in balls]))


def lengths(V: Any) -> Array:
    """At least ‖v‖ of every column v; of a vector its own."""
    return np.asarray((np.linalg.norm(ball(V).size(), axis=0) + 1e-150) * UP)


def frobenius(V: Array) -> float:
    """At least the root of the sum of all squares."""
    return float(lengths(V.ravel()))


@dataclass(frozen=True, eq=False)
class Definite:
    """SQS ⪰ LLᵀ + σI, S = diag(scale), σ > 0, for every symmetric Q of a ball: Q⁻¹ ⪯ S(LLᵀ)⁻¹S and Q⁻¹ ⪯ S²/σ."""

    L: Array
    scale: Array
    sigma: float

    def solve(self, g: Array) -> Array:
        """About Q⁻¹g."""
        w = solve_triangular(self.L, self.scale * g, lower=True, check_finite=False)
        return np.asarray(self.scale * solve_triangular(self.L, w, lower=True, trans=1, check_finite=False))

    def floor(self, Q: Ball, q: Ball, constant: Ball) -> tuple[float, Array, float]:
        """F := L(v) - ½g·Q⁻¹g, g = Qv + q, which is under L = ½v·Qv + q·v + constant; v, and √(g·Q⁻¹g) or more."""
        v = -self.solve(q.mid)
        v = v - self.solve((Q @ v + q).mid)
        g = Q @ v + q
        rest = float(lengths(g * self.scale) / np.sqrt(self.sigma) * UP)
        return float((constant + ball(v) @ (g + q) * 0.5 - ball(rest) * rest * 0.5).low()), v, rest

    def spread(self, V: Ball) -> tuple[Array, Array]:
        """W and r with √(v·Q⁻¹v) ≤ ‖w‖ + r for every column v, because Sv = Lw + a rest."""
        V = V * self.scale[:, None]
        W = solve_triangular(self.L, V.mid, lower=True, check_finite=False)
        return W, lengths(V - ball(self.L) @ W) / np.sqrt(self.sigma) * UP


def definite(Q: Ball, least: float = SHIFT) -> Definite:
    """A float Cholesky factor L of SQS - shift·I is only a guess: E = SQS - LLᵀ is measured, and E ⪰ σI because
    ‖E - shift·I‖_F ≤ shift - σ.
    """
    diagonal, n = Q.mid.diagonal(), len(Q.mid)
    scale = 2.0 ** np.round(-0.5 * np.log2(np.clip(diagonal, 1e-200, 1e200)))  # products with them are exact
    A, slack = Q.mid * scale[:, None] * scale, frobenius(Q.rad * scale[:, None] * scale) + n * TINY**0.5
    shift = max(least, 8 * (slack + gamma(n + 4) * float(A.trace() + n)))
    A.flat[:: n + 1] -= shift
    try:
        L = np.asarray(np.linalg.cholesky(A), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise Refused("a matrix is not proved to be definite") from None
    off = frobenius(A - L @ L.T) + slack + gamma(n + 4) * (frobenius(L) ** 2 + frobenius(A) + (shift + 4) * n)
    require(off * UP < shift * (1 - 4 * U), "a matrix is not proved to be definite")
    return Definite(L, scale, float((shift - off * UP) * (1 - 4 * U)))
