"""Margins in rational arithmetic: what a network really does, at any scale of its weights."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, SupportsInt

from brittle.networks import Layered, TwoLayer

Vector = list[Fraction]
Matrix = list[Vector]
Numbers = Iterable[Any]  # fractions, floats or a tensor of them


@lru_cache(maxsize=4)
def layers(network: Layered) -> list[tuple[Matrix, Vector]]:
    """(weights, biases) of every layer as fractions."""
    if isinstance(network, TwoLayer):
        return [(_exact(network.W), _exact(network.b)), (_exact(network.v[None]), _exact(network.c[None]))]
    return [(_exact(W), _exact(b)) for W, b in zip(network.weights, network.biases, strict=True)]


def exact_margin(network: Layered, point: Numbers, y: SupportsInt) -> Fraction:
    """The margin at a point of fractions or floats: positive where the label y is right."""
    values = [Fraction(value) for value in point]
    for depth, (W, b) in enumerate(layers(network)):
        values = [max(value, Fraction(0)) for value in values] if depth else values
        values = [_dot(row, values) + bias for row, bias in zip(W, b, strict=True)]
    if len(values) == 1:
        return int(y) * values[0]
    return values[int(y)] - max(value for rival, value in enumerate(values) if rival != int(y))


def flips(network: Layered, x: Numbers, y: SupportsInt, delta: Numbers) -> bool:
    """Whether x + δ is strictly on the other side."""
    moved = [Fraction(start) + Fraction(step) for start, step in zip(x, delta, strict=True)]
    return exact_margin(network, moved, y) < 0


def is_shorter(delta: Numbers, radius: float) -> bool:
    """Whether ‖δ‖ < radius."""
    return sum(Fraction(step) ** 2 for step in delta) < Fraction(radius) ** 2


def first_flip_along(network: Layered, point: Numbers, y: SupportsInt, direction: Numbers) -> Fraction | None:
    """inf {t > 0: x + t·direction is a strict flip} of a two-layer network, None if there is none: exact."""
    (W, b), (V, c) = layers(network)
    x, u = [Fraction(value) for value in point], [Fraction(value) for value in direction]
    inputs = [_dot(w, x) + bias for w, bias in zip(W, b, strict=True)]
    slopes = [_dot(w, u) for w in W]
    rows, heights = _rivals(V, c, y)
    found = [_first_below(row, height, inputs, slopes) for row, height in zip(rows, heights, strict=True)]
    return min((t for t in found if t is not None), default=None)


def _rivals(V: Matrix, c: Vector, y: SupportsInt) -> tuple[Matrix, Vector]:
    """The output weights and the constant of every margin."""
    if len(V) == 1:
        return [[int(y) * v for v in V[0]]], [int(y) * c[0]]
    others = [rival for rival in range(len(V)) if rival != int(y)]
    rows = [[own - other for own, other in zip(V[int(y)], V[rival], strict=True)] for rival in others]
    return rows, [c[int(y)] - c[rival] for rival in others]


def _first_below(row: Vector, height: Fraction, inputs: Vector, slopes: Vector) -> Fraction | None:
    """inf {t > 0: height + Σ row_j φ(inputs_j + t slopes_j) < 0}, piece by piece."""
    kinks = {-a / s for a, s in zip(inputs, slopes, strict=True) if s != 0 and -a / s > 0}
    starts = [Fraction(0), *sorted(kinks)]
    stops: list[Fraction | None] = [*starts[1:], None]
    for start, stop in zip(starts, stops, strict=True):
        middle = start + 1 if stop is None else (start + stop) / 2
        on = [j for j, (a, s) in enumerate(zip(inputs, slopes, strict=True)) if a + middle * s > 0]
        value = height + sum((row[j] * (inputs[j] + start * slopes[j]) for j in on), Fraction(0))
        fall = -sum((row[j] * slopes[j] for j in on), Fraction(0))
        if value < 0 or (fall > 0 and (stop is None or value < fall * (stop - start))):
            return start + max(value, Fraction(0)) / fall if fall > 0 else start
    return None


def _exact(values: Any) -> Any:
    return [_exact(value) if value.ndim else Fraction(float(value)) for value in values]


def _dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((i * j for i, j in zip(left, right, strict=True) if i and j), Fraction(0))
