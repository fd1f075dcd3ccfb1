"""How large a margin training reaches, and why it all but stops there (Remark 3.1)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator
from torch.nn import functional

from brittle.data import Data, DataInfo, Sphere
from brittle.networks import Kaiming
from brittle.theorems.base import Theorem
from brittle.theorems.comparison import Comparison, Promise, Witness, at_least, at_most, promise_at_most
from brittle.theorems.instance import Instance
from brittle.theorems.melamed2023.instances import OffSubspace, SubspaceTraining, about_training
from brittle.training import Logistic, Steps
from brittle.training.descent import GradientDescent

MARGIN = "margin after the training"
PRINTED = "relative deviation of |L'(q)| from q e^(-q)/(1+e^(-q)) at q = log² d"


@dataclass(frozen=True)
class MarginSweep(SubspaceTraining):
    """The training of the last of several networks; `margins` are (d, margin) of all of them."""

    margins: tuple[tuple[int, float], ...]


def largest_margin(pace: float, before: float, steps: int) -> float:
    """ln(e^max(γ0, a) + (e-1)aT)."""
    reached = max(before, pace)
    return reached + math.log1p((math.e - 1) * pace * steps * math.exp(-reached))


@dataclass(frozen=True)
class StalledMargin(Theorem, id="melamed2023/R3.1"):
    """γ(T) ≤ ln(e^max(γ(0), a) + (e-1)aT), a = ηnR²‖u‖²: the margin γ = min q after T steps of rate η on the sum of n
    logistic losses, ‖x‖ ≤ R. A step adds at most a·e^(-γ) to it, and leads to at most a while γ ≤ ln a. So with
    a ≤ log² d and T polynomial in d the margin is O(log² d), even O(a + log d), as the remark says.

    Default: `examples` on the sphere of radius √d for every d in `dims`, a network of this `width`, T = d^`power` steps
    with a = `pace`; the last is judged, the margins of all are shown beside log² d.
    """

    claim: ClassVar = "polynomially many steps of descent reach a margin of O(log² d) only: training all but stops"
    applies_to: ClassVar = "bounded data; two layers, first layer trained by descent on the sum of logistic losses"
    note: ClassVar = (
        "the remark argues by |L'(log² d)|, with a spurious factor q (melamed2023/R3.1-printed); the recursion is "
        "ours. It needs a = O(log² d): one step with a larger rate can overshoot any margin"
    )

    dims: tuple[int, ...] = (16, 24, 36)
    width: int = 20
    examples: int = 10
    power: float = 2.0
    pace: float = 1.0

    def default(self, rng: Generator) -> Instance:
        runs = [self._trained(dim, rng) for dim in self.dims]
        margins = tuple((run.data.dim, run.smallest_margin) for run in runs)
        last, training = runs[-1], runs[-1].known(SubspaceTraining)
        assert training is not None
        sweep = MarginSweep(training.beta, training.rate, 0.0, training.steps, margins)
        return replace(last, facts=sweep)

    def _trained(self, dim: int, rng: Generator) -> Instance:
        data = Sphere(dim).sample(self.examples, rng)
        start = replace(Kaiming().draw(dim, self.width, rng), start=None)
        training = SubspaceTraining(dim**-0.5, self.pace / (self.examples * dim), 0.0, round(dim**self.power))
        stop = Steps(training.steps)
        descent = GradientDescent(stop, Logistic("sum"), rate=training.rate, layers="first", biases=False)
        return Instance(data, descent.train(replace(start, start=start), data).network, training)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        off, network = OffSubspace(instance), instance.two_layer
        yield from about_training(off)
        yield at_most("decay λ", off.training.decay, 0)
        yield at_least("rate η", off.training.rate, 0)
        if (start := network.start) is not None:
            pairs = ((network.b, start.b), (network.v, start.v), (network.c, start.c))
            moved = max(float((now - then).abs().max()) for now, then in pairs)
            yield at_most("movement of biases and output weights", moved, 0)
        yield at_least("smallest margin", instance.smallest_margin, 0)

    def bound(self, instance: Instance) -> list[Promise]:
        network, data, training = instance.two_layer, instance.data, OffSubspace(instance).training
        assert network.start is not None
        square = float(data.X.square().sum(1).max() * network.v.square().sum())
        before = float(network.start.margins(data.X, data.y).min())
        return [promise_at_most(MARGIN, largest_margin(training.rate * len(data) * square, before, training.steps))]

    def witness(self, instance: Instance) -> Witness:
        sweep, training = instance.known(MarginSweep), OffSubspace(instance).training
        margins = ((instance.data.dim, instance.smallest_margin),) if sweep is None else sweep.margins
        beside = {f"margin over log² d at d = {dim}": margin / math.log(dim) ** 2 for dim, margin in margins if dim > 1}
        return Witness({MARGIN: instance.smallest_margin, "steps": training.steps, **beside})


@dataclass(frozen=True)
class PrintedSlope(Theorem, id="melamed2023/R3.1-printed"):
    """|L'(q)| = q e^(-q)/(1+e^(-q)) at q = log² d (natural logarithm), as the remark prints it.

    `dim` is d.
    """

    claim: ClassVar = "the slope of the logistic loss is |L'(q)| = q e^(-q)/(1+e^(-q)) (as printed)"
    applies_to: ClassVar = "any data of dimension d ≥ 2; the logistic loss; no network"
    flaw: ClassVar = "false: |L'(q)| = e^(-q)/(1+e^(-q)) = 1/(1+e^q), without the factor q"
    repaired: ClassVar = "melamed2023/R3.1"

    dim: int = 784

    def default(self, rng: Generator) -> Instance:
        one = torch.ones(1, dtype=torch.float64)
        return Instance(Data(one[None], one, truth=DataInfo(dim=self.dim)))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_least("dimension", instance.data.dim, 2)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(PRINTED, 1e-9)]

    def witness(self, instance: Instance) -> Witness:
        at = math.log(instance.data.dim) ** 2
        q = torch.tensor(at, dtype=torch.float64, requires_grad=True)
        (derivative,) = torch.autograd.grad(functional.softplus(-q), q)
        printed = at * math.exp(-at) / (1 + math.exp(-at))
        return Witness({PRINTED: abs(float(derivative.abs()) / printed - 1)})
