"""Sums and multiples of expressions and constants."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.networks.circuit import Circuit, Expression
from brittle.networks.terms import Array, OpaqueError, Places


def numbers(value: Any) -> Array:
    return value.detach().double().numpy() if isinstance(value, Tensor) else np.asarray(value, dtype=np.float64)


def matrix(weight: Any) -> Array:
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise OpaqueError("a linear layer has weights that are no matrix")
    return numbers(weight)


def per_axis(value: Any, axes: int, before: int) -> tuple[int, int]:
    """One number for all axes or one for each; with one axis there is another of no effect before it."""
    values = [value] * axes if isinstance(value, int) else list(value) * (axes // len(value))
    first, second = values if axes == 2 else (before, values[0])
    return first, second


def number_places(shape: Sequence[int], start: int = 0) -> Tensor:
    """The places of two examples, those of the second negative; 0 is none."""
    count = math.prod(shape)
    one = torch.arange(start + 1, start + count + 1).reshape(1, *shape)
    return torch.cat([one, -one])


def check_examples_apart(places: Tensor) -> tuple[Places, tuple[int, ...]]:
    """Where the numbers of one example went, -1 where there are none; the examples must not be mixed."""
    two = places.ndim > 0 and len(places) == 2
    apart = two and bool((places[0] >= 0).all()) and torch.equal(places[1], -places[0])
    if not apart:
        raise OpaqueError("it mixes the examples of a batch")
    return places[0].reshape(-1).numpy() - 1, tuple(places.shape[1:])


def groups(shape: tuple[int, ...], dim: Any, keepdim: bool) -> tuple[Places, tuple[int, ...]]:
    """The places of one example that an operation over axes takes together, a row each; the shape of what it gives."""
    axes = {0 if each is None else each % (len(shape) + 1) for each in (dim if isinstance(dim, Sequence) else [dim])}
    if 0 in axes:
        raise OpaqueError("it mixes the examples of a batch")
    places = np.arange(math.prod(shape)).reshape(1, *shape)
    kept = [axis for axis in range(places.ndim) if axis not in axes]
    grouped = places.transpose(*kept, *sorted(axes)).reshape(-1, math.prod(places.shape[axis] for axis in axes))
    lengths = [1 if axis in axes else each for axis, each in enumerate(places.shape) if keepdim or axis not in axes]
    return grouped, tuple(lengths[1:])


def at(inner: Expression, places: Places) -> Expression:
    return inner.taken(places, (len(places),))


def alike(first: Expression, other: Expression) -> tuple[Expression, Expression]:
    """Both in the shape that they have together."""
    if len(first.shape) != len(other.shape):
        raise OpaqueError("it joins values whose examples do not line up")
    shape = together(first.shape, other.shape)
    return broadcast(first, shape), broadcast(other, shape)


def together(first: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(first, other)
    except ValueError:
        raise OpaqueError(f"it joins values of the shapes {first} and {other}") from None


def broadcast(inner: Expression, shape: tuple[int, ...]) -> Expression:
    places = np.broadcast_to(np.arange(inner.size).reshape(inner.shape), shape)
    return inner.taken(places.reshape(-1), shape)


def spread(inner: Expression, constant: Array) -> tuple[Expression, Array]:
    """A constant as one number for each of the expression's, in the shape that both have together."""
    shape = together((1, *inner.shape), constant.shape)
    if len(shape) != len(inner.shape) + 1 or shape[0] != 1:
        raise OpaqueError("it adds constants that differ between examples")
    spread = np.ascontiguousarray(np.broadcast_to(constant, shape)).reshape(-1)
    return broadcast(inner, shape[1:]), spread


class Arithmetic:
    """What is done to the expressions of one circuit; `parts` counts what was met, in words."""

    def __init__(self) -> None:
        self.circuit, self.parts = Circuit(), Counter[str]()

    def add(self, first: Any, other: Any, alpha: float = 1) -> Expression:
        if not isinstance(other, Expression):
            return self._shifted(first, numbers(other) * alpha)
        if not isinstance(first, Expression):
            return self._shifted(self.mul(other, alpha), numbers(first))
        first, other = alike(first, self.mul(other, alpha))
        self.parts["sum{s} of branches"] += 1
        return self.circuit.sum(first, other)

    def sub(self, first: Any, other: Any, alpha: float = 1) -> Expression:
        return self.add(first, other, -alpha)

    def rsub(self, first: Any, other: Any, alpha: float = 1) -> Expression:
        return self.sub(other, first, alpha)

    def mul(self, first: Any, other: Any) -> Expression:
        if isinstance(first, Expression) and isinstance(other, Expression):
            raise OpaqueError("it multiplies two values that depend on the input")
        inner, factor = (first, other) if isinstance(first, Expression) else (other, first)
        if not isinstance(factor, Tensor) and factor == 1:
            return inner
        inner, factors = spread(inner, numbers(factor))
        return inner.times(factors)

    def div(self, first: Any, other: Any) -> Expression:
        if isinstance(other, Expression):
            raise OpaqueError("it divides by what depends on the input")
        return self.mul(first, torch.from_numpy(np.asarray(1 / numbers(other))))

    def neg(self, inner: Expression) -> Expression:
        return self.mul(inner, -1.0)

    def _shifted(self, inner: Expression, shift: Array) -> Expression:
        inner, shifts = spread(inner, shift)
        return inner.shifted(shifts)
