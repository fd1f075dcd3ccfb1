"""The output is bounded in the whole ball (Lemma B.5)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator

from brittle.theorems.base import Failures
from brittle.theorems.comparison import Comparison, Promise, at_least, promise_at_most
from brittle.theorems.instance import Instance
from brittle.theorems.wang2022.ball import DRAWS_AT_ONCE, BallClaim
from brittle.theorems.witness import Witness

WIDE_ENOUGH = (2 / (2 - math.sqrt(2))) ** 2  # 11.66: then 2ln(2/γ)/√m ≤ (2-√2)√ln(2/γ)
LARGEST_OUTPUT = "largest |f(x)| over the ball"


def output_bound(width: int, radius: float, gamma: float) -> float:
    """√(2ln(2/γ)) + 2ln(2/γ)/√m + C0."""
    chance = math.log(2 / gamma)
    return math.sqrt(2 * chance) + 2 * chance / math.sqrt(width) + radius


@dataclass(frozen=True)
class BoundedOutput(BallClaim, id="wang2022/B.5"):
    """|f(x; W)| ≤ √(2ln(2/γ)) + 2ln(2/γ)/√m + C0 for all W in the ball at once, w.p. ≥ 1-γ for each x.

    The maximum over the ball is computed exactly, not sampled.
    """

    claim: ClassVar = "in the whole lazy ball |f(x)| ≤ √(2ln(2/γ)) + 2ln(2/γ)/√m + C0"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(LARGEST_OUTPUT, output_bound(instance.two_layer.width, self.radius, self.gamma))]

    def witness(self, instance: Instance) -> Witness:
        ball = self.ball(instance)
        here = float(ball.network.logits(instance.data.X).abs().max())
        return Witness({LARGEST_OUTPUT: float(ball.largest_output().max()), "largest |f(x)| of the network": here})

    def failures(self, trials: int, rng: Generator) -> Failures:
        """The inputs w_s(0)·x are independent N(0, 1): nothing else of the start matters."""
        failures, V = 0, self.radius / math.sqrt(self.width)
        most, rows = output_bound(self.width, self.radius, self.gamma), max(1, DRAWS_AT_ONCE // self.width)
        for first in range(0, trials, rows):
            z = torch.randn(min(rows, trials - first), self.width, generator=rng, dtype=torch.float64)
            up = torch.rand(z.shape, generator=rng) < 0.5
            high, low = (z + V).relu(), (z - V).relu()
            largest = torch.where(up, high, -low).sum(1) / math.sqrt(self.width)
            smallest = torch.where(up, low, -high).sum(1) / math.sqrt(self.width)
            failures += int((torch.maximum(largest, -smallest) > most).sum())
        return Failures(failures, 0, self.gamma)


@dataclass(frozen=True)
class BoundedOutputWide(BoundedOutput, id="wang2022/L4.1"):
    """m ≥ C ln(2/γ) ⇒ |f(x; W)| ≤ 2√ln(2/γ) + C0 for all W in the ball at once, w.p. ≥ 1-γ for each x; C = 11.66."""

    claim: ClassVar = "in the whole lazy ball |f(x)| ≤ 2√ln(2/γ) + C0, provided that m ≥ 11.66 ln(2/γ)"
    note: ClassVar = "the second form of B.5; the paper leaves C open, (2/(2-√2))² is the smallest that B.5 gives"

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().hypotheses(instance)
        limit = WIDE_ENOUGH * math.log(2 / self.gamma)
        yield at_least("width beside 11.66 ln(2/γ)", instance.two_layer.width, limit)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(LARGEST_OUTPUT, 2 * math.sqrt(math.log(2 / self.gamma)) + self.radius)]
