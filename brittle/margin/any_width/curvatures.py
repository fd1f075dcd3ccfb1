"""The best curvatures y of a node for given slopes: Newton's method on a barrier.

For p(s) = p̄ + Bs with Q = BᵀB, b = Bᵀp̄ and diag(y) - Q = S⁻¹ positive definite, v̂ = Sb:

    ‖p(s)‖² = D - (s - v̂)ᵀS⁻¹(s - v̂) ≤ D = Σy + ‖p̄‖² + b·v̂     for all s in {±1}^f.

The potential is D - ν log det(diag(y) - Q), with gradient 1 - v̂² - νS_ii and Hessian (2v̂v̂ᵀ + νS)∘S.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from brittle.margin.any_width.proof import Array

NEWTON = 12  # steps
NEAR = 0.05  # a decrement below this share of ν is the end
GROWTH = 1.03  # of curvatures that are too small
ATTEMPTS = 60  # to make them large enough
SHORTEST = 1e-4


class Curved(NamedTuple):
    """Curvatures y (f,), the bound D there, the potential, S = (diag y - Q)⁻¹ and v̂ = Sb."""

    y: Array
    bound: float
    potential: float
    S: Array
    v: Array


def curved(G: Array, y: Array, nu: float) -> Curved | None:
    """From G (f+1, f+1) = [p̄, B]ᵀ[p̄, B] and first curvatures; None if no growth of them is enough."""
    square, b, Q = float(G[0, 0]), G[1:, 0], G[1:, 1:]
    if not len(y):
        return Curved(y, square, square, np.zeros((0, 0)), np.zeros(0))
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


def _at(L: Array, y: Array, b: Array, square: float, nu: float) -> Curved:
    """What there is to know at curvatures y, whose diag(y) - Q = LLᵀ."""
    inverse = dpotri(L, lower=1)[0]  # its upper triangle is that of L: zero
    S = inverse + inverse.T
    S.flat[:: len(y) + 1] *= 0.5
    v = S @ b
    bound = float(y.sum()) + square + float(b @ v)
    return Curved(y, bound, bound - 2 * nu * float(np.log(L.diagonal()).sum()), S, v)


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


def _moved(Q: Array, b: Array, square: float, nu: float, at: Curved, step: Array) -> tuple[Array, Array] | None:
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
