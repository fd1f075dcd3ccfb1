"""What a dual point of a deep problem proves, with every rounding error paid for. No solver's word is taken here.

For multipliers of the right signs every flip of the branch has L(x) ≤ ½‖ε‖² + price, with x = (ε, h) and the
Lagrangian L of `problem`; the price is what the slips of the forms can add up to. L is a quadratic with matrix Q.
Scaled by powers of two, Q ⪰ σI is proved by a Cholesky factor LLᵀ of Q - (σ+ς)I that exists, where ς exceeds the
rounding in Q and in the factor.
At any x̃, with g = Qx̃ + q:

- value: ½‖ε‖² ≥ F := L(x̃) - ‖g‖²/2σ - price at every flip;
- ellipsoid: a flip with ‖ε‖ ≤ r lies within √(r² - 2F) + ‖g‖/√σ of x̃ in the norm of Q;
- spreads: vᵀQ⁻¹v ≤ (‖w‖ + ‖v - Lw‖/√σ)² for any w, because Q⁻¹ ⪯ (LLᵀ)⁻¹ and Q⁻¹ ⪯ I/σ.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brittle.certificates.deep_exact.problem import SdpMultipliers, SdpProblem
from brittle.certificates.rounding import ROUNDOFF, SQUARES, Array, Factor, factor, gamma

INFLATION = 1e-6  # of the diagonal of G: pays for its rounding, and keeps G away from singular
OUTWARD = 1e-8  # of √(c·room): more than rounding can move an end, with G as far from singular as that

TINY = 1e-20  # a neuron whose input is constant has zz = 0


class Ellipse(NamedTuple):
    """The rest of the Gram matrix and the centre of every neuron: hh, hz, zz, h, z (n,), and how far z may be off."""

    hh: Array
    hz: Array
    zz: Array
    h: Array
    z: Array
    slip: Array


def two_rays(ellipse: Ellipse, room: float, low: Array, high: Array) -> tuple[Array, Array]:
    """New ends of [low, high]; low > high where neither ray is left."""
    a, b, c = ellipse.hh * (1 + 3 * INFLATION), ellipse.hz, ellipse.zz * (1 + 3 * INFLATION) + TINY
    det = a * c - b * b  # at least 5e-6·ac, because the diagonal is inflated
    # The network's own z may differ from the form's: the centre moves by at most `slip` in the metric of G⁻¹.
    root = np.sqrt(room) + ellipse.slip * np.sqrt(a / det)
    room_each = root**2 * (1 + 2 * INFLATION)
    outward = OUTWARD * (root * np.sqrt(c) + np.abs(ellipse.z))
    m, v = ellipse.h - ellipse.z, a - 2 * b + c
    on_low, on_high, no_on = _ray(ellipse.z + (c - b) / v * m, det, v, m, room_each, outward)
    off_low, off_high, no_off = _ray(ellipse.z - b / a * ellipse.h, det, a, ellipse.h, room_each, outward)
    on_low, on_high = np.maximum(on_low, np.maximum(low, 0)), np.minimum(on_high, high)
    off_low, off_high = np.maximum(off_low, low), np.minimum(off_high, np.minimum(high, 0))
    no_on, no_off = no_on | (on_low > on_high), no_off | (off_low > off_high)
    new_low = np.where(no_off, on_low, off_low)
    new_high = np.where(no_on, off_high, on_high)
    return np.where(no_on & no_off, 1.0, new_low), np.where(no_on & no_off, -1.0, new_high)


def shadow(zz: Array, room: float, z: Array) -> Array:
    """How far z may be from its value at the centre, where it is settled."""
    return np.asarray(np.sqrt(room * zz) * (1 + 3 * INFLATION) + OUTWARD * np.abs(z))


def _ray(
    centre: Array, det: Array, spread: Array, away: Array, room: Array, outward: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Both ends of a ray's part in the ellipse, rounded outwards, and whether it is empty."""
    left = spread * room * (1 + OUTWARD) - away**2
    half = np.sqrt(det * np.maximum(left, 0)) / spread * (1 + OUTWARD)
    return centre - half - outward, centre + half + outward, left < 0


LEAST = 1e-9  # σ
LARGEST = 2.0**200  # of a multiplier
UNDERFLOW = 1e-220  # more than any sum here can lose below the smallest normal float
FARTHEST = 400  # an exponent of the scaling
REFINEMENTS = 3


class BoundCheck(NamedTuple):
    """A floor under ½‖ε‖² at every flip of the branch (-inf: nothing is proved), and the intervals that follow.

    low, high (n+k,) hold at every flip with ‖ε‖ ≤ reach; low > high somewhere: there is none.
    """

    floor: float
    low: Array
    high: Array

    @property
    def empty(self) -> bool:
        return bool((self.low > self.high).any())


class _Definite(NamedTuple):
    """The factor of the scaled Q - (σ+ς)I, the scaling, and ‖z‖ of every form's row in it."""

    L: Factor
    scale: Array
    sizes: Array


class _Point(NamedTuple):
    """x̃, the forms there, how far they may be off by rounding, L(x̃) from below, and ‖g‖ in the scaling from above."""

    x: Array
    forms: Array
    slips: Array
    value: float
    residual: float


def examine(problem: SdpProblem, y: Array, reach: float) -> BoundCheck:
    """What the multipliers y (their t is not read) prove of flips ‖ε‖ ≤ reach of the branch."""
    nothing = BoundCheck(-np.inf, problem.low, problem.high)
    if not _admissible(problem, y):
        return nothing
    m = problem.multipliers(y)
    proof = _definite(problem, y, m)
    if proof is None:
        return nothing
    point = _minimiser(problem, m, proof)
    floor = point.value - point.residual**2 / (2 * LEAST) * (1 + gamma(4)) - _price(problem, m) - UNDERFLOW
    if not np.isfinite(floor):
        return nothing
    if floor < -(reach**2):
        return BoundCheck(floor, problem.low, problem.high)  # too weak to say anything of single neurons
    return BoundCheck(floor, *_intervals(problem, proof, point, floor, reach))


def _admissible(problem: SdpProblem, y: Array) -> bool:
    """NaN is not at most LARGEST either."""
    signed = problem.signed
    return len(y) == len(signed) and bool((y[signed] >= 0).all() and (np.abs(np.delete(y, 1)) <= LARGEST).all())


def _definite(problem: SdpProblem, y: Array, m: SdpMultipliers) -> _Definite | None:
    """That it exists proves that the real Q, scaled, is at least LEAST·I."""
    n, p, k = problem.n, problem.p, problem.k
    Q = problem.lagrangian(np.concatenate([y[:1], [0.0], y[2:]]))[:-1, :-1]
    diagonal = Q.diagonal()
    if not ((diagonal > 0) & np.isfinite(diagonal)).all():
        return None
    by = np.round(-0.5 * np.log2(diagonal))
    if np.abs(by).max(initial=0) > FARTHEST:
        return None
    scale = np.exp2(by)
    sizes = np.linalg.norm(problem.rows[:, :-1] * scale, axis=1) * (1 + gamma(p + n + 4)) + SQUARES
    scaled = Q * scale[:, None] * scale
    own, free, settled = scale[p:], sizes[1 : 1 + n], sizes[1 + n :]
    mixed = (np.abs(m.lam) + m.rho + m.tau) * own * free
    terms = 2 * (m.tau @ free**2 + m.sigma @ settled**2 + mixed.sum() + np.abs(m.lam) @ own**2) + (scale[:p] ** 2).sum()
    rounding = gamma(n + k + 12) * terms + gamma(p + n + 4) * (np.trace(scaled) + p + n)
    scaled.flat[:: p + n + 1] -= LEAST + 2 * rounding
    L = factor(scaled) if np.isfinite(rounding) else None
    return None if L is None else _Definite(L, scale, sizes)


def _minimiser(problem: SdpProblem, m: SdpMultipliers, proof: _Definite) -> _Point:
    """Newton's steps to the minimum of L from 0, with the factor that is there; any point would be valid."""
    x = np.zeros(problem.p + problem.n)
    for _ in range(REFINEMENTS):
        g, _ = _gradient(problem, m, x, *_forms(problem, x), proof)
        x = x - proof.scale * proof.L.solve(g)
    forms, slips = _forms(problem, x)
    g, rounding = _gradient(problem, m, x, forms, slips, proof)
    residual = float(np.linalg.norm(g)) * (1 + gamma(len(x) + 4)) + rounding + SQUARES
    return _Point(x, forms, slips, _value(problem, m, x, forms, slips), residual)


def _forms(problem: SdpProblem, x: Array) -> tuple[Array, Array]:
    """f and every z at x, and how far they may be off."""
    rows, heights = problem.rows[:, :-1], problem.rows[:, -1]
    return rows @ x + heights, gamma(len(x) + 2) * (np.abs(rows) @ np.abs(x) + np.abs(heights)) + UNDERFLOW


def _gradient(
    problem: SdpProblem, m: SdpMultipliers, x: Array, forms: Array, slips: Array, proof: _Definite
) -> tuple[Array, float]:
    """The scaled Qx + q, and a bound on the length of its error."""
    n, p = problem.n, problem.p
    low, high, k_low, k_high = problem.ends
    z, k, h = forms[1 : 1 + n], forms[1 + n :], x[p:]
    free = (m.rho - m.lam) * h + m.tau * (2 * z - h - low)
    by_z = np.concatenate([[m.mu], free, m.sigma * (2 * k - k_low - k_high)])
    by_h = m.lam * (2 * h - z) + m.rho * (z - high) - m.tau * (z - low)
    g = by_z @ problem.rows[:, :-1]
    g[:p] += x[:p]
    g[p:] += by_h
    # The same sums of absolute values, and what the slips of z do to them.
    lam, size = np.abs(m.lam), np.abs(forms) + slips
    z, k, h = size[1 : 1 + n], size[1 + n :], np.abs(h)
    low, high, k_low, k_high = map(np.abs, problem.ends)
    free = (m.rho + lam) * h + m.tau * (2 * z + h + low)
    weight_z = np.concatenate([[m.mu], free, m.sigma * (2 * k + k_low + k_high)])
    weight_h = lam * (2 * h + z) + m.rho * (z + high) + m.tau * (z + low)
    moved_z = 2 * np.concatenate([[0.0], m.tau * slips[1 : 1 + n], m.sigma * slips[1 + n :]])
    moved_h = (lam + m.rho + m.tau) * slips[1 : 1 + n]
    share = gamma(len(forms) + 12)
    rounding = (share * weight_z + moved_z) @ proof.sizes + proof.scale[p:] @ (share * weight_h + moved_h)
    rounding += share * float(np.linalg.norm(proof.scale[:p] * x[:p]))
    return g * proof.scale, float(rounding) * (1 + gamma(len(g) + 8)) + UNDERFLOW


def _value(problem: SdpProblem, m: SdpMultipliers, x: Array, forms: Array, slips: Array) -> float:
    """L(x) less all rounding."""
    n, p, half = problem.n, problem.p, 0.5 * x[: problem.p] @ x[: problem.p]
    low, high, k_low, k_high = problem.ends
    f, z, k, h = forms[0], forms[1 : 1 + n], forms[1 + n :], x[p:]
    total = half + m.mu * f + m.lam @ (h * (h - z)) + m.rho @ (h * (z - high))
    total += m.tau @ ((z - h) * (z - low)) + m.sigma @ ((k - k_low) * (k - k_high))
    # The same sums of absolute values, and what the slips of z do to them.
    low, high, k_low, k_high = map(np.abs, problem.ends)
    size, h, lam, e, k_e = np.abs(forms) + slips, np.abs(h), np.abs(m.lam), slips[1 : 1 + n], slips[1 + n :]
    f, z, k = size[0], size[1 : 1 + n], size[1 + n :]
    weight = half + m.mu * f + lam @ (h * (h + z)) + m.rho @ (h * (z + high))
    weight += m.tau @ ((z + h) * (z + low)) + m.sigma @ ((k + k_low) * (k + k_high))
    moved = m.mu * slips[0] + ((lam + m.rho) * h) @ e + m.tau @ ((2 * z + h + low + e) * e)
    moved += m.sigma @ ((2 * k + k_low + k_high + k_e) * k_e)
    return float(total - gamma(4 * n + problem.k + p + 16) * weight - moved * (1 + gamma(len(forms) + 16)))


def _price(problem: SdpProblem, m: SdpMultipliers) -> float:
    """By how much L can exceed ½‖ε‖² at a flip: the network's own z satisfy the constraints, the forms nearly."""
    n = problem.n
    width, e, e_k = problem.high - problem.low, problem.slips[1 : 1 + n], problem.slips[1 + n :]
    h, below = np.maximum(problem.high[:n], 0), np.abs(problem.low[:n])
    price = m.mu * problem.slips[0] + ((np.abs(m.lam) + m.rho) * h) @ e
    price += m.tau @ ((width[:n] + below + e) * e) + m.sigma @ ((width[n:] + e_k) * e_k)
    return float(price) * (1 + gamma(2 * len(width) + 16)) + UNDERFLOW


def _intervals(problem: SdpProblem, proof: _Definite, point: _Point, floor: float, reach: float) -> tuple[Array, Array]:
    """Ends of every z at flips ‖ε‖ ≤ reach: the ellipsoid's shadow, on the graph of the ReLU where it is free."""
    n, p = problem.n, problem.p
    most, least = reach**2 + UNDERFLOW, 2 * floor
    room = most - least + 16 * ROUNDOFF * (most + abs(least))
    if room <= 0:  # no flip is that short
        return np.ones_like(problem.low), -np.ones_like(problem.low)
    room = (np.sqrt(room) + point.residual / np.sqrt(LEAST)) ** 2 * (1 + 16 * ROUNDOFF)
    if gamma(p + n + 8) * 2 * np.sqrt((p + n) / LEAST) > INFLATION:  # ‖v - Lw‖ ≤ γ‖L‖‖w‖ could move the spreads by more
        return problem.low, problem.high
    h, z = proof.L.whiten(np.eye(n, p + n, p) * proof.scale), proof.L.whiten(problem.rows[1:, :-1] * proof.scale)
    spreads, slips, centre = (z**2).sum(0), (problem.slips + point.slips)[1:], point.forms[1:]
    ellipse = Ellipse((h**2).sum(0), (h * z[:, :n]).sum(0), spreads[:n], point.x[p:], centre[:n], slips[:n])
    low, high = two_rays(ellipse, float(room), problem.low[:n], problem.high[:n])
    half = shadow(spreads[n:], float(room), centre[n:]) + slips[n:]
    settled_low, settled_high = centre[n:] - half, centre[n:] + half
    return (
        np.concatenate([low, np.maximum(problem.low[n:], settled_low)]),
        np.concatenate([high, np.minimum(problem.high[n:], settled_high)]),
    )
