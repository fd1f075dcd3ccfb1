"""Two-layer margins, one per rival class: what the dual and the exact certificate work on."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.certificates.example import Enclosure, Example
from brittle.certificates.neighbourhood import Inputs, LocalModel, Span
from brittle.certificates.rounding import SMALLEST
from brittle.certificates.scales import (
    ABSENT,
    Array,
    Exponents,
    added,
    exact_sum,
    exponents,
    row_exponents,
    shifted,
    split,
)
from brittle.common.errors import require
from brittle.networks import Network, as_layered

FLOOR = 2.0**-500  # under the weight of a neuron whose sign is not fixed: its square is a normal float
NORMAL = 2.0**-1000  # a float below it may have lost digits on its way
Rival = dict[int, float]  # the rows of V and c whose sum is a margin, with their signs: the label's own, minus another


@dataclass(frozen=True, eq=False)
class RivalMargin:
    """The margin over one rival around an example, in lengths of `unit`, a power of two that brings the ball near 1."""

    example: Example
    model: LocalModel
    unit: float
    span: Span

    def ball(self, enclosure: Enclosure) -> float:
        """The radius of the enclosure's ball in this unit."""
        return enclosure.ball / self.unit

    def start(self, enclosure: Enclosure) -> Array:
        """The shortest known flip as ε."""
        return self.span.reduce(_array(enclosure.flip) / self.unit)

    def attacked(self, enclosure: Enclosure, epsilon: Array) -> Enclosure:
        """The enclosure after ε was tried as a direction."""
        return self.example.attacked(enclosure, torch.from_numpy(self.span.lift(epsilon).copy())[None])


@dataclass(frozen=True, eq=False)
class TwoLayerMargins:
    """logits = V 2^rows φ(Wx + 2^-rows b)[group] + c: W (m, d) without repeated neurons, V (classes, width).

    The rows of W are near 1. V has one row for a sign network. Neurons that are equal before any scaling are merged, so
    that a kink which cancels in the sum is none; `constant` (classes, k) with its inputs are those without weights.
    """

    W: Array
    rows: Exponents
    b: Array
    V: Array
    c: Array
    group: NDArray[np.intp]
    constant: Array
    constant_inputs: Array

    @classmethod
    def of(cls, network: Network, method: str) -> "TwoLayerMargins":
        layered = as_layered(network, f"method {method}")
        depth = layered.depth
        require(depth == 2, f"the network has {depth} layers; method {method} needs two layers (relaxation takes more)")
        W, V, b, c = map(_array, (*layered.weights, *layered.biases))
        bent = W.any(1)
        _, first, group = np.unique(np.column_stack([W, b])[bent], axis=0, return_index=True, return_inverse=True)
        W, constant_inputs, b = W[bent][first], np.maximum(b[~bent], 0), b[bent][first]
        rows = row_exponents(W)
        return cls(shifted(W, -rows[:, None]), rows, b, V[:, bent], c, group.reshape(-1), V[:, ~bent], constant_inputs)

    @cached_property
    def span(self) -> Span:
        return Span.of(self.W)

    def rivals(self, y: Tensor) -> Iterator[Rival]:
        """One per other class; a sign network has one margin."""
        if len(self.V) == 1:
            yield {0: float(y)}
            return
        for rival in range(len(self.V)):
            if rival != int(y):
                yield {int(y): 1.0, rival: -1.0}

    def over(self, rival: Rival, example: Example, ball: float) -> RivalMargin:
        """The margin over a rival in a ball around the example."""
        exponent = math.frexp(ball)[1] - 1
        unit = 2.0**exponent
        b, x = shifted(self.b, -self.rows - exponent), shifted(_array(example.x), -exponent)
        inputs = Inputs.of(self.span, self.W, b, x, ball / unit)
        return RivalMargin(example, self._margin(inputs, rival, exponent), unit, self.span)

    def _margin(self, inputs: Inputs, rival: Rival, exponent: int) -> LocalModel:
        """Outputs in a unit of their own: the largest term of this margin in this ball is near 1."""
        c, by = self._outputs(rival)
        c0, c0_by = self._height(rival)
        by = by + self.rows + exponent
        terms = np.where(inputs.off, ABSENT, exponents(c) + by + exponents(inputs.ranges))
        top = max(int(terms.max(initial=ABSENT)), c0_by if c0 else ABSENT)
        c, lost = _floored(shifted(c, by - top), np.sign(c), np.where(inputs.on, SMALLEST, FLOOR))
        height = float(shifted(np.array(c0), c0_by - top))
        return inputs.margin(c, height or math.copysign(SMALLEST, c0) if c0 else 0.0, lost)

    def _outputs(self, rival: Rival) -> tuple[Array, Exponents]:
        """The margin's weight of every merged neuron as c·2^by, rounded once: its sign is right."""
        outputs = np.stack([sign * self.V[row] for row, sign in rival.items()])
        c, by = np.empty(len(self.W)), np.empty(len(self.W), dtype=np.int64)
        if len(self.W) == outputs.shape[1]:
            c[self.group], by[self.group] = added(outputs)
            return c, by
        parts: list[list[float]] = [[] for _ in self.W]
        for neuron, values in zip(self.group, outputs.T, strict=True):
            parts[neuron].extend(values)
        for neuron, values in enumerate(parts):
            c[neuron], by[neuron] = exact_sum(values)
        return c, by

    def _height(self, rival: Rival) -> tuple[float, int]:
        """The margin's constant term as c0·2^by, rounded once: its sign is right."""
        biases = [sign * self.c[row] for row, sign in rival.items()]
        if not self.constant.size:
            return exact_sum(biases)
        total = sum(map(Fraction, biases), Fraction(0))
        for row, sign in rival.items():
            for v, z in zip(self.constant[row], self.constant_inputs, strict=True):
                total += Fraction(sign * v) * Fraction(z)
        return split(total)


def _floored(c: Array, signs: Array, least: Array) -> tuple[Array, Array]:
    """Weights that are not smaller than `least`, unless they are 0, and by how much they may be off."""
    small = np.abs(c) < np.maximum(least, NORMAL)
    return np.where(small, signs * np.maximum(np.abs(c), least), c), np.where(small, np.abs(signs) * least, 0.0)


def _array(values: Tensor) -> Array:
    return np.ascontiguousarray(values.detach().double().numpy())
