"""Sums and multiples of expressions and constants."""

from collections import Counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.networks.circuit import Circuit, Expression
from brittle.networks.placing import alike, numbers, spread
from brittle.networks.terms import Array, OpaqueError


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
