"""The judge: what a dual point proves, with every rounding error paid for. No solver's word is taken here."""

import enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brittle.certificates.margins import LocalModel
from brittle.certificates.rounding import ROUNDOFF, SQUARES, Array, Factor, factor, gamma, length, remainder
from brittle.common.time_limit import check_time

FLOOR = 1e-30  # of a squared length, against division by zero
SEARCHES = 40  # for s, at most
INSIDE = 1e-6  # the least eigenvalue of I - M that is kept, so that rounding cannot carry M out


def choose_curvatures(W: Array, C: Array, z: Array, room: float) -> Array:
    """κ for Y = ½s·I with the smallest s (to half) that leaves M ⪯ room·I."""
    if len(C) == 0:
        return C
    squares = np.maximum((W**2).sum(1), FLOOR)

    def kappa(s: float) -> Array:
        kappas: Array = C / (2 * np.sqrt(np.maximum(z**2 + s * squares, FLOOR)))
        return kappas

    def fits(s: float) -> bool:
        return factor(remainder(W, kappa(s) / room)) is not None

    # tr M ≤ room is enough for M ⪯ room·I, and needs no test.
    most = float((C * np.sqrt(squares)).sum() / (2 * room)) ** 2 * 1.01
    low, high = 0.0, most
    s = most * 1e-3
    for _ in range(SEARCHES):
        check_time()
        if fits(s):
            high, s = s, (s / 5 if low == 0 else np.sqrt(low * s))
        else:
            low, s = s, (min(5 * s, most) if high == most else np.sqrt(s * high))
        if high <= 1.5 * low or high <= 1e-14 * most:
            break
    return kappa(high)


def leverages(W: Array, kappa: Array) -> Array:
    """w·(I - M)⁻¹w of every row."""
    L = factor(remainder(W, kappa))
    assert L is not None
    squares: Array = (L.whiten(W) ** 2).sum(0)
    return squares


def newton(W: Array, C: Array, z: Array, kappa: Array, barrier: float, steps: int = 2, most: int = 10**6) -> Array:
    """Steps of Newton's method towards the maximum of -Σ ½κ(t-|z|)² + ν log det(I - M), ν = `barrier`.

    Only the `most` neurons with the loosest envelopes move.
    """
    kappa, A = kappa.copy(), remainder(W, kappa)
    loose = np.arange(len(C))
    if most < len(C):
        loose = np.argpartition(kappa * np.maximum(C / (2 * kappa) - np.abs(z), 0) ** 2, -most)[-most:]
    W, C, z = W[loose], C[loose], z[loose]
    for _ in range(steps):
        check_time()
        L, k = factor(A), kappa[loose]
        assert L is not None
        V = L.whiten(W)
        G = V.T @ V
        # Everything in relative steps dκ/κ: the neurons' scales differ by orders of magnitude.
        gradient = C**2 / (8 * k) - k * z**2 / 2 - barrier * k * G.diagonal()
        H = G * G
        H *= barrier * k[:, None]
        H *= k
        H.flat[:: len(H) + 1] += C**2 / (4 * k) + 1e-300
        H_factor = factor(H)
        if H_factor is None:
            break
        step = H_factor.solve(gradient)
        move = (W.T * (k * step)) @ W
        length = _inside(A, move, step)
        kappa[loose] = k * (1 + length * step)
        A -= length * move
        if length == 0 or gradient @ step < 0.1 * barrier * len(A):
            break
    return kappa


def fitting_barrier(W: Array, C: Array, z: Array, kappa: Array) -> float:
    """The ν for which κ is nearest to the barrier problem's maximum."""
    pull, lever = C**2 / (8 * kappa) - kappa * z**2 / 2, kappa * leverages(W, kappa)
    return float(pull @ lever / (lever @ lever))


def _inside(A: Array, move: Array, step: Array) -> float:
    """The longest tried length that keeps κ(1 + length·step) > 0 and A - length·move positive definite."""
    length = min(1.0, 0.9 / max(float(-step.min()), 1e-300))
    base = A.copy()
    base.flat[:: len(A) + 1] -= INSIDE
    while length > 1e-6:
        if factor(base - length * move) is not None:
            return length
        length *= 0.6
    return 0.0


Kinds = NDArray[np.int8]
LEAST = 1e-9  # σ: the smallest eigenvalue of I - M that is asked for
TINY = 1e-200  # below it, underflow could matter
LARGEST = 2.0**150  # a multiplier: with numbers near 1, a larger one proves nothing more and lifts underflow
VALUE_UNDERFLOW = 1e-220  # more than F can lose below the smallest normal float, with such a multiplier


class Kind(enum.IntEnum):
    """What is known of a neuron: the sign of its weight c and, in a branch, that of its input a_j + w_j·ε."""

    CONVEX = 0  # c ≥ 0
    CONCAVE = 1  # c < 0
    ACTIVE = 2  # c < 0, input ≥ 0
    INACTIVE = 3  # c < 0, input ≤ 0

    def among(self, kinds: Kinds) -> NDArray[np.bool_]:
        """Which neurons are of this kind; NumPy compares with a plain number four times faster than with a member."""
        return np.asarray(kinds == self.value)


class DualPoint(NamedTuple):
    """μ, slopes ĝ = g/μ (k,), curvatures κ̂ = κ/μ (k,; read where the neuron is concave), kinds (k,) of the neurons."""

    multiplier: float
    slopes: Array
    curvatures: Array
    kinds: Kinds


def initial_kinds(model: LocalModel) -> Kinds:
    """Before any branching."""
    return np.where(model.c < 0, Kind.CONCAVE, Kind.CONVEX).astype(np.int8)


def proven_radius(model: LocalModel, point: DualPoint) -> float:
    """No flip of the branch lies closer than this; 0 if the point proves nothing, at most the ball's radius."""
    if never_flips(model, point.kinds):
        return model.ball
    value = proven_value(model, point)
    if not value > TINY:
        return 0.0
    return float(min(model.ball, np.sqrt(2 * value) / model.stretch * (1 - 8 * ROUNDOFF)))


def never_flips(model: LocalModel, kinds: Kinds) -> bool:
    """Whether nothing negative is left in the branch: the margin may be 0 there, but never below."""
    return model.pure and bool(Kind.INACTIVE.among(kinds[model.c < 0]).all())


def proven_value(model: LocalModel, point: DualPoint) -> float:
    """A floor under F(μ, g, κ) in real arithmetic, -inf if the point is not feasible."""
    mu, g = np.float64(point.multiplier), feasible_slopes(model, point)
    if not 1 / LARGEST**4 < mu <= LARGEST:
        return -np.inf
    with np.errstate(all="ignore"):
        linear, slip = _linear_terms(model, point, g)
        form = _quadratic_form(model, point, g)
        value = mu * linear - 0.5 * mu**2 * form
        slip = mu * slip + gamma(4) * (abs(mu * linear) + 0.5 * mu**2 * abs(form)) + VALUE_UNDERFLOW
    return float(value - slip) if np.isfinite(value - slip) else -np.inf


def feasible_slopes(model: LocalModel, point: DualPoint) -> Array:
    """ĝ clipped into its interval: [0, c] where convex, (-∞, c] on an active branch, [0, ∞) on an inactive one."""
    low = np.where(Kind.CONVEX.among(point.kinds) | Kind.INACTIVE.among(point.kinds), 0.0, -np.inf)
    high = np.where(Kind.CONVEX.among(point.kinds) | Kind.ACTIVE.among(point.kinds), model.c, np.inf)
    return np.clip(point.slopes, low, high)


def _linear_terms(model: LocalModel, point: DualPoint, g: Array) -> tuple[float, float]:
    """β - error + Σ ĝa + Σ_N min(-ĝ²/2κ̂, ca - (ĝ-c)²/2κ̂), and a bound on the rounding of that sum."""
    N = Kind.CONCAVE.among(point.kinds)
    straight = g[~N] * model.a[~N]
    c, a, twice = model.c[N], model.a[N], 2 * point.curvatures[N]
    if np.any(twice <= 0):
        return -np.inf, 0.0
    off, on = g[N] * (g[N] / twice), (g[N] - c) * ((g[N] - c) / twice)  # a square of its own might underflow
    bent = np.minimum(-off, c * a - on)
    # A branch speaks of the network's own input: on it, ĝ times the model's may be less by ĝ times the slip.
    branch = ~Kind.CONVEX.among(point.kinds[~N]) * np.abs(g[~N]) @ model.slips[~N]
    total = model.beta - model.error - branch + straight.sum() + bent.sum()
    # (ĝ - c)² moves by the rounding of the difference: |ĝ| + |c| bounds what was subtracted.
    weight = (
        np.abs(straight).sum()
        + np.abs(c * a).sum()
        + (2 * (np.abs(g[N]) + np.abs(c)) * ((np.abs(g[N]) + np.abs(c)) / twice)).sum()
    )
    slip = gamma(len(g) + 10) * (weight + abs(model.beta) + model.error + branch)
    return float(total), float(slip)


def _quadratic_form(model: LocalModel, point: DualPoint, g: Array) -> float:
    """A ceiling over pᵀA⁻¹p, p = q + Wᵀĝ, A = I - μ Σ κ̂ w wᵀ: for every x it is 2pᵀx - xᵀAx + (p-Ax)ᵀA⁻¹(p-Ax)."""
    N = Kind.CONCAVE.among(point.kinds)
    count, dim = model.W.shape
    p = model.q + g @ model.W
    kappa, W, size = point.multiplier * point.curvatures[N], model.W[N], model.sizes[N]
    if len(kappa) == 0:
        slip = gamma(count + 4) * (length(model.q) + np.abs(g) @ model.sizes)
        return float((length(p) * (1 + gamma(dim + 4)) + slip) ** 2)
    L = definite(remainder(W, kappa), float(kappa @ size**2), len(kappa))
    if L is None:
        return np.inf
    x = L.solve(p)
    x += L.solve(p - x + (kappa * (W @ x)) @ W)  # L is of A - (σ+ς)I: one step of refinement
    u, lengths, load = model.W @ x, np.linalg.norm(x), length(model.q) + np.abs(g) @ model.sizes
    bent = np.abs(u[N]) + gamma(dim + 2) * size * (lengths + SQUARES)
    product = model.q @ x + g @ u
    slip = gamma(count + dim + 6) * load * (lengths + SQUARES)
    own = lengths**2 * (1 - gamma(dim + 4))
    curve = kappa @ bent**2 * (1 + gamma(count + 8))
    residual = p - x + (kappa * u[N]) @ W
    scale = load + lengths + 2 * (kappa * bent) @ size
    off = length(residual) * (1 + gamma(dim + 4)) + gamma(count + dim + 6) * scale
    form = 2 * (product + slip) - own + curve + off**2 / LEAST
    return float(form + gamma(8) * (2 * abs(product) + 2 * slip + own + curve))


def definite(A: Array, trace: float, count: int, least: float = LEAST) -> Factor | None:
    """The factor of A - (σ + ς)I; that it exists proves the real A ⪰ σI, because ς exceeds every rounding made."""
    dim = len(A)
    shift = least + 2 * (gamma(count + 6) * (1 + trace) + gamma(dim + 2) * (dim + trace))
    shifted = A.copy()
    shifted.flat[:: dim + 1] -= shift
    return factor(shifted)
