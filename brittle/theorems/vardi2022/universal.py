"""One perturbation flips every example of a KKT network on nearly orthogonal data (Theorem 4.1, Corollary 4.1)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator

from brittle.networks import Network
from brittle.settings import Data
from brittle.theorems.base import (
    LARGEST_MARGIN,
    LONGEST,
    Comparison,
    Instance,
    Promise,
    Solution,
    Theorem,
    Witness,
    promise_at_most,
)
from brittle.theorems.vardi2022.instances import almost_orthogonal_instance, orthogonal_instance, robust_network
from brittle.theorems.vardi2022.sizes import Sizes, geometry, kkt_point_up_to


@dataclass(frozen=True)
class UniversalPerturbation(Theorem):
    """z = (η1+η2) Σ y_i x_i, η1 = (p+1)/(d-mp), η2 = 2(cc'+1)(d+1)/(mc(d-mp)), c' = m(p+1)/(d+1).

    A network of smallest margin q is the one of the theorem times √q, so its margins fall to -q instead of -1.
    """

    id: ClassVar = "vardi2022/4.1"
    claim: ClassVar = "x - y z has margin ≤ -1 for every example of a KKT point, with ‖z‖ ≤ 18√2·√(d/m)/c"
    applies_to: ClassVar = "nearly orthogonal examples of norm √d, two-layer networks at a KKT point"

    unknowns: ClassVar = ("examples", "dim")

    dim: int = 299
    examples: int = 100
    coherence: float = 0.0  # p; random inner products of this size where it is not 0
    kkt_tolerance: float = 1e-6

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from geometry(Sizes(instance.data))
        yield kkt_point_up_to(self.kkt_tolerance, instance)

    def bound(self, instance: Instance) -> list[Promise]:
        return promises(Sizes(instance.data), instance.smallest_margin)

    def witness(self, instance: Instance) -> Witness:
        return universal_witness(instance.data)

    def comparator(self, instance: Instance) -> Network | None:
        return robust_network(instance.data)

    def default(self, rng: Generator) -> Instance:
        if self.coherence == 0 and self.examples % 2 == 0:
            return orthogonal_instance(self.dim, self.examples)
        return almost_orthogonal_instance(self.dim, self.examples, self.coherence, rng)

    def solve_for(self, unknown: str) -> Solution:
        p, text = self.coherence, "m ≤ (d+1)/(3(p+1)), with at least one example of each label"
        if unknown == "examples":
            limit = (self.dim + 1) / (3 * (p + 1))
            least, most = (2.0, float(math.floor(limit))) if limit >= 2 else (math.nan, math.nan)
            return Solution(self.id, unknown, least, most, {"dim": float(self.dim), "p": p}, text)
        if unknown == "dim":
            first = math.ceil(3 * self.examples * (p + 1) - 1)
            return Solution(self.id, unknown, first, math.inf, {"examples": float(self.examples), "p": p}, text)
        return super().solve_for(unknown)

    def note(self) -> str:
        return (
            "The paper prints O(√(d/(c²m))); Lemma C.9 gives 18√2 (with c ≤ 1/2 even 15√2). "
            "Its own figures are outside the hypothesis: d = 1000, n = 31 on the sphere has p ≈ 90 and room for 3 or 4."
        )


@dataclass(frozen=True)
class UniversalPerturbationOnTheMargin(Theorem):
    """The same with I = {i: q_i = 1} in place of all examples; the other examples may be anything."""

    id: ClassVar = "vardi2022/C4.1"
    claim: ClassVar = "the same z, made of the examples on the margin alone, takes each of them to margin ≤ -1"
    applies_to: ClassVar = "two-layer networks at a KKT point whose examples on the margin are as in vardi2022/4.1"

    dim: int = 299
    examples: int = 100
    kkt_tolerance: float = 1e-6

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        distance = kkt_point_up_to(self.kkt_tolerance, instance)
        yield from geometry(Sizes(on_margin(instance))) if math.isfinite(distance.value) else ()
        yield distance

    def bound(self, instance: Instance) -> list[Promise]:
        return promises(Sizes(on_margin(instance)), instance.smallest_margin)

    def witness(self, instance: Instance) -> Witness:
        chosen = on_margin(instance)
        witness = universal_witness(chosen)
        counts = {"examples": float(len(instance.data)), "examples on the margin": float(len(chosen))}
        return replace(witness, measures=counts, examples=chosen.X, labels=chosen.y)

    def comparator(self, instance: Instance) -> Network | None:
        return robust_network(on_margin(instance))

    def default(self, rng: Generator) -> Instance:
        """Longer copies of every example are off the margin, and too many and too long for Theorem 4.1."""
        inner = orthogonal_instance(self.dim, self.examples)
        X, y = inner.data.X, inner.data.y
        longer = torch.cat([X, 1.5 * X, 2.5 * X])
        return Instance(Data(longer, y.repeat(3), truth=replace(inner.data.truth, radius=None)), inner.network)


def on_margin(instance: Instance) -> Data:
    return instance.data.take(instance.kkt.on_margin)


def promises(sizes: Sizes, smallest_margin: float) -> list[Promise]:
    longest = 18 * math.sqrt(2 * sizes.dim / sizes.examples) / sizes.balance  # Lemma C.9
    return [promise_at_most(LONGEST, longest), promise_at_most(LARGEST_MARGIN, -smallest_margin)]


def universal_witness(data: Data) -> Witness:
    sizes = Sizes(data)
    z = (sizes.opening + sizes.crossing) * sizes.direction
    return Witness(perturbations=-data.y[:, None] * z)
