"""Assumption 2.2, what it entails for the data, and how likely (Lemmas 2.1 and A.9, Proposition A.1)."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import require_between, require_count
from brittle.data import Data
from brittle.geometry import largest_product
from brittle.theorems.base import Failures, LikelyClaim, ParameterRange, Theorem
from brittle.theorems.comparison import (
    Comparison,
    Promise,
    Relation,
    Witness,
    at_least,
    at_most,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.frei2023.groups import (
    ClusterConstants,
    ClusterGroups,
    FreshClaim,
    assumption,
    cluster_data,
    enough_examples,
    fresh,
    largest_clusters,
)
from brittle.theorems.helpers import bartletts
from brittle.theorems.instance import Instance


def p1(groups: ClusterGroups) -> Iterator[Comparison]:
    """‖ξ_i‖ ≤ σ√(2d)."""
    largest = float(torch.linalg.vector_norm(groups.noises, dim=1).max())
    yield at_most("P1 largest ‖ξ_i‖", largest, groups.noise * math.sqrt(2 * groups.dim))


def p2(groups: ClusterGroups) -> Iterator[Comparison]:
    """|<ξ_i, ξ_j>| ≤ σ²√(2d) ln d for i ≠ j."""
    limit = groups.noise**2 * math.sqrt(2 * groups.dim) * math.log(groups.dim)
    yield at_most("P2 largest |<ξ_i, ξ_j>|", largest_product(groups.noises), limit)


def p3(groups: ClusterGroups) -> Iterator[Comparison]:
    """|<μ_q, ξ_i>| ≤ σ√d ln d."""
    largest = float((groups.noises @ groups.centres.T).abs().max())
    yield at_most("P3 largest |<μ_q, ξ_i>|", largest, groups.noise * math.sqrt(groups.dim) * math.log(groups.dim))


def p4(groups: ClusterGroups) -> Iterator[Comparison]:
    """|<x_i, x_j>| ≤ p + Δ across clusters."""
    across = _gram(groups).abs()[~_same(groups)]
    largest = float(across.max()) if len(across) else 0.0
    yield at_most("P4 largest |<x_i, x_j>| across clusters", largest, groups.coherence + groups.constants.spread)


def p5(groups: ClusterGroups) -> Iterator[Comparison]:
    """d - Δ ≤ <x_i, x_j> ≤ 3d + Δ within a cluster, i = j included."""
    within, d, delta = _gram(groups)[_same(groups)], groups.dim, groups.constants.spread
    yield at_least("P5 smallest <x_i, x_j> within a cluster", float(within.min()), d - delta)
    yield at_most("P5 largest <x_i, x_j> within a cluster", float(within.max()), 3 * d + delta)


def p6(groups: ClusterGroups) -> Iterator[Comparison]:
    """No cluster is empty."""
    counts = torch.bincount(groups.cluster, minlength=len(groups))
    yield at_least("P6 examples of the smallest cluster", int(counts.min()), 1)


Property = Callable[[ClusterGroups], Iterator[Comparison]]
PROPERTIES: tuple[Property, ...] = (p1, p2, p3, p4, p5, p6)


def is_ordinary(groups: ClusterGroups) -> bool:
    """Whether the training set has P1-P6: all that Theorems 3.1 and 4.2 use of its law."""
    return all(each.holds for check in PROPERTIES for each in check(groups))


def count_strange_sets(draws: int, groups: ClusterGroups, rng: Generator) -> int:
    """How many of so many training sets with these means and sizes lack one of P1-P6."""
    n, d, k, sigma, delta = len(groups.data), groups.dim, len(groups), groups.noise, groups.constants.spread
    log, strange = math.log(d), 0
    own = torch.linalg.cholesky(groups.centres @ groups.centres.T)  # the means in coordinates of their own
    for rest in bartletts(draws, n, d - k, rng):
        inside = torch.randn(len(rest), n, k, generator=rng, dtype=torch.float64)
        cluster = torch.randint(k, (len(rest), n), generator=rng)
        noise = sigma * torch.cat([inside, rest], 2)
        X = noise.clone()
        X[..., :k] += own[cluster]
        products, gram = noise @ noise.mT, X @ X.mT
        same = cluster[:, :, None] == cluster[:, None, :]
        squares = products.diagonal(dim1=1, dim2=2)
        off = products - torch.diag_embed(squares)
        good = squares.amax(1) <= 2 * sigma**2 * d
        good &= off.abs().amax((1, 2)) <= sigma**2 * math.sqrt(2 * d) * log
        good &= (noise[..., :k] @ own.mT).abs().amax((1, 2)) <= sigma * math.sqrt(d) * log
        good &= torch.where(same, 0.0, gram).abs().amax((1, 2)) <= groups.coherence + delta
        good &= torch.where(same, gram, float(d)).amin((1, 2)) >= d - delta
        good &= torch.where(same, gram, float(d)).amax((1, 2)) <= 3 * d + delta
        good &= torch.nn.functional.one_hot(cluster, k).sum(1).amin(1) >= 1
        strange += int((~good).sum())
    return strange


def ordinary(groups: ClusterGroups, unseen: Data) -> Tensor:
    """Which fresh examples x = μ + ξ have the four properties of Lemma A.13 against every training example, (n,)."""
    assert unseen.truth.cluster is not None
    delta = groups.constants.spread
    noise = unseen.X - groups.centres[unseen.truth.cluster]
    against_noises = (noise @ groups.noises.T).abs() <= delta
    against_examples = (noise @ groups.data.X.T).abs() <= delta
    products = unseen.X @ groups.data.X.T
    own = unseen.truth.cluster[:, None] == groups.cluster
    near = torch.where(own, (products - groups.dim).abs() <= delta, True)
    far = torch.where(own, True, products.abs() <= groups.coherence + delta)
    return (against_noises & against_examples & near & far).all(1)


def _gram(groups: ClusterGroups) -> Tensor:
    return groups.data.X @ groups.data.X.T


def _same(groups: ClusterGroups) -> Tensor:
    return groups.cluster[:, None] == groups.cluster


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

    def solve_for(self, unknown: str) -> ParameterRange:
        require_between("noise", self.noise, 0, 1)
        if unknown == "clusters":
            return self._clusters_allowed()
        if unknown == "dim":
            least = self._smallest_dim()
            given = {"clusters": float(self.clusters), "noise": self.noise, "p": self._coherence(least)}
            return ParameterRange(
                self.id, unknown, least, math.inf, given, "the first d with k (p + Δ + 1) ≤ (d - Δ + 1)/10"
            )
        return super().solve_for(unknown)

    def _clusters_allowed(self) -> ParameterRange:
        limit = self._largest(self.dim)
        least, most = (2.0, float(math.floor(limit))) if limit >= 2 else (math.nan, math.nan)  # both labels occur
        given = {"dim": float(self.dim), "noise": self.noise, "p": self._coherence(self.dim)}
        return ParameterRange(self.id, "clusters", least, most, given, "2 ≤ k and k (p + Δ + 1) ≤ (d - Δ + 1)/10")

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
