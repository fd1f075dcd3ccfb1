"""Radii and proofs by other means: every activation region in turn, and rational arithmetic."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from brittle.certificates.dual_bound import DualPoint, Kind, feasible_slopes
from brittle.certificates.neighbourhood import LocalModel
from brittle.certificates.scales import Array

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
        return cls(W, a, mu * value, p, A)

    def holds(self, radius: float) -> bool:
        form = _inverse_form(self.A, self.p)
        return form is not None and 2 * self.value - form >= Fraction(radius) ** 2

    def settles(self, neuron: int, sign: int, radius: float) -> bool:
        """Whether neuron's z has the sign at every flip up to the radius: 2F + z²/(w·A⁻¹w) ≥ radius² at the minimum."""
        w, form = self.W[neuron], _inverse_form(self.A, self.p)
        own, both = _inverse_form(self.A, w), _inverse_form(self.A, [i + j for i, j in zip(self.p, w, strict=True)])
        assert form is not None
        assert own is not None
        assert both is not None
        z = self.a[neuron] - (both - form - own) / 2
        return z * sign > 0 and 2 * self.value - form + z**2 / own >= Fraction(radius) ** 2


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


def _rows(values: Array) -> Matrix:
    return [_exact(row) for row in values]


def _exact(values: Array) -> Vector:
    return [Fraction(float(value)) for value in values]


def _dot(left: Vector, right: Vector) -> Fraction:
    return sum((i * j for i, j in zip(left, right, strict=True)), Fraction(0))
