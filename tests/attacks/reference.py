"""Rays by other means: exact rational arithmetic, and direct evaluation in extended precision."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np


def rational_first_flip(
    W: Sequence[Sequence[Any]], b: Sequence[Any], v: Sequence[Any], c: Any, x: Sequence[Any], y: Any, u: Sequence[Any]
) -> Fraction | None:
    """inf {t ≥ 0: y N(x + t u) < 0} of a two-layer network with rational entries; None where there is none."""
    W, b, v = [[Fraction(e) for e in row] for row in W], [Fraction(e) for e in b], [Fraction(e) for e in v]

    def f(t: Fraction) -> Fraction:
        point = [Fraction(e) + t * Fraction(k) for e, k in zip(x, u, strict=True)]
        inputs = [sum(w * e for w, e in zip(row, point, strict=True)) + bias for row, bias in zip(W, b, strict=True)]
        output = sum((out * max(z, Fraction(0)) for out, z in zip(v, inputs, strict=True)), Fraction(c))
        return Fraction(y) * Fraction(output)

    if f(Fraction(0)) < 0:
        return Fraction(0)
    knots = [Fraction(0)]
    for row, bias in zip(W, b, strict=True):
        a = sum(w * Fraction(e) for w, e in zip(row, x, strict=True)) + bias
        s = sum(w * Fraction(e) for w, e in zip(row, u, strict=True))
        if s != 0 and -a / s > 0:
            knots.append(-a / s)
    knots = sorted(set(knots))
    ends: list[Fraction | None] = [*knots[1:], None]
    for low, high in zip(knots, ends, strict=True):
        end = f(high) if high is not None else f(low + 2) - f(low + 1)
        if end < 0 and (high is not None or f(low) >= 0):
            start, inner = f(low), f(low + ((high - low) / 2 if high is not None else 1))
            width = (high - low) / 2 if high is not None else Fraction(1)
            slope = (inner - start) / width
            return low - start / slope
    return None


def scanned_first_flip(
    W: Any, b: Any, v: Any, c: Any, X: Any, y: Any, U: Any, limit: float = np.inf, bisections: int = 90
) -> np.ndarray:
    """(n,) by direct evaluation in extended precision at every breakpoint, between them and beyond, then bisection."""
    W, b, v, X, y, U = (np.asarray(e, dtype=np.longdouble) for e in (W, b, v, X, y, U))
    a, s = X @ W.T + b, U @ W.T

    def f(t: np.ndarray) -> np.ndarray:
        outputs = np.longdouble(c) + np.maximum(a[:, None] + t[..., None] * s[:, None], 0) @ v
        return np.asarray(y[:, None] * outputs)

    with np.errstate(divide="ignore", invalid="ignore"):
        knots = np.sort(np.where(s != 0, -a / np.where(s != 0, s, 1), 0).clip(0, limit), 1)
    knots = np.concatenate([np.zeros((len(X), 1)), knots], 1)
    last = np.minimum(2 * knots[:, -1:] + np.array([[1e8]]), limit)
    grid = np.sort(np.concatenate([knots, (knots[:, 1:] + knots[:, :-1]) / 2, last], 1), 1)
    flipped = f(grid) < -1e-15
    hit, first = flipped.any(1), flipped.argmax(1)
    rows = np.arange(len(X))
    low, high = grid[rows, np.maximum(first - 1, 0)], grid[rows, first]
    for _ in range(bisections):
        middle = (low + high) / 2
        below = f(middle[:, None])[:, 0] < 0
        low, high = np.where(below, low, middle), np.where(below, middle, high)
    return np.where(hit, np.where(first == 0, 0, high), np.inf).astype(float)
