"""Theorems 2.1 and 4.1 together: a network that gradient flow has brought near a KKT point is flipped by the same z."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.networks import TwoLayer
from brittle.settings import AlmostOrthogonal
from brittle.theorems.base import Theorem
from brittle.theorems.comparison import Comparison, Promise, at_least, at_most, promise_at_most
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import Approximation, approximations
from brittle.theorems.solved import kkt_network
from brittle.theorems.vardi2022.groups import ExampleGroups, geometry
from brittle.theorems.vardi2022.instances import shares
from brittle.theorems.witness import LARGEST_MARGIN, LONGEST, Witness
from brittle.training import Exponential, Flow, LogLoss


@dataclass(frozen=True)
class NearlyUniversal(Theorem, id="vardi2022/4.1-approximate"):
    """y N(x - y z) ≤ -1 + t + E(3 + ‖z‖/√(d+1)) + K at margin 1, with ε, δ and κ of the multipliers that cost least.

    E = ε‖θ‖‖v‖√(d+1), t is the most that they let a margin exceed 1, and K pays for slopes near kinks.

    Default: `examples` in R^`dim` with inner products up to `coherence`, a share `balance` of them labelled -1. Flow
    starts at a KKT point with noise of about `disturbance` times its largest entry added to each array, and ends at a
    log-loss of `until`: a part of the noise stays in θ, and ε falls as 1/‖θ‖. From a random start a neuron can take far
    longer to turn, and the cost is then above 1 in one draw of some dozens.
    """

    claim: ClassVar = "near a KKT point, ε and δ away, z of vardi2022/4.1 takes every margin below -1 + cost(ε, δ)"
    applies_to: ClassVar = "nearly orthogonal examples of norm √d, two-layer networks that classify them"
    note: ClassVar = "Not in the paper, which lets the flow run for ever; the derivation is in docs/approximate-kkt.md."

    dim: int = 40
    examples: int = 4
    coherence: float = 1.0
    balance: float = 0.25
    disturbance: float = 0.4
    until: float = -100.0

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        about_data = list(geometry(ExampleGroups(instance.data)))
        yield from about_data
        yield at_least("smallest margin", instance.smallest_margin, math.ulp(0.0))
        if instance.smallest_margin > 0 and all(each.holds for each in about_data):  # else there is no cost
            yield at_most("cost of ε and δ", self.cost(instance), math.nextafter(1.0, -math.inf))

    def bound(self, instance: Instance) -> list[Promise]:
        longest = ExampleGroups(instance.data).constants.longest
        after = (self.cost(instance) - 1) * instance.smallest_margin
        return [promise_at_most(LONGEST, longest), promise_at_most(LARGEST_MARGIN, after)]

    def witness(self, instance: Instance) -> Witness:
        groups, best = ExampleGroups(instance.data), self.best(instance)
        measures = {"ε": best.stationarity, "δ": best.complementarity, "κ": best.kink, "E": best.misfit}
        return Witness(measures, groups.against(instance.data.y))

    def cost(self, instance: Instance) -> float:
        """t + E(3 + ‖z‖/s) + K of the best approximation."""
        return _cost(self.best(instance), ExampleGroups(instance.data))

    def best(self, instance: Instance) -> Approximation:
        """The multipliers and slopes that cost least."""
        return _best(instance)

    def default(self, rng: Generator) -> Instance:
        data = AlmostOrthogonal(self.dim, self.coherence).sample(self.examples, rng, in_span=True)
        data = replace(data, y=shares(self.examples, self.balance))
        point = kkt_network(data, rng)
        W, b, v = (self._disturbed(each, rng) for each in (point.W, point.b, point.v))
        training = Flow(until=LogLoss(self.until), loss=Exponential("sum")).train(TwoLayer(W, b, v), data)
        return Instance(data, training.network)

    def _disturbed(self, array: Tensor, rng: Generator) -> Tensor:
        noise = torch.randn(array.shape, generator=rng, dtype=torch.float64) / math.sqrt(array.numel())
        return array + self.disturbance * array.abs().max() * noise


@cache
def _best(instance: Instance) -> Approximation:
    groups = ExampleGroups(instance.data)
    found = approximations(instance.two_layer, instance.data, math.sqrt(groups.dim + 1))
    return min(found, key=lambda each: _cost(each, groups))


def _cost(each: Approximation, groups: ExampleGroups) -> float:
    numbers = groups.constants
    return each.beyond_margin(numbers) + each.misfit * (3 + groups.length / each.reach) + each.kinks
