"""Activations and maxima as ReLUs.

leaky(x) = φ(x) - s φ(-x)      clamp(x, a, b) = a + φ(x - a) - φ(x - b)      max(a, b) = a + φ(b - a)
"""

import math
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from brittle.networks.arithmetic import Arithmetic, alike, at, groups, numbers, per_axis, spread
from brittle.networks.circuit import Expression
from brittle.networks.terms import Array, Places, joint, require_entries, windows


class Bends(Arithmetic):
    """Everything that is not affine."""

    def relu(self, inner: Expression) -> Expression:
        return self.circuit.relu(inner)

    def leaky_relu(self, inner: Expression, negative_slope: float = 0.01) -> Expression:
        return self._two_slopes(inner, np.full(inner.size, negative_slope))

    def prelu(self, inner: Expression, weight: Any) -> Expression:
        slopes = numbers(weight).reshape(-1)
        return self._two_slopes(inner, np.repeat(slopes, inner.size // len(slopes)))

    def prelu_spread(self, inner: Expression, weight: Any) -> Expression:
        return self._two_slopes(*spread(inner, numbers(weight)))

    def _two_slopes(self, inner: Expression, slopes: Array) -> Expression:
        self.parts["leaky activation{s} as two ReLUs each"] += 1
        below = self.relu(inner.times(np.full(inner.size, -1.0)))
        return self.circuit.sum(self.relu(inner), below.times(-slopes))

    def clamp(self, inner: Expression, min: Any = None, max: Any = None) -> Expression:
        """The limits may be arrays."""
        if min is None and max is None:
            return inner
        if min is None:
            return self.neg(self.clamp(self.neg(inner), min=-numbers(max)))
        inner, low = spread(inner, numbers(min))
        above = self.relu(inner.shifted(-low))
        if max is None:
            return above.shifted(low)
        self.parts["clamp{s} as two ReLUs each"] += 1
        inner, high = spread(inner, numbers(max))
        beyond = self.relu(inner.shifted(-np.maximum(low, high)))
        return self.circuit.sum(above, self.neg(beyond)).shifted(np.minimum(low, high))

    def hardtanh(self, inner: Expression, min_val: float = -1, max_val: float = 1) -> Expression:
        return self.clamp(inner, min_val, max_val)

    def relu6(self, inner: Expression) -> Expression:
        return self.clamp(inner, 0.0, 6.0)

    def hardsigmoid(self, inner: Expression) -> Expression:
        return self.mul(self.clamp(self._shifted(inner, numbers(3.0)), 0.0, 6.0), 1 / 6)

    def abs(self, inner: Expression) -> Expression:
        return self.circuit.sum(self.relu(inner), self.relu(self.neg(inner)))

    def maximum(self, first: Any, other: Any) -> Expression:
        if not isinstance(first, Expression) or not isinstance(other, Expression):
            inner, limit = (first, other) if isinstance(first, Expression) else (other, first)
            return self.clamp(inner, min=limit)
        return self._larger(*alike(first, other))

    def minimum(self, first: Any, other: Any) -> Expression:
        return self.neg(self.maximum(*(self.neg(x) if isinstance(x, Expression) else -x for x in (first, other))))

    def _larger(self, first: Expression, other: Expression) -> Expression:
        difference = self.circuit.sum(other, self.neg(first))
        return self.circuit.sum(first, self.relu(difference))

    def amax(self, inner: Expression, dim: Any = None, keepdim: bool = False) -> Expression:
        grouped, shape = groups(inner.shape, dim, keepdim)
        self.parts["maximum over axes"] += 1
        return self._largest(inner, grouped).shaped(shape)

    def max_pool(
        self, inner: Expression, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Expression:  # fmt: skip
        """A tree of pairs for every window."""
        axes = len(inner.shape) - 1
        channels, lengths = inner.shape[0], per_axis(inner.shape[1:], axes, 1)
        sizes, paddings = per_axis(kernel_size, axes, 1), per_axis(padding, axes, 0)
        dilations, strides = per_axis(dilation, axes, 1), per_axis(stride or kernel_size, axes, 1)
        probe = torch.empty(1, 1, *lengths, device="meta")
        counts = functional.max_pool2d(probe, sizes, strides, paddings, dilations, ceil_mode).shape[2:]
        require_entries(channels * math.prod(counts) * math.prod(sizes))
        seen = [windows(*axis) for axis in zip(lengths, counts, sizes, strides, paddings, dilations, strict=True)]
        plane = joint(seen[0], seen[1], lengths[1]).reshape(math.prod(counts), -1)
        plane = np.where(plane >= 0, plane, plane.max(1, keepdims=True))  # what lies outside is never the largest
        offsets = np.arange(channels)[:, None, None] * math.prod(lengths)
        neurons = self.circuit.neurons
        result = self._largest(inner, (plane + offsets).reshape(-1, plane.shape[1]))
        self.parts[f"max pooling{{s}} as {self.circuit.neurons - neurons} ReLUs"] += 1
        return result.shaped((channels, *counts[-axes:]))

    def _largest(self, inner: Expression, candidates: Places) -> Expression:
        """Of every row of places."""
        while candidates.shape[1] > 1:
            rows, pairs = len(candidates), candidates.shape[1] // 2
            first, other = (at(inner, candidates[:, side : 2 * pairs : 2].reshape(-1)) for side in (0, 1))
            parts = [self._larger(first, other)]
            if candidates.shape[1] % 2:
                parts.append(at(inner, candidates[:, -1]))
            inner = self.circuit.joined(parts)
            grid = np.arange(rows * pairs).reshape(rows, pairs)
            odd = np.arange(rows * pairs, inner.size).reshape(rows, -1)
            candidates = np.concatenate([grid, odd], 1)
        return at(inner, candidates[:, 0])
