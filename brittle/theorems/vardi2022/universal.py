"""One perturbation flips every example of a KKT network on nearly orthogonal data (Theorem 4.1, Corollary 4.1)."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Generator

from brittle.networks import Network
from brittle.settings import Data
from brittle.theorems.base import Solution
from brittle.theorems.comparison import Comparison, Promise, promise_at_most
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import AtKKTPoint, other_distances, other_measures, other_promises
from brittle.theorems.vardi2022.groups import ExampleGroups, geometry
from brittle.theorems.vardi2022.instances import almost_orthogonal_instance, robust_network, surrounded_instance
from brittle.theorems.witness import LARGEST_MARGIN, LONGEST, Witness


@dataclass(frozen=True)
class Universal(AtKKTPoint):
    """z = (η1+η2) Σ y_i x_i over some of the examples takes each of these to margin ≤ -1.

    A network of smallest margin q is the one of the theorem times √q, so its margins fall to -q instead of -1. Where
    the instance knows `OtherPoints`, the same holds there.

    The default instance has `examples` in R^`dim` with inner products up to `coherence`, a share `balance` of them
    labelled -1; `kkt_tolerance` is the largest relative residual of a KKT point.
    """

    dim: int = 2000
    examples: int = 60
    coherence: float = 9.0
    balance: float = 0.2
    kkt_tolerance: float = 1e-6

    @abstractmethod
    def chosen(self, instance: Instance) -> Data:
        """The examples that z is made of and flips."""

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        yield from geometry(ExampleGroups(self.chosen(instance)))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().hypotheses(instance)
        yield from other_distances(instance, self.kkt_tolerance)

    def bound(self, instance: Instance) -> list[Promise]:
        longest = ExampleGroups(self.chosen(instance)).constants.longest
        flipped = promise_at_most(LARGEST_MARGIN, -instance.smallest_margin)
        return [promise_at_most(LONGEST, longest), flipped, *other_promises(instance)]

    def witness(self, instance: Instance) -> Witness:
        data = self.chosen(instance)
        moves = ExampleGroups(data).against(data.y)
        return Witness(other_measures(instance, data.X + moves, data.y), moves, data.X, data.y)

    def comparator(self, instance: Instance) -> Network | None:
        return robust_network(self.chosen(instance))


@dataclass(frozen=True)
class UniversalPerturbation(Universal, id="vardi2022/4.1"):
    """z = (η1+η2) Σ y_i x_i, η1 = (p+1)/(d-mp), η2 = 2(cc'+1)(d+1)/(mc(d-mp)), c' = m(p+1)/(d+1).

    The default instance is solved from `starts` starts, as the theorem speaks of every KKT point.
    """

    claim: ClassVar = "x - y z has margin ≤ -1 for every example of a KKT point, with ‖z‖ ≤ 18√2·√(d/m)/c"
    applies_to: ClassVar = "nearly orthogonal examples of norm √d, two-layer networks at a KKT point"
    unknowns: ClassVar = ("examples", "dim")
    note: ClassVar = (
        "The paper prints O(√(d/(c²m))); Lemma C.9 gives 18√2 (with c ≤ 1/2 even 15√2). "
        "Its own figures are outside the hypothesis: d = 1000, n = 31 on the sphere has p ≈ 90 and room for 3 or 4."
    )

    starts: int = 3

    def chosen(self, instance: Instance) -> Data:
        """All of them."""
        return instance.data

    def default(self, rng: Generator) -> Instance:
        sizes = (self.dim, self.examples, self.coherence)
        return almost_orthogonal_instance(*sizes, rng, balance=self.balance, starts=self.starts)

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


@dataclass(frozen=True)
class UniversalPerturbationOnTheMargin(Universal, id="vardi2022/C4.1"):
    """The same with I = {i: q_i = 1} in place of all examples; the other examples may be anything."""

    claim: ClassVar = "the same z, made of the examples on the margin alone, takes each of them to margin ≤ -1"
    applies_to: ClassVar = "two-layer networks at a KKT point whose examples on the margin are as in vardi2022/4.1"

    dim: int = 600
    examples: int = 40
    coherence: float = 3.0

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        """Nothing where an example is misclassified: none is on the margin then."""
        yield from super().about_data(instance) if math.isfinite(instance.kkt_distance) else ()

    def chosen(self, instance: Instance) -> Data:
        """Those on the margin."""
        return instance.data.take(instance.kkt.on_margin)

    def witness(self, instance: Instance) -> Witness:
        witness = super().witness(instance)
        counts = {"examples": len(instance.data), "examples on the margin": len(self.chosen(instance))}
        return replace(witness, measures={**witness.measures, **counts})

    def default(self, rng: Generator) -> Instance:
        """Longer examples round every one of them are beyond the margin, too many and too long for Theorem 4.1."""
        return surrounded_instance(self.dim, self.examples, self.coherence, rng, balance=self.balance)
