"""Theorems 2.1 and 4.2 together: clusters, and a network that gradient flow has brought near a KKT point."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import torch
from torch import Generator

from brittle.networks import PyTorch
from brittle.settings import Clusters
from brittle.theorems.comparison import Comparison, Promise, at_least, at_most, promise_at_most
from brittle.theorems.frei2023.groups import ClusterGroups, fresh
from brittle.theorems.frei2023.lemmas import Lemma
from brittle.theorems.frei2023.properties import Property, ordinary, p2, p3, p4, p5, p6
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import Approximation, approximations
from brittle.theorems.witness import LARGEST_MARGIN, LONGEST, Witness
from brittle.training import Exponential, Flow, LogLoss


@dataclass(frozen=True)
class NearlyNotRobust(Lemma, id="frei2023/4.2-approximate"):
    """y N(x - y z) ≤ before + E(2 + ‖z‖/s) + K - 3 mass'/mass at margin 1 for every ordinary fresh example.

    With α the largest sum of a cluster, before = (d+Δ+1 + c'(d-Δ+1))α + E, and mass'/mass is 1-E-c'(d-Δ+1)α over
    1-c'/(1-2c'). E = ε‖θ‖‖v‖s, s is the largest √(‖x‖²+1) of all examples, and K pays for slopes near kinks.

    Default: `examples` of `clusters` of noise `noise` in R^`dim`, and a network of width `width` that gradient flow
    trains to a log-loss of `until`, from a start that is `smaller` times smaller than PyTorch's.
    """

    claim: ClassVar = "near a KKT point, ε and δ away, z of frei2023/4.2 takes ordinary fresh examples below -1 + cost"
    applies_to: ClassVar = "clusters under Assumption 2.2, two-layer networks that classify the training set"
    note: ClassVar = "Not in the paper, which lets the flow run for ever; the derivation is in docs/approximate-kkt.md."
    properties: ClassVar[tuple[Property, ...]] = (p2, p3, p4, p5, p6)

    dim: int = 570
    noise: float = 1 / math.sqrt(570)
    cosine: float = 0.0
    test: int = 100
    examples: int = 12
    width: int = 20
    smaller: float = 20.0
    until: float = -1e3

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        about_data = list(self.about_data(instance))
        yield from about_data
        count = ordinary(self.groups(instance), fresh(instance)).sum()
        yield at_least("ordinary fresh examples (Lemma A.13)", int(count), 1)
        yield at_least("smallest margin", instance.smallest_margin, math.ulp(0.0))
        if instance.smallest_margin > 0 and all(each.holds for each in about_data):  # else there is no bound
            yield at_most("margin after z, by ε and δ", self.after(instance), -math.ulp(0.0))

    def bound(self, instance: Instance) -> list[Promise]:
        longest = self.groups(instance).constants.longest
        after = self.after(instance) * instance.smallest_margin
        return [promise_at_most(LONGEST, longest), promise_at_most(LARGEST_MARGIN, after)]

    def witness(self, instance: Instance) -> Witness:
        data, best = self.ordinary(instance), _best(instance)
        measures = {"ε": best.stationarity, "δ": best.complementarity, "κ": best.kink, "E": best.misfit}
        return Witness(measures, self.groups(instance).against(data.y), data.X, data.y)

    def after(self, instance: Instance) -> float:
        """What is promised of the largest margin after z, at margin 1."""
        return _after(_best(instance), self.groups(instance))

    def default(self, rng: Generator) -> Instance:
        setting = Clusters(self.dim, self.clusters, self.noise, cosine=self.cosine)
        data = setting.sample(self.examples, rng, test=self.test, in_span=True)
        start = PyTorch(self.smaller).draw(data.columns, self.width, rng)
        training = Flow(until=LogLoss(self.until), loss=Exponential("sum")).train(start, data)
        return Instance(data, training.network)


@cache
def _best(instance: Instance) -> Approximation:
    groups = ClusterGroups(instance.data)
    everyone = torch.cat([instance.data.X, fresh(instance).X])
    reach = math.sqrt(float(everyone.square().sum(1).max()) + 1)
    found = approximations(instance.two_layer, instance.data, reach)
    return min(found, key=lambda each: _after(each, groups))


def _after(each: Approximation, groups: ClusterGroups) -> float:
    numbers = groups.constants
    across = numbers.share * numbers.within * each.largest_sum(numbers)  # what all other clusters add to an output
    before = (numbers.dim + numbers.spread + 1) * each.largest_sum(numbers) + across + each.misfit
    kept = (1 - each.misfit - across) / (1 - numbers.lost)
    return before + each.misfit * (2 + groups.length / each.reach) + each.kinks - (numbers.before + 1) * kept
