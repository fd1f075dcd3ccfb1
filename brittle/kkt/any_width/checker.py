"""Is a proof of a margin right? Judged from the data and the arrays alone; nothing of the search is used here.

*Weak duality.* Every network with margins of at least 1 has Σλ ≤ Σ λ_i q_i ≤ P·G(λ), with P = Σ|v_j|‖w̃_j‖ ≤ ‖θ‖²/2
and G(λ) the largest gain s Σ λ_i y_i φ(u·x̃_i) of a unit neuron u with sign s. So γ* ≤ G(λ)/(2Σλ), over every width.

*A leaf.* Where c_i ≥ λ_i on own examples with sign +, c_i ≤ 0 on own ones with sign -, and -λ_j ≤ c_j ≤ 0 on others,
each term of the gain is at most c_i u·x̃_i, so the gain is at most ‖Σ c_i x̃_i‖. With c affine in the free signs s the
sum is p̄ + Bs, and ‖p̄ + Bs‖² ≤ τ + Σy for all s ∈ {±1}^f if diag(τ, y) - [p̄, B]ᵀ[p̄, B] is positive semidefinite.
Fixing the sign of a free example adds its column to p̄ or takes it away: the matrix [p̄, B]T, with the Gram matrix TᵀGT.

*Rounding.* Multipliers are first made feasible as floats, so only B, its Gram matrix and the factor are rounded: the
errors of the first two are bounded by γ_n times sums of absolute values, and a Cholesky factor of the matrix less all
of it and less γ times its trace shows that the real matrix is positive semidefinite (Rump 2006).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg.lapack import dpotrf

from brittle.common.errors import InputError
from brittle.common.result import Result
from brittle.data import Data
from brittle.geometry.vectors import ROUNDOFF, UNDERFLOW, gamma
from brittle.kkt.any_width.proof import Array, MarginProof, ProofPoint, Signs, free_and_rest, sizes
from proofcheck.proof import digest

AT_ONCE = 20_000_000  # pairs of leaves that are compared together


def compute_coverage(signs: Signs) -> Fraction:
    """Σ 2^-depth: which share of all patterns leaves (L, k) hold, if no two of them share one."""
    depths = Counter(np.count_nonzero(signs, axis=1).tolist())
    return sum((Fraction(count, 2**depth) for depth, count in depths.items()), Fraction(0))


def overlap(signs: Signs) -> tuple[int, int] | None:
    """Two leaves with a pattern in common: no example has + in one and - in the other."""
    plus, minus = (signs == 1).astype(np.float32), (signs == -1).astype(np.float32)
    count = max(1, AT_ONCE // max(1, len(signs)))
    for begin in range(0, len(signs), count):
        part = slice(begin, begin + count)
        clashes = plus[part] @ minus.T + minus[part] @ plus.T
        rows = np.arange(len(clashes))
        clashes[rows, begin + rows] = 1  # a leaf is not compared with itself
        if not clashes.all():
            row, column = np.argwhere(clashes == 0)[0]
            return begin + int(row), int(column)
    return None


LARGEST, SMALLEST = 1e100, 1e-100  # numbers of this size do not leave the floats when two of them are multiplied
RAISES = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4, 1e-2, 1.0)  # of a ceiling that cannot be confirmed


@dataclass(frozen=True)
class CheckedMargin(Result):
    """What a proof establishes, rounding included.

    accepted: whether everything in it was confirmed
    reason: what was not
    normalised_margin: the network's γ = min q/‖θ‖² is at least this
    upper: no network of any width has a larger one; infinite if the proof was refused
    leaves: how many parts the sign patterns were split into

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> found = bt.kkt.gap(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> bt.kkt.check_margin(found.proof, data).accepted
        True
    """

    accepted: bool
    reason: str
    normalised_margin: float
    upper: float
    leaves: int

    @property
    def proved_gap(self) -> float:
        """upper/γ - 1: by so much, at most, is the largest margin larger."""
        return self.upper / self.normalised_margin - 1 if self.normalised_margin > 0 else float("inf")

    def content(self) -> dict[str, object]:
        """The fields with the gap between them."""
        return {**super().content(), "proved_gap": self.proved_gap}


class ProofRefused(Exception):
    """Why a proof is not accepted."""


def check(proof: MarginProof, data: Data) -> CheckedMargin:
    """Confirm a proof about these data, or say what in it cannot be confirmed.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> best = bt.kkt.largest(data, gap=1e-3)
        >>> bt.kkt.check_margin(best.proof, data).accepted
        True
    """
    data.require_binary()
    X, y = rows(data, proof.biases), data.y.numpy()
    try:
        _check_numbers(proof, X, y)
        lower = network_margin(proof, X, y)
        _check_cover(proof, y)
        wrong = find_unconfirmed(proof, X, y, proof.ceiling, range(len(proof.leaves)))
        if wrong:
            raise ProofRefused(f"the bound of leaf {wrong[0]} and of {len(wrong) - 1} others cannot be confirmed")
    except ProofRefused as why:
        return CheckedMargin(False, str(why), 0.0, float("inf"), len(proof.leaves))
    return CheckedMargin(True, "", lower, upper_margin(proof), len(proof.leaves))


def rows(data: Data, biases: bool) -> Array:
    """x̃: the examples, with a one behind them where there are biases."""
    X = data.X.numpy()
    return np.concatenate([X, np.ones((len(X), 1))], 1) if biases else X


def upper_margin(proof: MarginProof) -> float:
    """√ceiling/(2Σλ), rounded up."""
    return float(np.sqrt(proof.ceiling) / (2 * proof.lam.sum()) * (1 + gamma(len(proof.lam) + 8)))


def network_margin(proof: MarginProof, X: Array, y: Array) -> float:
    """min q/‖θ‖² of the proof's network, rounded down."""
    network = proof.network
    if not network.homogeneous or network.dim + proof.biases != X.shape[1]:
        raise ProofRefused("the network does not fit the data, or has an output bias")
    if not proof.biases and bool((network.b != 0).any()):
        raise ProofRefused("the network has biases, which take no part")
    W = torch.cat([network.W, network.b[:, None]], 1)[:, : X.shape[1]].double().numpy()
    v = network.v.double().numpy()
    Z, sizes_of_Z = X @ W.T, np.abs(X) @ np.abs(W.T)
    q = y * (np.maximum(Z, 0) @ v)
    error = gamma(len(v) + 2) * (np.abs(Z) @ np.abs(v)) + gamma(X.shape[1] + 2) * (sizes_of_Z @ np.abs(v)) + UNDERFLOW
    norm = float((W * W).sum() + v @ v) * (1 + gamma(W.size + len(v))) + UNDERFLOW
    return max(0.0, float((q - error).min()) / norm * (1 - gamma(4)))


def _check_numbers(proof: MarginProof, X: Array, y: Array) -> None:
    """Everything is finite, in range, of the right shape and about these data."""
    if proof.digest and proof.digest != digest([X[:, : X.shape[1] - proof.biases], y]):
        raise ProofRefused("it is about other data")
    if proof.lam.shape != y.shape:
        raise ProofRefused(f"there are {len(y)} examples and {len(proof.lam)} multipliers")
    live = proof.lam[proof.lam != 0]
    if not (len(live) and (live >= SMALLEST).all() and (live <= LARGEST).all()):
        raise ProofRefused("the multipliers must be zero or positive and finite, and not all zero")
    if not 0 < proof.ceiling <= LARGEST:
        raise ProofRefused(f"the ceiling is {proof.ceiling}")
    numbers = [X, *(each for point in proof.points for each in (point.y, point.C))]
    numbers += [getattr(proof.network, name).double().numpy() for name in ("W", "b", "v")]
    if not all((np.abs(each) <= LARGEST).all() for each in numbers):
        raise ProofRefused(f"a number is not finite or above {LARGEST:g}")
    for point in proof.points:
        f, r = sizes(y, proof.lam, point.side, point.signs)
        if point.side not in (1, -1) or point.y.shape != (f,) or point.C.shape != (r, f + 1):
            raise ProofRefused("a point does not have the shape that its signs give it")


def _check_cover(proof: MarginProof, y: Array) -> None:
    """Every leaf extends its point, and those of either side split all patterns between them."""
    sides = {1: list[Signs](), -1: list[Signs]()}
    for leaf in proof.leaves:
        if not 0 <= leaf.point < len(proof.points):
            raise ProofRefused(f"a leaf names the point {leaf.point}, which there is not")
        point = proof.points[leaf.point]
        own = (y == point.side) & (proof.lam > 0)
        known = all(signs.shape == y.shape and np.isin(signs, (-1, 0, 1)).all() for signs in (leaf.signs, point.signs))
        if not known or leaf.signs[~own].any() or point.signs[~own].any():
            raise ProofRefused("signs are 1, 0 or -1, and 0 outside the own examples")
        if (leaf.signs != point.signs)[point.signs != 0].any():
            raise ProofRefused("a leaf does not extend the point that is to bound it")
        sides[point.side].append(leaf.signs)
    for side, signs in sides.items():
        table = np.array(signs, dtype=np.int8).reshape(-1, len(y))
        if compute_coverage(table) != 1:
            raise ProofRefused(f"the leaves of sign {side:+d} cover {compute_coverage(table)} of the patterns, not all")
        if overlap(table) is not None:
            raise ProofRefused(f"two leaves of sign {side:+d} hold the same pattern")


def find_unconfirmed(proof: MarginProof, X: Array, y: Array, ceiling: float, among: Sequence[int]) -> list[int]:
    """Those of the leaves whose gain may exceed √ceiling, as far as can be told."""
    leaves: dict[int, list[int]] = {}
    for place in among:
        leaves.setdefault(proof.leaves[place].point, []).append(place)
    wrong = []
    for number, places in leaves.items():
        point = proof.points[number]
        gram = _gram(point, X, y, proof.lam)
        free, _ = free_and_rest(y, proof.lam, point.side, point.signs)
        wrong += [i for i in places if not _below(gram, point.y, proof.leaves[i].signs[free], ceiling)]
    return sorted(wrong)


class Gram(NamedTuple):
    """G (f+1, f+1) = [p̄, B]ᵀ[p̄, B] as computed, and at least the Frobenius norm of its error."""

    G: Array
    error: float


def _gram(point: ProofPoint, X: Array, y: Array, lam: Array) -> Gram:
    """Of a point whose multipliers have been made feasible."""
    free, order = free_and_rest(y, lam, point.side, point.signs)
    C = np.zeros((len(free) + len(order), len(free) + 1))
    C[np.arange(len(free)), 1 + np.arange(len(free))] = C[: len(free), 0] = lam[free] / 2
    C[len(free) :] = feasible(point.C, lam[order], point.signs[order])
    rows = X[np.concatenate([free, order])]
    B, sums = rows.T @ C, np.abs(rows).T @ np.abs(C)
    off = gamma(len(rows) + 2) * float(np.linalg.norm(sums)) + UNDERFLOW
    size = float(np.linalg.norm(B))
    return Gram(B.T @ B, gamma(len(B) + 2) * size**2 + (1 + gamma(8)) * (2 * size * off + off**2) + UNDERFLOW)


def feasible(C: Array, lam: Array, signs: Signs) -> Array:
    """The multipliers C (r, f+1) with rows moved, by rounding errors if they are honest, to where they must lie.

    For all s in {±1}^f: -λ ≤ c ≤ 0 on others (signs 0), c ≥ λ where the sign is 1, c ≤ 0 where it is -1.
    """
    C = C.copy()
    other = signs == 0
    spread = np.abs(C[:, 1:]).sum(1) * (1 + gamma(C.shape[1] + 4))
    room = lam / 2 * (1 - 16 * ROUNDOFF)
    wide = other & (spread > room)
    C[wide, 1:] *= (room[wide] / spread[wide] * (1 - gamma(C.shape[1] + 16)))[:, None]
    spread[wide] = np.abs(C[wide, 1:]).sum(1) * (1 + gamma(C.shape[1] + 4))
    lowest, highest = -(lam - spread) * (1 - 4 * ROUNDOFF), -spread
    C[:, 0] = np.where(other, np.clip(C[:, 0], lowest, highest), C[:, 0])
    C[:, 0] = np.where(signs == 1, np.maximum(C[:, 0], (lam + spread) * (1 + 4 * ROUNDOFF)), C[:, 0])
    C[:, 0] = np.where(signs == -1, np.minimum(C[:, 0], highest), C[:, 0])
    return C


def _below(gram: Gram, y: Array, signs: Signs, ceiling: float) -> bool:
    """Whether ‖p̄ + Bs‖² ≤ ceiling is proved for all s that agree with these signs (f,), of which 0 are free."""
    free = np.flatnonzero(signs == 0)
    taken = np.concatenate([[1.0], signs.astype(np.float64)])
    kept = np.concatenate([[0], 1 + free])
    G = gram.G[np.ix_(kept, kept)]
    along = gram.G @ taken
    G[0, 1:] = G[1:, 0] = along[kept[1:]]
    G[0, 0] = taken @ along
    count = 1 + len(y) - len(free)
    summed = np.abs(taken) @ np.abs(gram.G) @ np.abs(taken) + 2 * np.linalg.norm(np.abs(gram.G) @ np.abs(taken))
    error = count * gram.error + gamma(2 * len(y) + 6) * float(summed)
    rest = y[free]
    top = (ceiling - float(rest.sum()) * (1 + gamma(len(rest) + 2))) * (1 - 4 * ROUNDOFF)
    diagonal = np.concatenate([[top], rest])
    M = -G
    M.flat[:: len(M) + 1] += diagonal
    trace = float(np.abs(diagonal).sum() + np.abs(G.diagonal()).sum())
    M.flat[:: len(M) + 1] -= (error + gamma(len(M) + 6) * trace + UNDERFLOW) * (1 + gamma(4))
    L, info = dpotrf(M, lower=1)
    positive = info == 0 and bool(np.isfinite(L.trace()))  # LAPACK lets NaN pass for positive
    return bool(top > 0 and (rest > 0).all() and positive)


def confirm_ceiling(proof: MarginProof, data: Data) -> float:
    """The proof's ceiling, raised step by step until every leaf can be confirmed."""
    X, y = rows(data, proof.biases), data.y.numpy()
    wrong = list(range(len(proof.leaves)))
    for slack in RAISES:
        ceiling = proof.ceiling * (1 + slack)
        wrong = find_unconfirmed(proof, X, y, ceiling, wrong)
        if not wrong:
            return ceiling
    raise InputError("the data are of a size at which rounding hides what the margin is: scale them to about 1")
