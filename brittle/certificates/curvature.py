"""How much of I each concave neuron may use: the choice of κ in Σ κ_j w_j w_jᵀ ⪯ I.

The optimum has ½(t² - z²) = w·Yw with t = |C|/2κ and a multiplier Y ⪰ 0 of the constraint, that is
κ = |C|/(2√(z² + 2w·Yw)). The closed form takes Y = ½s·I with the smallest s that fits; Newton's method with the barrier
ν log det(I - M) finds the optimum itself, Y = ν(I - M)⁻¹.
"""

import numpy as np

from brittle.certificates.cholesky import factor, remainder
from brittle.certificates.scales import Array
from brittle.common.time_limit import check_time

FLOOR = 1e-30  # of a squared length, against division by zero
SEARCHES = 40  # for s, at most
INSIDE = 1e-6  # the least eigenvalue of I - M that is kept, so that rounding cannot carry M out


def closed_form(W: Array, C: Array, z: Array, room: float) -> Array:
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
