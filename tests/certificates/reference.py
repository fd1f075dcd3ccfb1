"""Radii and proofs by other means: every activation region in turn, and rational arithmetic."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from scipy.optimize import nnls

from brittle.certificates.local import Local
from brittle.certificates.rounding import CONCAVE, DualPoint, feasible_slopes

STRICT = 1e-5  # a region counts only if the margin gets this far below zero in it


def brute_force_radius(W, b, v, c, x, y):
    """inf ‖δ‖ with y N(x + δ) < 0: the shortest flip of every activation pattern, by nonnegative least squares."""
    if y * (np.maximum(W @ x + b, 0) @ v + c) <= 0:
        return 0.0
    a, best = W @ x + b, np.inf
    for pattern in product((-1.0, 1.0), repeat=len(W)):
        signs = np.array(pattern)
        on = signs > 0
        slope, height = y * (v[on] @ W[on]), y * (v[on] @ a[on] + c)
        if not slope.any() and height > -STRICT:
            continue
        G = np.vstack([signs[:, None] * W, -slope])
        if np.isfinite(_least_distance(G, np.append(-signs * a, height + STRICT))):
            best = min(best, _least_distance(G, np.append(-signs * a, height)))
    return best


def _least_distance(G, h):
    """min ‖δ‖ with Gδ ≥ h (Lawson and Hanson's reduction), infinity if there is no such δ."""
    sizes = np.linalg.norm(G, axis=1)
    if (h[sizes == 0] > 0).any():
        return np.inf
    G, h = G[sizes > 0] / sizes[sizes > 0, None], h[sizes > 0] / sizes[sizes > 0]
    if not len(h):
        return 0.0
    scale = max(np.abs(h).max(), 1e-300)
    E = np.vstack([G.T, h / scale])
    target = np.zeros(len(E))
    target[-1] = 1
    u, _ = nnls(E, target, maxiter=1000)
    r = E @ u - target
    if np.linalg.norm(r) < 1e-9:
        return np.inf
    if r[-1] >= 0:
        return np.inf
    delta = -r[:-1] / r[-1] * scale
    return np.linalg.norm(delta) if (G @ delta - h).min() > -1e-8 * scale else np.inf


@dataclass(frozen=True)
class Proof:
    """A dual point of the network itself, every number a fraction: ½‖δ‖² + μ·margin ≥ value + p·δ + ½δ·Aδ."""

    W: list
    a: list
    value: Fraction
    p: list
    A: list

    @classmethod
    def of(cls, W, b, c, c0, x, local: Local, point: DualPoint, settled=None):
        """`settled` {neuron: sign}: those that are left out because of an earlier proof."""
        kept = neurons(W, b, c, c0, x, local, settled or ())
        W, b, c, x = _exact(W), _exact(b), _exact(c), _exact(x)
        mu = Fraction(point.multiplier)
        a = [_dot(w, x) + bias for w, bias in zip(W, b, strict=True)]
        slopes, curvatures = _placed(W, a, c, kept, local, point, settled or {})
        value, p = Fraction(c0), [Fraction(0)] * len(x)
        A = [[Fraction(int(i == j)) for j in range(len(x))] for i in range(len(x))]
        for w, a_j, c_j, g, k in zip(W, a, c, slopes, curvatures, strict=True):
            if k is None:
                value += g * a_j
            else:
                value += min(-(g**2) / (2 * k), c_j * a_j - (g - c_j) ** 2 / (2 * k))
                A = [[A[i][j] - mu * k * w[i] * w[j] for j in range(len(x))] for i in range(len(x))]
            p = [p_i + mu * g * w_i for p_i, w_i in zip(p, w, strict=True)]
        return cls(W, a, mu * value, p, A)

    def holds(self, radius: float) -> bool:
        form = _inverse_form(self.A, self.p)
        return form is not None and 2 * self.value - form >= Fraction(radius) ** 2

    def settles(self, neuron: int, sign: int, radius: float) -> bool:
        """Whether neuron's z has the sign at every flip up to the radius: 2F + z²/(w·A⁻¹w) ≥ radius² at the minimum."""
        w, form = self.W[neuron], _inverse_form(self.A, self.p)
        own, both = _inverse_form(self.A, w), _inverse_form(self.A, [i + j for i, j in zip(self.p, w, strict=True)])
        z = self.a[neuron] - (both - form - own) / 2
        return z * sign > 0 and 2 * self.value - form + z**2 / own >= Fraction(radius) ** 2


def neurons(W, b, c, c0, x, local: Local, settled=()):
    """Which neurons of the network those of the local problem are: it keeps their order, and leaves out by size."""
    found, inputs, sizes = [], W @ x + b, np.linalg.norm(W, axis=1)
    for neuron in range(len(W)):
        own = inputs[neuron], c[neuron], sizes[neuron]
        if c[neuron] != 0 and neuron not in settled and len(found) < len(local.c):
            known = local.a[len(found)], local.c[len(found)], local.sizes[len(found)]
            found += [neuron] if np.allclose(known, own, rtol=1e-9, atol=0) else []
    assert len(found) == len(local.c)
    return found


def _placed(W, a, c, kept, local, point, settled):
    """ĝ and κ̂ (None: a straight term) of all neurons; those that the local problem left out must be fixed."""
    slopes, curvatures = [Fraction(0)] * len(W), [None] * len(W)
    for neuron, g, k, kind in zip(kept, feasible_slopes(local, point), point.curvatures, point.kinds, strict=True):
        slopes[neuron] = Fraction(float(g))
        assert kind == CONCAVE or 0 <= slopes[neuron] <= c[neuron]
        curvatures[neuron] = Fraction(float(k)) if kind == CONCAVE else None
    for neuron in set(range(len(W))) - set(kept):
        sign = settled.get(neuron, a[neuron])
        if neuron not in settled and c[neuron] != 0:
            assert a[neuron] ** 2 >= Fraction(local.ball) ** 2 * _dot(W[neuron], W[neuron])
        slopes[neuron] = c[neuron] if sign > 0 else Fraction(0)
    return slopes, curvatures


def _inverse_form(A, p):
    """pᵀA⁻¹p by elimination, None unless A is positive definite."""
    A, p, form = [row[:] for row in A], p[:], Fraction(0)
    for k in range(len(p)):
        if A[k][k] <= 0:
            return None
        form += p[k] ** 2 / A[k][k]
        for i in range(k + 1, len(p)):
            share = A[i][k] / A[k][k]
            A[i] = [left - share * right for left, right in zip(A[i], A[k], strict=True)]
            p[i] -= share * p[k]
    return form


def _exact(values):
    return [_exact(value) if np.ndim(value) else Fraction(float(value)) for value in values]


def _dot(left, right):
    return sum((i * j for i, j in zip(left, right, strict=True)), Fraction(0))


def brute_force_deep_radius(weights, biases, x, y, limit=np.inf):
    """inf ‖δ‖ over strict flips of a layered network, or the limit: every activation region, neuron by neuron."""
    rows = [y * weights[-1][0]] if len(weights[-1]) == 1 else _over_rivals(weights[-1], y)
    heights = [y * biases[-1][0]] if len(weights[-1]) == 1 else _over_rivals(biases[-1], y)
    hidden = x
    for W, b in zip(weights[:-1], biases[:-1], strict=True):
        hidden = np.maximum(W @ hidden + b, 0)
    if min(row @ hidden + height for row, height in zip(rows, heights, strict=True)) <= 0:
        return 0.0
    for row, height in zip(rows, heights, strict=True):
        limit = _shortest_in(weights[:-1], biases[:-1], row, height, x, limit)
    return limit


def _over_rivals(outputs, y):
    return [outputs[int(y)] - outputs[rival] for rival in range(len(outputs)) if rival != int(y)]


def _shortest_in(weights, biases, row, height, x, best):
    """Depth first: regions = signs of all neurons so far with the map that they make of δ; far ones are left out."""
    regions = [([], [], weights[0], weights[0] @ x + biases[0], 0, np.zeros(0))]
    while regions:
        G, h, V, a, layer, signs = regions.pop()
        if len(signs) == len(a):
            on = signs > 0
            if layer + 1 < len(weights):
                W = weights[layer + 1][:, on]
                regions.append((G, h, W @ V[on], W @ a[on] + biases[layer + 1], layer + 1, np.zeros(0)))
                continue
            slope, value = row[on] @ V[on], row[on] @ a[on] + height
            if not slope.any() and value > -STRICT:
                continue
            G = np.array([*G, -slope])
            if np.isfinite(_least_distance(G, np.array([*h, value + STRICT]))):
                best = min(best, _least_distance(G, np.array([*h, value])))
            continue
        neuron = len(signs)
        for sign in (-1.0, 1.0):
            G_more, h_more = [*G, sign * V[neuron]], [*h, -sign * a[neuron]]
            if _least_distance(np.array(G_more), np.array(h_more)) < best:
                regions.append((G_more, h_more, V, a, layer, np.append(signs, sign)))
    return best
