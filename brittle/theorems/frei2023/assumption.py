"""Assumption 2.2, what it entails for the data, and how likely (Lemmas 2.1 and A.9, Proposition A.1)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Generator, Tensor

from brittle.common.errors import require_between, require_count
from brittle.theorems.base import Failures, LikelyClaim, Solution, Theorem
from brittle.theorems.comparison import Comparison, Promise, Relation, promise_at_least, promise_at_most
from brittle.theorems.frei2023.claims import FreshClaim
from brittle.theorems.frei2023.groups import (
    ClusterConstants,
    ClusterGroups,
    assumption,
    enough_examples,
    fresh,
    largest_clusters,
)
from brittle.theorems.frei2023.instances import cluster_data
from brittle.theorems.frei2023.properties import PROPERTIES, count_strange_sets
from brittle.theorems.instance import Instance
from brittle.theorems.witness import Witness


@dataclass(frozen=True)
class Assumption(Theorem, id="frei2023/A2.2"):
    """‖μ‖ = √d, σ ≤ 1, k(p + Δ + 1) ≤ (d - Δ + 1)/10 with Δ = 4σ√d ln d, and both labels.

    `dim` is d, `clusters` k, `noise` σ; `coherence` is p, and √d ln(d) stands for it where the means are random
    (`random_means`; vardi2022, Lemma 3.1).
    """

    claim: ClassVar = "the assumption; it entails Δ ≤ (d-19)/21 (Lemma A.9), k ≤ d and d-Δ-k(p+Δ) ≥ 6d/7-1/10"
    applies_to: ClassVar = "clusters with long, nearly orthogonal means"
    unknowns: ClassVar = ("clusters", "dim")

    dim: int = 3_000_000
    clusters: int = 2
    noise: float = 1.0
    coherence: float = 30_000.0
    random_means: bool = False

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from assumption(ClusterGroups(instance.data))

    def bound(self, instance: Instance) -> list[Promise]:
        d, room = instance.data.dim, ClusterGroups(instance.data).constants.least_room
        return [
            promise_at_most("Δ", (d - 19) / 21),
            promise_at_most("k", d),
            promise_at_least("d - Δ - k(p + Δ)", room),
        ]

    def witness(self, instance: Instance) -> Witness:
        numbers = ClusterGroups(instance.data).constants
        measures = {"Δ": numbers.spread, "k": numbers.groups, "d - Δ - k(p + Δ)": numbers.room, "c'": numbers.share}
        return Witness(measures)

    def default(self, rng: Generator) -> Instance:
        means = {"random_means": True} if self.random_means else {"cosine": self.coherence / self.dim}
        return Instance(cluster_data(self.dim, self.clusters, self.noise, rng, **means))

    def solve_for(self, unknown: str) -> Solution:
        require_between("noise", self.noise, 0, 1)
        if unknown == "clusters":
            return self._clusters_allowed()
        if unknown == "dim":
            least = self._smallest_dim()
            given = {"clusters": float(self.clusters), "noise": self.noise, "p": self._coherence(least)}
            return Solution(self.id, unknown, least, math.inf, given, "the first d with k (p + Δ + 1) ≤ (d - Δ + 1)/10")
        return super().solve_for(unknown)

    def _clusters_allowed(self) -> Solution:
        limit = self._largest(self.dim)
        least, most = (2.0, float(math.floor(limit))) if limit >= 2 else (math.nan, math.nan)  # both labels occur
        given = {"dim": float(self.dim), "noise": self.noise, "p": self._coherence(self.dim)}
        return Solution(self.id, "clusters", least, most, given, "2 ≤ k and k (p + Δ + 1) ≤ (d - Δ + 1)/10")

    def _coherence(self, dim: float) -> float:
        return math.sqrt(dim) * math.log(dim) if self.random_means else self.coherence

    def _largest(self, dim: float) -> float:
        return largest_clusters(dim, self.noise, self._coherence(dim))

    def _smallest_dim(self) -> int:
        """The limit on k rises with d once it is positive, so bisection finds where it passes k."""
        require_count("clusters", self.clusters, least=2)
        high = 2
        while self._largest(high) < self.clusters:
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._largest(middle) >= self.clusters else (middle, high)
        return high


@dataclass(frozen=True)
class LinearlySeparable(FreshClaim, id="frei2023/L2.1"):
    """u = Σ y^(q) μ^(q). The proof gives y u·x ≥ (9d-1)/10 with the stated probability, not only > 0."""

    claim: ClassVar = "y = sign(u·x) for a fresh example with probability ≥ 1 - 2d^{1-ln(d)/2}, u = Σ y^(q) μ^(q)"

    def rate(self, constants: ClusterConstants) -> float:
        return constants.misplaced

    def bound(self, instance: Instance) -> list[Promise]:
        wrong = self.rate(self.groups(instance).constants)
        smallest = promise_at_least("smallest y u·x", self._least(instance))
        return [promise_at_most("share of wrong signs", wrong), smallest]

    def witness(self, instance: Instance) -> Witness:
        products = self._products(instance)
        wrong = float((products <= 0).double().mean())
        return Witness({"share of wrong signs": wrong, "smallest y u·x": float(products.min())})

    def holds(self, instance: Instance) -> Tensor:
        return self._products(instance) >= self._least(instance)

    def _least(self, instance: Instance) -> float:
        return (9 * instance.data.dim - 1) / 10

    def _products(self, instance: Instance) -> Tensor:
        unseen = fresh(instance)
        return unseen.y * (unseen.X @ self.groups(instance).direction)


@dataclass(frozen=True)
class OrdinaryTrainingSet(LikelyClaim, id="frei2023/P1-P6"):
    """Proposition A.1. P1, P2, P3 and P6 are events; P4 and P5 follow from the first three and are checked too.

    Default: `clusters` of noise `noise` in R^`dim`, whose means are at angles of the given `cosine`.
    """

    claim: ClassVar = "the training set has P1-P6 with probability ≥ 1-(3n²d^{-ln(d)/2} + n²e^{-d/16} + d^{1-ln d})"
    applies_to: ClassVar = "n ≥ k ln²d examples of clusters under Assumption 2.2"

    dim: int = 3_000_000
    clusters: int = 2
    noise: float = 1.0
    cosine: float = 0.01

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        groups = ClusterGroups(instance.data)
        yield from assumption(groups)
        yield enough_examples(groups.constants)

    def probability(self, instance: Instance) -> float:
        return 1 - ClusterGroups(instance.data).constants.unlikely

    def bound(self, instance: Instance) -> list[Promise]:
        return [_promise(measured) for measured in _measured(instance)]

    def witness(self, instance: Instance) -> Witness:
        return Witness({measured.name: measured.value for measured in _measured(instance)})

    def failures(self, trials: int, rng: Generator) -> Failures | None:
        """A draw is a training set."""
        instance = self.default(rng)
        groups = ClusterGroups(instance.data)
        if len(groups.data) > groups.dim - len(groups) or not self.supposes(instance):
            return None
        return Failures(count_strange_sets(trials, groups, rng), 0, groups.constants.unlikely)

    def default(self, rng: Generator) -> Instance:
        return Instance(cluster_data(self.dim, self.clusters, self.noise, rng, cosine=self.cosine))


def _measured(instance: Instance) -> list[Comparison]:
    groups = ClusterGroups(instance.data)
    return [comparison for check in PROPERTIES for comparison in check(groups)]


def _promise(comparison: Comparison) -> Promise:
    least = comparison.relation is Relation.AT_LEAST
    return (promise_at_least if least else promise_at_most)(comparison.name, comparison.threshold)
