"""Assumption 2.2, what it entails for the data, and how likely (Lemmas 2.1 and A.9, Proposition A.1)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Generator

from brittle.common.errors import require_between, require_count
from brittle.theorems.base import (
    Comparison,
    Failures,
    Instance,
    Promise,
    Relation,
    Solution,
    Theorem,
    Witness,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.draws import supposed
from brittle.theorems.frei2023.instances import cluster_data
from brittle.theorems.frei2023.properties import PROPERTIES, count_strange_sets
from brittle.theorems.frei2023.sizes import Sizes, assumption, enough_examples, fresh, largest_clusters


@dataclass(frozen=True)
class Assumption(Theorem):
    """‖μ‖ = √d, σ ≤ 1, k(p + Δ + 1) ≤ (d - Δ + 1)/10 with Δ = 4σ√d ln d, and both labels.

    `noise` is σ; `coherence` is p, and √d ln(d) stands for it where the means are random (vardi2022, Lemma 3.1).
    """

    id: ClassVar = "frei2023/A2.2"
    claim: ClassVar = "the assumption; it entails Δ ≤ (d-19)/21 (Lemma A.9), k ≤ d and d-Δ-k(p+Δ) ≥ 6d/7-1/10"
    applies_to: ClassVar = "clusters with long, nearly orthogonal means"
    unknowns: ClassVar = ("clusters", "dim")

    dim: int = 570
    clusters: int = 2
    noise: float = 1 / math.sqrt(570)
    coherence: float = 0.0
    random_means: bool = False

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from assumption(Sizes(instance.data))

    def bound(self, instance: Instance) -> list[Promise]:
        d = instance.data.dim
        return [
            promise_at_most("Δ", (d - 19) / 21),
            promise_at_most("k", d),
            promise_at_least("d - Δ - k(p + Δ)", 6 * d / 7 - 0.1),
        ]

    def witness(self, instance: Instance) -> Witness:
        sizes = Sizes(instance.data)
        return Witness({"Δ": sizes.spread, "k": sizes.clusters, "d - Δ - k(p + Δ)": sizes.room, "c'": sizes.share})

    def default(self, rng: Generator) -> Instance:
        return Instance(cluster_data(self.dim, self.clusters, self.noise, rng, random_means=self.random_means))

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
class LinearlySeparable(Theorem):
    """u = Σ y^(q) μ^(q). The proof gives y u·x ≥ (9d-1)/10 with the stated probability, not only > 0."""

    id: ClassVar = "frei2023/L2.1"
    claim: ClassVar = "y = sign(u·x) for a fresh example with probability ≥ 1 - 2d^{1-ln(d)/2}, u = Σ y^(q) μ^(q)"
    applies_to: ClassVar = "clusters under Assumption 2.2"

    dim: int = 570
    clusters: int = 2
    noise: float = 1 / math.sqrt(570)
    test: int = 1000

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from assumption(Sizes(instance.data))

    def probability(self, instance: Instance) -> float:
        """Of all fresh examples together."""
        sizes = Sizes(instance.data)
        return 1 - len(fresh(instance)) * 2 * sizes.dim * sizes.rare

    def bound(self, instance: Instance) -> list[Promise]:
        d, rare = instance.data.dim, Sizes(instance.data).rare
        return [
            promise_at_most("share of wrong signs", 2 * d * rare),
            promise_at_least("smallest y u·x", (9 * d - 1) / 10),
        ]

    def witness(self, instance: Instance) -> Witness:
        held = fresh(instance)
        products = held.y * (held.X @ Sizes(instance.data).direction)
        wrong = float((products <= 0).double().mean())
        return Witness({"share of wrong signs": wrong, "smallest y u·x": float(products.min())})

    def failures(self, trials: int, rng: Generator) -> Failures:
        """A draw is a fresh example."""
        instance = replace(self, test=trials).default(rng)
        held, sizes = fresh(instance), Sizes(instance.data)
        if not supposed(self, instance):
            return Failures(0, trials, 2 * self.dim * sizes.rare)
        products = held.y * (held.X @ sizes.direction)
        return Failures(int((products < (9 * self.dim - 1) / 10).sum()), 0, 2 * self.dim * sizes.rare)

    def default(self, rng: Generator) -> Instance:
        return Instance(cluster_data(self.dim, self.clusters, self.noise, rng, test=self.test))


@dataclass(frozen=True)
class OrdinaryTrainingSet(Theorem):
    """Proposition A.1. P1, P2, P3 and P6 are events; P4 and P5 follow from the first three and are checked too."""

    id: ClassVar = "frei2023/P1-P6"
    claim: ClassVar = "the training set has P1-P6 with probability ≥ 1-(3n²d^{-ln(d)/2} + n²e^{-d/16} + d^{1-ln d})"
    applies_to: ClassVar = "n ≥ k ln²d examples of clusters under Assumption 2.2"

    dim: int = 570
    clusters: int = 2
    noise: float = 1 / math.sqrt(570)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        sizes = Sizes(instance.data)
        yield from assumption(sizes)
        yield enough_examples(sizes)

    def probability(self, instance: Instance) -> float:
        return 1 - Sizes(instance.data).unlikely

    def bound(self, instance: Instance) -> list[Promise]:
        return [_promise(each) for each in _measured(instance)]

    def witness(self, instance: Instance) -> Witness:
        return Witness({each.name: each.value for each in _measured(instance)})

    def failures(self, trials: int, rng: Generator) -> Failures | None:
        """A draw is a training set."""
        instance = self.default(rng)
        sizes = Sizes(instance.data)
        if sizes.examples > sizes.dim - sizes.clusters or not supposed(self, instance):
            return None
        failed = count_strange_sets(trials, sizes, rng)
        return Failures(failed, 0, sizes.unlikely)

    def default(self, rng: Generator) -> Instance:
        return Instance(cluster_data(self.dim, self.clusters, self.noise, rng))


def _measured(instance: Instance) -> list[Comparison]:
    sizes = Sizes(instance.data)
    return [each for check in PROPERTIES for each in check(sizes)]


def _promise(comparison: Comparison) -> Promise:
    least = comparison.relation is Relation.AT_LEAST
    return (promise_at_least if least else promise_at_most)(comparison.name, comparison.threshold)
