"""What vardi2022 remarks round Theorem 4.1: width 2 suffices, z transfers, and norms need be only nearly equal."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.data import AlmostOrthogonal, Data
from brittle.kkt.solve import same
from brittle.networks import TwoLayer
from brittle.theorems.base import Theorem
from brittle.theorems.comparison import (
    LARGEST_MARGIN,
    LONGEST,
    Comparison,
    Promise,
    Witness,
    at_least,
    at_most,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.helpers import kkt_network
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import AtKKTPoint, ProofConstants, others
from brittle.theorems.vardi2022.groups import ExampleGroups, geometry, shares
from brittle.theorems.vardi2022.universal import UniversalPerturbation


@dataclass(frozen=True)
class WidthTwoSuffices(Theorem, id="vardi2022/width-2"):
    """φ(w·x) - φ(-w·x) = w·x with <w, x_i> = y_i: m ≤ d nearly orthogonal examples are linearly independent.

    Default: `examples` in R^`dim` with inner products up to `coherence`.
    """

    claim: ClassVar = "under the suppositions of vardi2022/4.1 a network of width 2 has margin 1 at every example"
    applies_to: ClassVar = "nearly orthogonal examples of norm √d"

    dim: int = 2000
    examples: int = 60
    coherence: float = 9.0

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from geometry(ExampleGroups(instance.data))

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least("smallest margin", 1, 1e-6), promise_at_most("width", 2)]

    def witness(self, instance: Instance) -> Witness:
        network = linear_network(instance.data)
        q = network.margins(instance.data.X, instance.data.y)
        return Witness({"smallest margin": float(q.min()), "width": float(network.width)})

    def default(self, rng: Generator) -> Instance:
        return Instance(AlmostOrthogonal(self.dim, self.coherence).sample(self.examples, rng, in_span=True))


def linear_network(data: Data) -> TwoLayer:
    """Two neurons, w and -w, with the shortest w that has <w, x_i> = y_i as nearly as can be."""
    w: Tensor = torch.linalg.lstsq(data.X, data.y[:, None], driver="gelsd").solution[:, 0]
    return TwoLayer(torch.stack([w, -w]), torch.zeros(2).double(), torch.tensor([1.0, -1.0]).double())


@dataclass(frozen=True)
class PerturbationTransfers(UniversalPerturbation, id="vardi2022/transfer"):
    """Theorem 4.1 at several KKT points of one data set, of which two at least must differ."""

    claim: ClassVar = "z depends on the data alone: the same z takes every example of every KKT point to margin ≤ -1"

    starts: int = 8

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().hypotheses(instance)
        yield at_least("KKT points that differ", len(_distinct(instance)), 2)

    def witness(self, instance: Instance) -> Witness:
        witness = super().witness(instance)
        return replace(witness, measures={**witness.measures, "KKT points": len(_distinct(instance))})


def _distinct(instance: Instance) -> list[TwoLayer]:
    found: list[TwoLayer] = []
    for network in (point.two_layer for point in (instance, *others(instance))):
        if not any(same(network, other) for other in found):
            found.append(network)
    return found


@dataclass(frozen=True)
class UnequalNorms(AtKKTPoint, id="vardi2022/4.1-norms"):
    """‖x_i‖² in [a, b], m ≤ (a+1)/(3(p+1)): η1 = (p+1)/(a-mp), η2 = 2(cc'+1)(b+1)/(mc(a-mp)), c' = m(p+1)/(b+1).

    C.1, C.4 and C.5 use that ‖x_i‖² ≥ a, C.2 that it is ≤ b, and C.9 that ‖u‖² ≤ mb + m²p; nothing else changes.

    Default: `examples` in R^`dim` with norms between `shortest` and `longest` times √d and inner products up to
    `coherence`, a share `balance` of them labelled -1. `kkt_tolerance` is the largest relative residual of a KKT point.
    """

    claim: ClassVar = "norms between √a and √b instead of √d leave vardi2022/4.1 as it is, up to factors b/a"
    applies_to: ClassVar = "nearly orthogonal examples, two-layer networks at a KKT point"
    note: ClassVar = "The paper believes that norms need be only approximately equal; its proof, read again, shows it."

    dim: int = 2000
    examples: int = 30
    coherence: float = 9.0
    balance: float = 0.3
    shortest: float = 0.8
    longest: float = 1.25
    kkt_tolerance: float = 1e-6

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        numbers, groups = _numbers(instance.data), ExampleGroups(instance.data)
        yield at_least("examples of the rarer label", groups.rarer, 1)
        yield at_most("examples", len(instance.data), numbers.limit)

    def bound(self, instance: Instance) -> list[Promise]:
        longest = _numbers(instance.data).longest
        return [promise_at_most(LONGEST, longest), promise_at_most(LARGEST_MARGIN, -instance.smallest_margin)]

    def witness(self, instance: Instance) -> Witness:
        data, numbers = instance.data, _numbers(instance.data)
        z = (numbers.opening + numbers.crossing) * ExampleGroups(data).direction
        return Witness({"b/a": numbers.most / numbers.dim}, -data.y[:, None] * z)

    def default(self, rng: Generator) -> Instance:
        data = AlmostOrthogonal(self.dim, self.coherence).sample(self.examples, rng, in_span=True)
        norms = self.shortest + (self.longest - self.shortest) * torch.rand(len(data), 1, generator=rng).double()
        data = Data(data.X * norms, shares(len(data), self.balance), truth=replace(data.truth, radius=None))
        return Instance(data, kkt_network(data, rng))


@dataclass(frozen=True)
class NormConstants(ProofConstants):
    """`dim` is a, the least ‖x_i‖², and `most` b, the largest."""

    inverse_share: ClassVar = 3
    spread: ClassVar[float] = 0.0
    before: ClassVar[float] = 1.0

    most: float = 0.0

    @property
    def mass(self) -> float:
        """Lemma C.2 with b for d."""
        c = self.balance
        share = self.groups * self.across / (self.most + 1)
        return self.groups * c / ((c * share + 1) * (self.most + 1))

    @property
    def least_room(self) -> float:
        """Lemma C.5 with a for d."""
        return self.dim / 3

    @property
    def longest(self) -> float:
        """(η1+η2)√(mb+m²p)."""
        return (self.opening + self.crossing) * math.sqrt(self.groups * self.most + self.groups**2 * self.coherence)


def _numbers(data: Data) -> NormConstants:
    groups, squares = ExampleGroups(data), data.X.square().sum(1)
    return NormConstants(float(squares.min()), len(data), groups.coherence, groups.balance, float(squares.max()))
