"""Why training all but stops at a margin of log² d (Remark 3.1)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator
from torch.nn import functional

from brittle.settings import Data, Truth
from brittle.theorems.base import Theorem
from brittle.theorems.comparison import Comparison, Promise, at_least, promise_at_most
from brittle.theorems.instance import Instance
from brittle.theorems.witness import Witness

SLOPE = "ln |L'(log² d)|"
PRINTED = "relative deviation of |L'(q)| from q e^(-q)/(1+e^(-q)) at q = log² d"


@dataclass(frozen=True)
class Slope(Theorem):
    """The slope of the logistic loss at the margin log² d (natural logarithm).

    `dim` is d.
    """

    applies_to: ClassVar = "any data of dimension d ≥ 2; the logistic loss; no network"

    dim: int = 784

    def default(self, rng: Generator) -> Instance:
        one = torch.ones(1, dtype=torch.float64)
        return Instance(Data(one[None], one, truth=Truth(dim=self.dim)))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_least("dimension", instance.data.dim, 2)

    def witness(self, instance: Instance) -> Witness:
        at = math.log(instance.data.dim) ** 2
        q = torch.tensor(at, dtype=torch.float64, requires_grad=True)
        (derivative,) = torch.autograd.grad(functional.softplus(-q), q)
        slope = float(derivative.abs())
        printed = at * math.exp(-at) / (1 + math.exp(-at))
        return Witness({SLOPE: math.log(slope), PRINTED: abs(slope / printed - 1)})


@dataclass(frozen=True)
class VanishingSlope(Slope, id="melamed2023/R3.1"):
    """|L'(q)| = 1/(1+e^q) ≤ d^(-ln d) at q = ln² d for L(q) = ln(1+e^(-q)): below every polynomial of 1/d."""

    claim: ClassVar = "at a margin of log² d the loss has a slope of at most d^(-log d): training all but stops"
    note: ClassVar = "the paper's |L'(q)| has a spurious factor q (see melamed2023/R3.1-printed); the conclusion stands"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(SLOPE, -(math.log(instance.data.dim) ** 2))]


@dataclass(frozen=True)
class PrintedSlope(Slope, id="melamed2023/R3.1-printed"):
    """|L'(q)| = q e^(-q)/(1+e^(-q)), as the remark prints it."""

    claim: ClassVar = "the slope of the logistic loss is |L'(q)| = q e^(-q)/(1+e^(-q)) (as printed)"
    flaw: ClassVar = "false: |L'(q)| = e^(-q)/(1+e^(-q)) = 1/(1+e^q), without the factor q"
    repaired: ClassVar = "melamed2023/R3.1"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(PRINTED, 1e-9)]
