"""A network near its start: f(x) = Σ_s v_s φ(w_s·x), v_s = ±1/√m, w_s(0) ~ N(0, I), ‖w_s - w_s(0)‖ ≤ C0/√m."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.data import Sphere
from brittle.networks import LazyInit, TwoLayer
from brittle.theorems.base import Failures, LikelyClaim, chance
from brittle.theorems.comparison import Comparison, Promise, Witness, at_least, at_most, promise_at_most
from brittle.theorems.instance import Instance
from brittle.training import Logistic, Steps
from brittle.training.lazy import LazyTraining as LazyTraining

EXACTLY = 1e-9
UNLIKELY = 18.0  # P[χ²_d ≥ d + 2√(td) + 2t] ≤ e^-t, and a normal variable passes 6 with a chance of 2·10^-9
KNOWN_START = "starts that are known"
APPLIES = "unit examples; a two-layer network in the lazy ball round its start (wang2022 2.1)"
DRAWS_AT_ONCE = 2**21  # inputs held by a Monte Carlo run


def lazy_instance(
    dim: int, width: int, radius: float, examples: int, steps: int, rng: Generator, rate: float = 0.1
) -> Instance:
    """Points on the unit sphere with random labels, and a network trained on them inside the ball."""
    data = Sphere(dim, radius=1.0).sample(examples, rng)
    start = replace(LazyInit().draw(dim, width, rng), start=None)
    if not steps:
        return Instance(data, replace(start, start=start))
    training = LazyTraining(Steps(steps), radius=radius, loss=Logistic(), rate=rate, batch=examples, biases=False)
    return Instance(data, training.train(start, data, rng).network)


@dataclass(frozen=True, eq=False)
class WeightBall:
    """Every W in the ball round the start of the network of `instance`, at its examples; `radius` is C0, that of the
    ball is C0/√m."""

    instance: Instance
    radius: float

    @property
    def network(self) -> TwoLayer:
        """The network that was given."""
        return self.instance.two_layer

    @property
    def start(self) -> TwoLayer:
        """The network itself where its start is not known; `about_ball` then refuses it."""
        return self.network if self.network.start is None else self.network.start

    @property
    def dim(self) -> int:
        """d."""
        return self.instance.data.dim

    @property
    def width(self) -> int:
        """m."""
        return self.network.width

    @property
    def reach(self) -> float:
        """V = C0/√m."""
        return self.radius / math.sqrt(self.width)

    @cached_property
    def inputs(self) -> Tensor:
        """w_s(0)·x, (n, width)."""
        return self.instance.data.X @ self.start.W.T

    @property
    def moved(self) -> float:
        """√m max_s ‖w_s - w_s(0)‖."""
        return math.sqrt(self.width) * float((self.network.W - self.start.W).norm(dim=1).max())

    def largest_output(self) -> Tensor:
        """max |f(x)| over the ball, exactly: every neuron moves its input by up to V on its own, (n,)."""
        v, z, V = self.start.v, self.inputs, self.reach
        high = torch.where(v > 0, (z + V).relu(), (z - V).relu()) @ v
        low = torch.where(v > 0, (z - V).relu(), (z + V).relu()) @ v
        return torch.maximum(high.abs(), low.abs())

    def unstable(self) -> Tensor:
        """Which neurons change sign at x somewhere in the ball, (n, width)."""
        return (self.inputs > -self.reach) & (self.inputs <= self.reach)


def about_ball(ball: WeightBall) -> Iterator[Comparison]:
    """Unit examples, a known start of the stated law with signs of even chances, and weights inside the ball.

    The law is looked at in three numbers that pass their limits with a chance of e^-18 or less.
    """
    lengths = ball.instance.data.X.norm(dim=1)
    yield at_most("deviation of ‖x‖ from 1", float((lengths - 1).abs().max()), EXACTLY)
    network, count = ball.network, ball.start.W.numel()
    yield at_least(KNOWN_START, network.start is not None, 1)
    yield at_most("largest bias", float(torch.cat([network.b, network.c[None]]).abs().max()), 0)
    output = (network.v.abs() * math.sqrt(ball.width) - 1).abs().max()
    yield at_most("deviation of the output weights from 1/√m", float(output), EXACTLY)
    uneven = abs(float(network.v.sign().sum())) / math.sqrt(ball.width)
    yield at_most("sum of the output weights' signs, in standard deviations", uneven, 6)
    errors = abs(float(ball.start.W.square().mean()) - 1) * math.sqrt(count / 2)
    yield at_most("variance of the start, in standard errors from 1", errors, 6)
    alike = float(ball.start.W.sum(0).square().sum()) / count
    yield at_most("‖Σ w_s(0)‖² over md", alike, 1 + 2 * math.sqrt(UNLIKELY / ball.dim) + 2 * UNLIKELY / ball.dim)
    yield at_most("distance from the start times √m", ball.moved, ball.radius, tolerance=EXACTLY)


@dataclass(frozen=True)
class BallClaim(LikelyClaim):
    """A statement about every network of the ball, with probability 1-γ over the start for each example.

    The default instance has `examples` unit vectors of R^`dim` and a network of width `width`, trained for `steps` of
    lazy training (at its start where 0). `radius` is C0, `gamma` is γ.
    """

    applies_to: ClassVar = APPLIES

    dim: int = 784
    width: int = 10_000
    radius: float = 1.0
    gamma: float = chance(0.01)
    examples: int = 3
    steps: int = 2

    def default(self, rng: Generator) -> Instance:
        return lazy_instance(self.dim, self.width, self.radius, self.examples, self.steps, rng)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from about_ball(self.ball(instance))

    def probability(self, instance: Instance) -> float:
        return 1 - len(instance.data) * self.gamma

    def ball(self, instance: Instance) -> WeightBall:
        """The ball round the start of the instance's network."""
        return WeightBall(instance, self.radius)


# The output is bounded in the whole ball (Lemma B.5).


WIDE_ENOUGH = (2 / (2 - math.sqrt(2))) ** 2  # 11.66: then 2ln(2/γ)/√m ≤ (2-√2)√ln(2/γ)
LARGEST_OUTPUT = "largest |f(x)| over the ball"


def bound_output(width: int, radius: float, gamma: float) -> float:
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
        return [promise_at_most(LARGEST_OUTPUT, bound_output(instance.two_layer.width, self.radius, self.gamma))]

    def witness(self, instance: Instance) -> Witness:
        ball = self.ball(instance)
        here = float(ball.network.logits(instance.data.X).abs().max())
        return Witness({LARGEST_OUTPUT: float(ball.largest_output().max()), "largest |f(x)| of the network": here})

    def failures(self, trials: int, rng: Generator) -> Failures:
        """The inputs w_s(0)·x are independent N(0, 1): nothing else of the start matters."""
        failures, V = 0, self.radius / math.sqrt(self.width)
        most, rows = bound_output(self.width, self.radius, self.gamma), max(1, DRAWS_AT_ONCE // self.width)
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
