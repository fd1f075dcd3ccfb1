"""Proofs that the Hessian of L is positive definite: H ⪰ σ·diag(I, λ_1, ..., λ_K) with a σ > 0.

Scaled to Ĥ = SHS, S = diag(I, λ_1^-½, ..., λ_K^-½), it has the diagonal 1, 2, ..., 2 and, beside it, -V_k with
V_k = Λ_k^½ W_k Λ_{k-1}^-½. The chain's proof knows only ceilings over ‖V_k‖; the Cholesky proof knows all of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from scipy.sparse import linalg as sparse_linalg
from torch import Tensor

from brittle.certificates.deep_dual.chain import Chain, LagrangianPoint, hessian
from brittle.certificates.rounding import Array, factor, gamma

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


# λ of a network: as much curvature as its Hessian bears, the same for all examples.


LAST = 1.6  # times the last layer's λ, where only norms are known; below 2, at which H may be singular
LARGEST = 8192  # neurons of a network whose Hessian is factored: half a gigabyte
ROOM = 0.03  # the smallest eigenvalue of the scaled Hessian that is aimed at
HALVINGS = 7
RETREAT = 0.98  # of the stretch, if its proof fails


def of_network(chain: Chain) -> Curvatures:
    """λ_k = s^{k-1}/(‖W_1‖²···‖W_k‖²) with the largest s that is proved; where none is, what the norms prove."""
    plain = [1 / product**2 for product in np.cumprod([norm or 1.0 for norm in chain.norms])]
    last = [*plain[:-1], plain[-1] * LAST]
    found = _stretched(chain, plain) if len(plain) > 1 and sum(chain.widths) <= LARGEST else None
    return found or Curvatures(_tensors(last), chain_floor(chain.norms, last))


def _stretched(chain: Chain, plain: list[float]) -> Curvatures | None:
    weights = [each.matrix.numpy() for each in chain.maps]
    stretch = _largest_stretch(chain, plain)
    while stretch > 1:
        values = _powers(plain, stretch)
        floor = cholesky_floor(weights, [np.asarray(lam) for lam in values], 0.5 * ROOM)
        if floor > 0:
            return Curvatures(_tensors(values), floor)
        stretch *= RETREAT
    return None


def _powers(plain: list[float], stretch: float) -> list[float]:
    return [lam * stretch**place for place, lam in enumerate(plain)]


def _largest_stretch(chain: Chain, plain: list[float]) -> float:
    """An estimate, by bisection."""
    low, high = 1.0, 4.0
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        if smallest_eigenvalue(chain, _tensors(_powers(plain, middle))) >= ROOM:
            low = middle
        else:
            high = middle
    return low


def smallest_eigenvalue(chain: Chain, curvatures: tuple[Tensor, ...]) -> float:
    """An estimate of that of the scaled Hessian, by Lanczos' method."""
    sizes = [chain.maps[0].inputs, *chain.widths]
    scales = [torch.ones((), dtype=torch.float64), *(lam.rsqrt() for lam in curvatures)]

    def product(vector: Array) -> Array:
        parts = torch.split(torch.from_numpy(np.ascontiguousarray(vector).reshape(-1)), sizes)
        delta, *hidden = (scale * part[None] for scale, part in zip(scales, parts, strict=True))
        image = hessian(chain, curvatures, LagrangianPoint(delta, tuple(hidden)))
        whole = [scale * part[0] for scale, part in zip(scales, (image.delta, *image.hidden), strict=True)]
        return torch.cat(whole).numpy()

    operator = sparse_linalg.LinearOperator((sum(sizes),) * 2, matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(sum(sizes))
    try:
        values = sparse_linalg.eigsh(operator, k=1, which="SA", tol=1e-2, v0=start, return_eigenvectors=False)
    except sparse_linalg.ArpackNoConvergence:
        return -math.inf
    return float(values[0])


def _tensors(values: list[float]) -> tuple[Tensor, ...]:
    return tuple(torch.tensor(value, dtype=torch.float64) for value in values)
