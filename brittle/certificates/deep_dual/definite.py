"""Proofs that the Hessian of L is positive definite: H ⪰ σ·diag(I, λ_1, ..., λ_K) with a σ > 0.

Scaled to Ĥ = SHS, S = diag(I, λ_1^-½, ..., λ_K^-½), it has the diagonal 1, 2, ..., 2 and, beside it, -V_k with
V_k = Λ_k^½ W_k Λ_{k-1}^-½. The chain's proof knows only ceilings over ‖V_k‖; the Cholesky proof knows all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from torch import Tensor

from brittle.certificates.cholesky import factor
from brittle.certificates.rounding import gamma
from brittle.certificates.scales import Array

SHARE = 0.9  # of the smallest eigenvalue that is estimated: the rest pays for the estimate's rounding


@dataclass(frozen=True, eq=False)
class Curvatures:
    """λ_k of every layer, () or (width_k,), and a σ that one of the functions here proved for them; 0: none."""

    values: tuple[Tensor, ...]
    floor: float


def chain_floor(norms: Sequence[float], curvatures: Sequence[float]) -> float:
    """σ for one λ_k per layer, from ceilings over ‖W_k‖; 0 if they prove nothing.

    With u = (‖δ‖, √λ_1‖h_1‖, ..., √λ_K‖h_K‖) the form is at least u·Tu: T has the diagonal 1, 2, ..., 2 and -‖V_k‖
    beside it. The pivots of T - σI are computed in fractions.
    """
    if not _usable(norms, curvatures):
        return 0.0
    squares = [
        Fraction(norm) ** 2 * Fraction(lam) / Fraction(before)
        for norm, lam, before in zip(norms, curvatures, (1.0, *curvatures[:-1]), strict=True)
    ]
    beside = np.sqrt([float(square) for square in squares])
    T = np.diag([1.0] + [2.0] * len(norms)) - np.diag(beside, 1) - np.diag(beside, -1)
    floor = SHARE * float(np.linalg.eigvalsh(T)[0])
    return floor if floor > 0 and _pivots_are_positive(squares, Fraction(floor)) else 0.0


def _usable(norms: Sequence[float], curvatures: Sequence[float]) -> bool:
    return all(0 < lam < np.inf for lam in curvatures) and all(0 <= norm < np.inf for norm in norms)


def _pivots_are_positive(squares: list[Fraction], floor: Fraction) -> bool:
    pivot = 1 - floor
    for square in squares:
        if pivot <= 0:
            return False
        pivot = 2 - floor - square / pivot
    return pivot > 0


def cholesky_floor(weights: Sequence[Array], curvatures: Sequence[Array], wanted: float) -> float:
    """`wanted` if it is proved to be a σ, otherwise 0; λ_k () or (width_k,), and numbers near 1."""
    vectors = [np.broadcast_to(lam, len(W)) for W, lam in zip(weights, curvatures, strict=True)]
    if not (0 < wanted < 0.99 and all((lam > 0).all() and np.isfinite(lam).all() for lam in vectors)):
        return 0.0
    matrix, slip = _complement(weights, vectors, wanted * (1 + 1e-12))
    # A factorisation that succeeds proves A + E ⪰ 0 with ‖E‖ ≤ γ_{n+1} tr A (Rump).
    slip += gamma(len(matrix) + 2) * 2 * len(matrix)
    matrix.flat[:: len(matrix) + 1] -= 2 * slip
    return wanted if np.isfinite(slip) and factor(matrix) is not None else 0.0


def _complement(weights: Sequence[Array], curvatures: Sequence[Array], floor: float) -> tuple[Array, float]:
    """The Schur complement of the block of δ in Ĥ - floor·I, and a bound on its rounding in the spectral norm.

    It is as definite as the whole, since the block is (1 - floor)·I.
    """
    ends = np.cumsum([0, *(len(W) for W in weights)])
    matrix = np.zeros((ends[-1], ends[-1]))
    roots = [np.sqrt(lam) for lam in curvatures]
    scaled = roots[0][:, None] * weights[0]
    first = slice(0, ends[1])
    matrix[first, first] = -(scaled @ scaled.T) / (1 - floor)
    slip = gamma(weights[0].shape[1] + 16) * float((scaled**2).sum()) / (1 - floor)
    for layer in range(1, len(weights)):
        rows, columns = slice(ends[layer], ends[layer + 1]), slice(ends[layer - 1], ends[layer])
        block = -roots[layer][:, None] * weights[layer] / roots[layer - 1]
        matrix[rows, columns], matrix[columns, rows] = block, block.T
        slip += gamma(16) * float(np.linalg.norm(block))
    matrix.flat[:: len(matrix) + 1] += 2 - floor
    return matrix, slip + gamma(8) * 2
