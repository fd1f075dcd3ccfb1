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


def brute_force_deep_radius(network, x, y, box=None):
    """min ‖δ‖ with margin(x + δ) ≤ 0, x + δ in the box: every activation pattern of every layer in turn."""
    *hidden, (V, c) = [(layer.matrix.numpy(), layer.offset.numpy()) for layer in network.layers]
    rows, heights = (float(y) * V, float(y) * c) if len(V) == 1 else (V[y] - np.delete(V, y, 0), c[y] - np.delete(c, y))
    walls = (np.zeros((0, len(x))), np.zeros(0))
    if box is not None:
        walls = np.vstack([np.eye(len(x)), -np.eye(len(x))]), np.concatenate([box[0] - x, x - box[1]])
    return min(
        _least_distance(np.vstack([G, -slope @ A]), np.append(h, slope @ a + height))
        for A, a, G, h in _regions(hidden, np.eye(len(x)), x, *walls)
        for slope, height in zip(rows, heights, strict=True)
    )


def _regions(layers, A, a, G, h):
    """Every pattern as (A, a, G, h): the last hidden layer is Aδ + a where Gδ ≥ h."""
    if not layers:
        yield A, a, G, h
        return
    (W, b), *rest = layers
    A, a = W @ A, W @ a + b
    for pattern in product((-1.0, 1.0), repeat=len(W)):
        signs = np.array(pattern)
        on = (signs > 0)[:, None]
        region = np.vstack([G, signs[:, None] * A]), np.concatenate([h, -signs * a])
        if np.isfinite(_least_distance(*region)):
            yield from _regions(rest, on * A, on[:, 0] * a, *region)


def exact_deep_value(weights, biases, c, c0, x, curvatures, signs, lines, margin):
    """F of a dual point from the formula, every number a fraction; None unless the Hessian is positive definite.

    F = μc_0 + β_1·(W_1x + b_1) + Σ_{k≥2} β_k·b_k - ½qᵀH⁻¹q, H and q written out.
    """
    weights, biases, c, x = _exact(weights), _exact(biases), _exact(c), _exact(x)
    lam, alpha, beta, mu = _exact(curvatures), _exact(signs), _exact(lines), Fraction(margin)
    offsets = [[_dot(w, x) + b for w, b in zip(weights[0], biases[0], strict=True)], *biases[1:]]
    starts = np.cumsum([0, len(x), *map(len, biases)])
    size = int(starts[-1])
    H, q = [[Fraction(0)] * size for _ in range(size)], [Fraction(0)] * size
    for i in range(len(x)):
        H[i][i] = Fraction(1)
    value = mu * Fraction(c0)
    for k, W in enumerate(weights):
        value += _dot(beta[k], offsets[k])
        for j, row in enumerate(W):
            here = int(starts[k + 1]) + j
            H[here][here] = 2 * lam[k][j]
            q[here] += -alpha[k][j] - beta[k][j] - lam[k][j] * offsets[k][j]
            q[here] += mu * c[j] if k == len(weights) - 1 else 0
            for i, w in enumerate(row):
                there = int(starts[k]) + i
                H[here][there] = H[there][here] = -lam[k][j] * w
                q[there] += w * beta[k][j]
    form = _inverse_form(H, q)
    return None if form is None else value - form / 2
