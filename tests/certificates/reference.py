"""Radii and proofs by other means: every activation region in turn, and rational arithmetic."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from brittle.certificates.dual_bound import DualPoint, Kind, feasible_slopes
from brittle.certificates.margins import LocalModel
from brittle.certificates.rounding import Array
from brittle.networks import Layered

Vector = list[Fraction]
Matrix = list[Vector]
STRICT = 1e-5  # a region counts only if the margin gets this far below zero in it


def brute_force_radius(W: Array, b: Array, v: Array, c: float, x: Array, y: float) -> float:
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


def _least_distance(G: Array, h: Array) -> float:
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
    return float(np.linalg.norm(delta)) if (G @ delta - h).min() > -1e-8 * scale else np.inf


class Margin(NamedTuple):
    """c0 + Σ c_j φ(w_j·x + b_j) around x."""

    W: Array
    b: Array
    c: Array
    c0: float
    x: Array


@dataclass(frozen=True)
class Proof:
    """A dual point of the network itself, every number a fraction: ½‖δ‖² + μ·margin ≥ value + p·δ + ½δ·Aδ."""

    W: Matrix
    a: Vector
    value: Fraction
    p: Vector
    A: Matrix
    bends: Sequence[tuple[Fraction, Fraction, Fraction] | None]  # κ, g and c of every neuron that has a parabola

    @classmethod
    def of(
        cls, margin: Margin, model: LocalModel, point: DualPoint, settled: Mapping[int, int] | None = None
    ) -> "Proof":
        """`settled` {neuron: sign}: those that are left out because of an earlier proof."""
        kept = neurons(margin, model, settled or ())
        W, b, c, x = _rows(margin.W), _exact(margin.b), _exact(margin.c), _exact(margin.x)
        mu = Fraction(point.multiplier)
        a = [_dot(w, x) + bias for w, bias in zip(W, b, strict=True)]
        slopes, curvatures = _placed(W, a, c, kept, model, point, settled or {})
        value, p = Fraction(margin.c0), [Fraction(0)] * len(x)
        A = [[Fraction(int(i == j)) for j in range(len(x))] for i in range(len(x))]
        for w, a_j, c_j, g, k in zip(W, a, c, slopes, curvatures, strict=True):
            if k is None:
                value += g * a_j
            else:
                value += min(-(g**2) / (2 * k), c_j * a_j - (g - c_j) ** 2 / (2 * k))
                A = [[A[i][j] - mu * k * w[i] * w[j] for j in range(len(x))] for i in range(len(x))]
            p = [p_i + mu * g * w_i for p_i, w_i in zip(p, w, strict=True)]
        curves = zip(curvatures, slopes, c, strict=True)
        bends = [None if k is None else (mu * k, mu * g, mu * c_j) for k, g, c_j in curves]
        return cls(W, a, mu * value, p, A, bends)

    def holds(self, radius: float) -> bool:
        form = _inverse_form(self.A, self.p)
        return form is not None and 2 * self.value - form >= Fraction(radius) ** 2

    def settles(self, neuron: int, sign: int, radius: float) -> bool:
        """Whether neuron's z has the sign at every flip up to the radius.

        On the other side ½‖δ‖² + μ·margin ≥ F + ½(z-z*)²/(w·A⁻¹w) + ½κ(z-m)² + e, where the bound is not the margin.
        """
        w, form = self.W[neuron], _inverse_form(self.A, self.p)
        own, both = _inverse_form(self.A, w), _inverse_form(self.A, [i + j for i, j in zip(self.p, w, strict=True)])
        assert form is not None
        assert own is not None
        assert both is not None
        z = self.a[neuron] - (both - form - own) / 2
        return z * sign > 0 and 2 * self.value - form + self._price(neuron, z, own) >= Fraction(radius) ** 2

    def _price(self, neuron: int, z: Fraction, own: Fraction) -> Fraction:
        """Twice the least of these terms on the side where z is not."""
        bend = self.bends[neuron]
        if bend is None:
            return z**2 / own
        (k, g, c), a = bend, self.a[neuron]
        off, on = -(g**2) / (2 * k), c * a - (g - c) ** 2 / (2 * k)
        m, extra = (a + g / k, off - min(off, on)) if z > 0 else (a + (g - c) / k, on - min(off, on))
        lowest = (z / own + k * m) / (1 / own + k)
        at = min(lowest, Fraction(0)) if z > 0 else max(lowest, Fraction(0))
        return (at - z) ** 2 / own + k * (at - m) ** 2 + 2 * extra


def neurons(margin: Margin, model: LocalModel, settled: Collection[int] = ()) -> list[int]:
    """Which neurons of the network those of the local problem are: it keeps their order, and leaves out by size."""
    W, b, c, _, x = margin
    kept: list[int] = []
    inputs, sizes = W @ x + b, np.linalg.norm(W, axis=1)
    for neuron in range(len(W)):
        own = inputs[neuron], c[neuron], sizes[neuron]
        if c[neuron] != 0 and neuron not in settled and len(kept) < len(model.c):
            next_kept = model.a[len(kept)], model.c[len(kept)], model.sizes[len(kept)]
            kept += [neuron] if np.allclose(next_kept, own, rtol=1e-9, atol=0) else []
    assert len(kept) == len(model.c)
    return kept


def _placed(
    W: Matrix,
    a: Vector,
    c: Vector,
    kept: Sequence[int],
    model: LocalModel,
    point: DualPoint,
    settled: Mapping[int, int],
) -> tuple[Vector, list[Fraction | None]]:
    """ĝ and κ̂ (None: a straight term) of all neurons; those that the local problem left out must be fixed."""
    slopes, curvatures = [Fraction(0)] * len(W), list[Fraction | None]([None] * len(W))
    for neuron, g, k, kind in zip(kept, feasible_slopes(model, point), point.curvatures, point.kinds, strict=True):
        slopes[neuron] = Fraction(float(g))
        assert kind == Kind.CONCAVE or 0 <= slopes[neuron] <= c[neuron]
        curvatures[neuron] = Fraction(float(k)) if kind == Kind.CONCAVE else None
    for neuron in set(range(len(W))) - set(kept):
        sign = settled.get(neuron, a[neuron])
        if neuron not in settled and c[neuron] != 0:
            assert a[neuron] ** 2 >= Fraction(model.ball) ** 2 * _dot(W[neuron], W[neuron])
        slopes[neuron] = c[neuron] if sign > 0 else Fraction(0)
    return slopes, curvatures


def _inverse_form(A: Matrix, p: Vector) -> Fraction | None:
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


def _rows(values: Iterable[Array]) -> Matrix:
    return [_exact(row) for row in values]


def _exact(values: Array) -> Vector:
    return [Fraction(float(value)) for value in values]


def _dot(left: Vector, right: Vector) -> Fraction:
    return sum((i * j for i, j in zip(left, right, strict=True)), Fraction(0))


def brute_force_deep_radius(network: Layered, x: Array, y: Any, box: tuple[Any, Any] | None = None) -> float:
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


def _regions(
    layers: Sequence[tuple[Array, Array]], A: Array, a: Array, G: Array, h: Array
) -> Iterator[tuple[Array, Array, Array, Array]]:
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


def exact_deep_value(
    weights: Sequence[Array],
    biases: Sequence[Array],
    c: Array,
    c0: float,
    x: Array,
    curvatures: Sequence[Array],
    signs: Sequence[Array],
    lines: Sequence[Array],
    margin: float,
) -> Fraction | None:
    """F of a dual point from the formula, every number a fraction; None unless the Hessian is positive definite.

    F = μc_0 + β_1·(W_1x + b_1) + Σ_{k≥2} β_k·b_k - ½qᵀH⁻¹q, H and q written out.
    """
    matrices, shifts, last, point = [_rows(W) for W in weights], _rows(biases), _exact(c), _exact(x)
    lam, alpha, beta, mu = _rows(curvatures), _rows(signs), _rows(lines), Fraction(margin)
    offsets = [[_dot(w, point) + b for w, b in zip(matrices[0], shifts[0], strict=True)], *shifts[1:]]
    starts = np.cumsum([0, len(x), *map(len, biases)])
    size = int(starts[-1])
    H, q = [[Fraction(0)] * size for _ in range(size)], [Fraction(0)] * size
    for i in range(len(x)):
        H[i][i] = Fraction(1)
    value = mu * Fraction(c0)
    for k, W in enumerate(matrices):
        value += _dot(beta[k], offsets[k])
        for j, row in enumerate(W):
            here = int(starts[k + 1]) + j
            H[here][here] = 2 * lam[k][j]
            q[here] += -alpha[k][j] - beta[k][j] - lam[k][j] * offsets[k][j]
            q[here] += mu * last[j] if k == len(matrices) - 1 else 0
            for i, w in enumerate(row):
                there = int(starts[k]) + i
                H[here][there] = H[there][here] = -lam[k][j] * w
                q[there] += w * beta[k][j]
    form = _inverse_form(H, q)
    return None if form is None else value - form / 2


def brute_force_strict_radius(
    weights: Sequence[Array], biases: Sequence[Array], x: Array, y: Any, limit: float = np.inf
) -> float:
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


def _over_rivals(outputs: Array, y: Any) -> list[Any]:
    return [outputs[int(y)] - outputs[rival] for rival in range(len(outputs)) if rival != int(y)]


def _shortest_in(
    weights: Sequence[Array], biases: Sequence[Array], row: Array, height: float, x: Array, best: float
) -> float:
    """Depth first: regions = signs of all neurons so far with the map that they make of δ; far ones are left out."""
    regions: list[tuple[list[Array], list[float], Array, Array, int, Array]] = [
        ([], [], weights[0], weights[0] @ x + biases[0], 0, np.zeros(0))
    ]
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
            sides = np.array([*G, -slope])
            if np.isfinite(_least_distance(sides, np.array([*h, value + STRICT]))):
                best = min(best, _least_distance(sides, np.array([*h, value])))
            continue
        neuron = len(signs)
        for sign in (-1.0, 1.0):
            G_more, h_more = [*G, sign * V[neuron]], [*h, -sign * a[neuron]]
            if _least_distance(np.array(G_more), np.array(h_more)) < best:
                regions.append((G_more, h_more, V, a, layer, np.append(signs, sign)))
    return best
