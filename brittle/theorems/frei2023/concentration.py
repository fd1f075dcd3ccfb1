"""Lemmas A.1 to A.8: how long the noise is and how it leans, and that no cluster is left out."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.theorems.base import Failures, LikelyClaim
from brittle.theorems.comparison import (
    Comparison,
    Promise,
    Witness,
    at_least,
    at_most,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.frei2023.assumption import Property, p1, p2, p3, p4
from brittle.theorems.frei2023.groups import ClusterClaim, ClusterGroups, enough_examples
from brittle.theorems.helpers import bartletts
from brittle.theorems.instance import Instance


@dataclass(frozen=True)
class NoiseLemma(ClusterClaim, LikelyClaim):
    """A bound on the noise of one example, or of two; stated here for all training examples together."""

    measure: ClassVar[str]

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        yield at_least("noise σ", self.groups(instance).noise, math.ulp(0.0))

    @abstractmethod
    def limit(self, sigma: float, d: float) -> float:
        """What the measure exceeds rarely."""

    @abstractmethod
    def rate(self, d: float) -> float:
        """How rarely, for one of them."""

    @abstractmethod
    def sizes(self, groups: ClusterGroups) -> Tensor:
        """All of them, (any,)."""

    @abstractmethod
    def drawn(self, draws: int, rng: Generator) -> Tensor:
        """So many independent ones for σ = 1, (draws,)."""

    def probability(self, instance: Instance) -> float:
        return 1 - len(self.sizes(self.groups(instance))) * self.rate(instance.data.dim)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(self.measure, self.limit(self.groups(instance).noise, instance.data.dim))]

    def witness(self, instance: Instance) -> Witness:
        return Witness({self.measure: float(self.sizes(self.groups(instance)).max())})

    def failures(self, trials: int, rng: Generator) -> Failures:
        """A draw is one of them."""
        beyond = self.drawn(trials, rng) >= self.limit(1.0, self.dim)
        return Failures(int(beyond.sum()), 0, self.rate(self.dim))


def rare(d: float) -> float:
    """d^{-ln(d)/2}."""
    return math.exp(-(math.log(d) ** 2) / 2)


@dataclass(frozen=True)
class NoiseIsShort(NoiseLemma, id="frei2023/A.1"):
    """Lemma A.1."""

    claim: ClassVar = "P[‖ξ‖ ≥ σ√(2d)] ≤ e^{-d/16}"
    measure: ClassVar = "largest ‖ξ‖"

    def limit(self, sigma: float, d: float) -> float:
        return sigma * math.sqrt(2 * d)

    def rate(self, d: float) -> float:
        return math.exp(-d / 16)

    def sizes(self, groups: ClusterGroups) -> Tensor:
        sizes: Tensor = torch.linalg.vector_norm(groups.noises, dim=1)
        return sizes

    def drawn(self, draws: int, rng: Generator) -> Tensor:
        return torch.cat([L[:, 0, 0] for L in bartletts(draws, 1, self.dim, rng)])


@dataclass(frozen=True)
class NoiseLeansLittle(NoiseLemma, id="frei2023/A.2"):
    """Lemma A.2, for the fixed vector ξ = u = Σ y^(q) μ^(q)."""

    claim: ClassVar = "P[|<ξ, ξ'>| ≥ ‖ξ‖ σ ln d] ≤ 2d^{-ln(d)/2} for any fixed ξ ≠ 0"
    note: ClassVar = "At ξ = 0 both sides are 0 and the event is certain: ξ ≠ 0 is needed."
    measure: ClassVar = "largest |<u, ξ>|/‖u‖"

    def limit(self, sigma: float, d: float) -> float:
        return sigma * math.log(d)

    def rate(self, d: float) -> float:
        return 2 * rare(d)

    def sizes(self, groups: ClusterGroups) -> Tensor:
        along = groups.noises @ groups.direction
        sizes: Tensor = along.abs() / torch.linalg.vector_norm(groups.direction)
        return sizes

    def drawn(self, draws: int, rng: Generator) -> Tensor:
        return torch.randn(draws, generator=rng, dtype=torch.float64).abs()


@dataclass(frozen=True)
class NoisesAreNearlyOrthogonal(NoiseLemma, id="frei2023/A.3"):
    """Lemma A.3."""

    claim: ClassVar = "P[|<ξ, ξ'>| ≥ σ²√(2d) ln d] ≤ e^{-d/16} + 2d^{-ln(d)/2} for two independent ones"
    measure: ClassVar = "largest |<ξ, ξ'>|"

    def limit(self, sigma: float, d: float) -> float:
        return sigma**2 * math.sqrt(2 * d) * math.log(d)

    def rate(self, d: float) -> float:
        return math.exp(-d / 16) + 2 * rare(d)

    def sizes(self, groups: ClusterGroups) -> Tensor:
        n = len(groups.noises)
        rows, columns = torch.tril_indices(n, n, -1)
        return (groups.noises @ groups.noises.T)[rows, columns].abs()

    def drawn(self, draws: int, rng: Generator) -> Tensor:
        return torch.cat([(L @ L.mT)[:, 1, 0].abs() for L in bartletts(draws, 2, self.dim, rng)])


@dataclass(frozen=True)
class NoiseLeansLittleOnMeans(NoiseLemma, id="frei2023/A.4"):
    """Lemma A.4: Lemma A.2 for a mean."""

    claim: ClassVar = "P[|<μ^(q), ξ>| ≥ σ√d ln d] ≤ 2d^{-ln(d)/2}"
    measure: ClassVar = "largest |<μ, ξ>|"

    def limit(self, sigma: float, d: float) -> float:
        return sigma * math.sqrt(d) * math.log(d)

    def rate(self, d: float) -> float:
        return 2 * rare(d)

    def sizes(self, groups: ClusterGroups) -> Tensor:
        return (groups.noises @ groups.centres.T).abs().flatten()

    def drawn(self, draws: int, rng: Generator) -> Tensor:
        return math.sqrt(self.dim) * torch.randn(draws, generator=rng, dtype=torch.float64).abs()


@dataclass(frozen=True)
class WorstNoise(ClusterClaim):
    """Lemmas A.5 to A.7 on the data, and at the worst noise that they admit: every inner product at its limit."""

    properties: ClassVar[tuple[Property, ...]] = (p2, p3)

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().about_data(instance)
        for check in self.properties:
            yield from check(self.groups(instance))

    def unit(self, instance: Instance) -> float:
        """σ√d ln d."""
        return self.groups(instance).constants.spread / 4

    def measured(self, instance: Instance, check: Property) -> list[float]:
        """What P4 or P5 find in the data."""
        return [each.value for each in check(self.groups(instance))]


@dataclass(frozen=True)
class AcrossClusters(WorstNoise, id="frei2023/A.5"):
    """Lemma A.5: 2 + √2 ≤ 4 units."""

    claim: ClassVar = "|<μ^(i)+ξ, μ^(j)+ξ'>| ≤ 4σ√d ln d + |<μ^(i), μ^(j)>| where P2 and P3 hold, i ≠ j"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most("largest |<x, x'>|", 4 * self.unit(instance) + self.groups(instance).coherence)]

    def witness(self, instance: Instance) -> Witness:
        worst = self.groups(instance).coherence + (2 + math.sqrt(2)) * self.unit(instance)
        (found,) = self.measured(instance, p4)
        return Witness({"largest |<x, x'>|": max(worst, found), "largest |<x, x'>| of the data": found})


@dataclass(frozen=True)
class WithinACluster(WorstNoise, id="frei2023/A.6"):
    """Lemma A.6: 2 + √2 ≤ 4 units, for two examples."""

    claim: ClassVar = "|<μ+ξ, μ+ξ'> - d| ≤ 4σ√d ln d where P2 and P3 hold"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most("largest |<x, x'> - d|", 4 * self.unit(instance))]

    def witness(self, instance: Instance) -> Witness:
        groups = self.groups(instance)
        X, cluster = groups.data.X, groups.cluster
        pairs = (cluster[:, None] == cluster) & ~torch.eye(len(cluster), dtype=torch.bool)
        off = (X @ X.T - groups.dim)[pairs].abs()
        found = float(off.max()) if len(off) else 0.0
        worst = (2 + math.sqrt(2)) * self.unit(instance)
        return Witness({"largest |<x, x'> - d|": max(worst, found), "largest |<x, x'> - d| of the data": found})


@dataclass(frozen=True)
class LengthOfAnExample(WorstNoise, id="frei2023/A.7"):
    """Lemma A.7: ‖μ+ξ‖² = d + ‖ξ‖² + 2<μ, ξ> at its extremes; it is least for noise along -μ alone."""

    claim: ClassVar = "d - 2σ√d ln d ≤ ‖μ+ξ‖² ≤ 3d + 2σ√d ln d where P1 and P3 hold"
    properties: ClassVar = (p1, p3)

    def bound(self, instance: Instance) -> list[Promise]:
        d, unit = instance.data.dim, self.unit(instance)
        least = promise_at_least("smallest ‖x‖²", d - 2 * unit)
        return [least, promise_at_most("largest ‖x‖²", 3 * d + 2 * unit)]

    def witness(self, instance: Instance) -> Witness:
        d, unit, squares = instance.data.dim, self.unit(instance), instance.data.X.square().sum(1)
        longest = d + 2 * self.groups(instance).noise ** 2 * d + 2 * unit
        shortest = (math.sqrt(d) - unit / math.sqrt(d)) ** 2
        least, most = min(shortest, float(squares.min())), max(longest, float(squares.max()))
        return Witness({"smallest ‖x‖²": least, "largest ‖x‖²": most})


@dataclass(frozen=True)
class NoClusterIsLeftOut(ClusterClaim, LikelyClaim, id="frei2023/A.8"):
    """Lemma A.8; for n = k ln²d the exact chance is at most k(1-1/k)^n."""

    claim: ClassVar = "n ≥ k ln²d examples contain one of each cluster with probability ≥ 1 - d^{1-ln d}"

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        yield at_most("clusters", len(self.groups(instance)), instance.data.dim)
        yield enough_examples(self.groups(instance).constants)

    def probability(self, instance: Instance) -> float:
        return 1 - math.pow(instance.data.dim, 1 - math.log(instance.data.dim))

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least("examples of the smallest cluster", 1)]

    def witness(self, instance: Instance) -> Witness:
        groups = self.groups(instance)
        counts = torch.bincount(groups.cluster, minlength=len(groups))
        k, n = len(groups), len(instance.data)
        chance = k * (1 - 1 / k) ** n
        return Witness({"examples of the smallest cluster": int(counts.min()), "chance by the union bound": chance})

    def failures(self, trials: int, rng: Generator) -> Failures:
        """A draw is a training set."""
        n = math.ceil(self.clusters * math.log(self.dim) ** 2)
        drawn = torch.randint(self.clusters, (trials, n), generator=rng)
        missing = torch.stack([(drawn != q).all(1) for q in range(self.clusters)]).any(0)
        return Failures(int(missing.sum()), 0, math.pow(self.dim, 1 - math.log(self.dim)))
