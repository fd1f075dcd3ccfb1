"""Two-layer margins, one per rival class: what the dual and the exact certificate work on."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from brittle.certificates.base import Question
from brittle.certificates.local import Array, Local, Span, localise
from brittle.common.errors import InputError
from brittle.networks import Deep, Network, TwoLayer


@dataclass(frozen=True, eq=False)
class TwoLayerMargins:
    """logits = V φ(Wx + b) + c, V (classes, m), all float64; one row for a sign network."""

    W: Array
    b: Array
    V: Array
    c: Array

    @classmethod
    def of(cls, network: Network, method: str) -> "TwoLayerMargins":
        if isinstance(network, TwoLayer):
            return cls(*map(_array, (network.W, network.b, network.v[None], network.c[None])))
        if isinstance(network, Deep) and network.depth == 2:
            (W, V), (b, c) = network.weights, network.biases
            return cls(*map(_array, (W, b, V, c)))
        kind = f"{network.depth} layers" if isinstance(network, Deep) else f"the type {type(network).__name__}"
        raise InputError(f"the network has {kind}; method {method} needs two layers (relaxation takes any depth)")

    @cached_property
    def span(self) -> Span:
        return Span.of(self.W)

    def locals(self, question: Question) -> Iterator[Local]:
        """The margin over each rival around x, in the ball as it is when the rival's turn comes."""
        x = _array(question.x)
        for c, c0 in self._outputs(question.y):
            ball = question.shorten(question.x.new_zeros(0, len(x)))
            yield localise(self.span, self.W, self.b, c, c0, x, ball)

    def start(self, question: Question) -> Array:
        return self.span.reduce(_array(question.flip))

    def lift(self, epsilon: Array) -> Tensor:
        """ε as a direction for the network, (1, dim)."""
        return torch.from_numpy(self.span.lift(epsilon).copy())[None]

    def _outputs(self, y: Tensor) -> Iterator[tuple[Array, float]]:
        if len(self.V) == 1:
            yield float(y) * self.V[0], float(y) * float(self.c[0])
            return
        for rival in range(len(self.V)):
            if rival != int(y):
                yield self.V[int(y)] - self.V[rival], float(self.c[int(y)] - self.c[rival])


def _array(values: Tensor) -> Array:
    return np.ascontiguousarray(values.detach().double().numpy())
