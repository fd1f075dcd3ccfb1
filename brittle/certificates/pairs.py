"""Two-layer margins, one per rival class: what the dual and the exact certificate work on."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.certificates.base import Question
from brittle.certificates.local import Array, Local, Span, localise
from brittle.common.errors import InputError
from brittle.networks import Deep, Network, TwoLayer


@dataclass(frozen=True, eq=False)
class TwoLayerMargins:
    """logits = V φ(Wx + b)[group] + c: W (m, d) without repeated neurons, V (classes, width), group (width,).

    V has one row for a sign network. Repeated neurons are merged, so that a kink which cancels in the sum is none.
    """

    W: Array
    b: Array
    V: Array
    c: Array
    group: NDArray[np.intp]

    @classmethod
    def of(cls, network: Network, method: str) -> "TwoLayerMargins":
        if isinstance(network, TwoLayer):
            W, b, V, c = map(_array, (network.W, network.b, network.v[None], network.c[None]))
        elif isinstance(network, Deep) and network.depth == 2:
            W, V, b, c = map(_array, (*network.weights, *network.biases))
        else:
            kind = f"{network.depth} layers" if isinstance(network, Deep) else f"the type {type(network).__name__}"
            raise InputError(f"the network has {kind}; method {method} needs two layers (relaxation takes any depth)")
        W, b, V, c = scaled(W, b, V, c)
        _, first, group = np.unique(np.column_stack([W, b]), axis=0, return_index=True, return_inverse=True)
        return cls(W[first], b[first], V, c, group.reshape(-1))

    @cached_property
    def span(self) -> Span:
        return Span.of(self.W)

    def locals(self, question: Question) -> Iterator[Local]:
        """The margin over each rival around x, in the ball as it is when the rival's turn comes."""
        x = _array(question.x)
        for outputs, biases in self._signed(question.y):
            c, c0 = self._sums(outputs), math.fsum(biases)
            ball = question.shorten(question.x.new_zeros(0, len(x)))
            yield localise(self.span, self.W, self.b, c, c0, x, ball)

    def start(self, question: Question) -> Array:
        return self.span.reduce(_array(question.flip))

    def lift(self, epsilon: Array) -> Tensor:
        """ε as a direction for the network, (1, dim)."""
        return torch.from_numpy(self.span.lift(epsilon).copy())[None]

    def _signed(self, y: Tensor) -> Iterator[tuple[Array, Array]]:
        """The rows of V and c whose sum is a margin: the label's own, and minus a rival's."""
        if len(self.V) == 1:
            yield float(y) * self.V, float(y) * self.c
            return
        for rival in range(len(self.V)):
            if rival != int(y):
                yield np.stack([self.V[int(y)], -self.V[rival]]), np.array([self.c[int(y)], -self.c[rival]])

    def _sums(self, outputs: Array) -> Array:
        """The margin's weight of every merged neuron, rounded once: its sign is right."""
        if len(self.W) == outputs.shape[1]:
            c = np.empty(len(self.W))
            c[self.group] = outputs.sum(0)
            return c
        parts: list[list[float]] = [[] for _ in self.W]
        for neuron, values in zip(self.group, outputs.T, strict=True):
            parts[neuron].extend(values)
        return np.array([math.fsum(values) for values in parts])


def scaled(W: Array, b: Array, V: Array, c: Array) -> tuple[Array, Array, Array, Array]:
    """Rows of W and the outputs brought near 1 by powers of two: no margin's sign changes, and no norm underflows.

    What falls below the smallest float on the way is paid for in `localise`.
    """
    rows = np.where(W.any(1), np.frexp(np.abs(W).max(1))[1], 0)
    outputs = np.where(V.any(0), rows + np.frexp(np.abs(V).max(0))[1], -(10**6))
    bias = np.frexp(np.abs(c).max())[1] if c.any() else -(10**6)
    top = max(int(outputs.max()), int(bias))
    top = 0 if top == -(10**6) else top
    return np.ldexp(W, -rows[:, None]), np.ldexp(b, -rows), np.ldexp(V, rows - top), np.ldexp(c, -top)


def _array(values: Tensor) -> Array:
    return np.ascontiguousarray(values.detach().double().numpy())
