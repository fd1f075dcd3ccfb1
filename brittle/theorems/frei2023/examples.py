"""Examples 1 and 2, the limit σ -> 0, and how the perturbation of Theorem 4.2 scales."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator

from brittle.attacks import flip_intervals
from brittle.settings import Clusters, Data, Truth
from brittle.settings.orthogonal import halves
from brittle.theorems.base import (
    LARGEST_MARGIN,
    Comparison,
    Instance,
    Promise,
    Theorem,
    Witness,
    at_most,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.frei2023.instances import cluster_data, cluster_instance
from brittle.theorems.frei2023.sizes import Sizes, assumption, fresh, kkt_point_up_to, largest_clusters, spread
from brittle.theorems.scaling import Scaling, fitted
from brittle.theorems.solved import kkt_network
from brittle.theorems.vardi2022.sizes import Sizes as VardiSizes


@dataclass(frozen=True)
class Regimes(Theorem):
    """How much Assumption 2.2 admits as d grows; p = √d ln d stands for random means. Logarithms are divided out."""

    id: ClassVar = "frei2023/Ex1"
    claim: ClassVar = "the assumption admits k = Õ(√d) at σ = 1, k = Õ(d) at σ = 1/√d, p = Õ(d) at k = Õ(1)"
    applies_to: ClassVar = "Assumption 2.2 itself"
    explicit_constants: ClassVar = False

    dims: tuple[float, ...] = (1e8, 1e10, 1e12, 1e14, 1e16)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from assumption(Sizes(instance.data))

    def bound(self, instance: Instance) -> list[Promise]:
        return []

    def witness(self, instance: Instance) -> Witness:
        d = self.dims[-1]
        random = largest_clusters(d, 1, math.sqrt(d) * math.log(d))
        orthogonal = largest_clusters(d, 1 / math.sqrt(d), 0)
        return Witness(
            {
                "random means, σ = 1: k ln(d)/√d at the largest d": random * math.log(d) / math.sqrt(d),
                "orthogonal means, σ = 1/√d: k ln(d)/d at the largest d": orthogonal * math.log(d) / d,
                "two clusters, σ = 1: p/d at the largest d": _largest_coherence(d) / d,
            }
        )

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        d = self.dims
        random = [largest_clusters(each, 1, math.sqrt(each) * math.log(each)) * math.log(each) for each in d]
        orthogonal = [largest_clusters(each, 1 / math.sqrt(each), 0) * math.log(each) for each in d]
        return (
            fitted("k ln(d), random means, σ = 1", "d", 0.5, d, random),
            fitted("k ln(d), orthogonal means, σ = 1/√d", "d", 1.0, d, orthogonal),
            fitted("p, two clusters, σ = 1", "d", 1.0, d, [_largest_coherence(each) for each in d]),
        )

    def default(self, rng: Generator) -> Instance:
        return Instance(cluster_data(570, 2, 1 / math.sqrt(570), rng))


def _largest_coherence(dim: float) -> float:
    """The largest p that Assumption 2.2 admits for two clusters with σ = 1."""
    delta = spread(dim, 1)
    return (dim - delta + 1) / 20 - delta - 1


@dataclass(frozen=True)
class QuarterPower(Theorem):
    """‖z‖ depends on the means alone, so they are sampled in their span, k = √d/(60 ln d) of them, with no training."""

    id: ClassVar = "frei2023/Ex2"
    claim: ClassVar = "at σ = 1 with as many random clusters as fit, ‖z‖ = Õ(d^{1/4})"
    applies_to: ClassVar = "random means with σ = 1"
    explicit_constants: ClassVar = False

    dims: tuple[float, ...] = (1e9, 1e10, 1e11, 1e12, 1e13)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from assumption(Sizes(instance.data))

    def bound(self, instance: Instance) -> list[Promise]:
        return []

    def witness(self, instance: Instance) -> Witness:
        sizes = Sizes(instance.data)
        return Witness({"k": sizes.clusters, "‖z‖": _length(sizes), "‖z‖/√d": _length(sizes) / math.sqrt(sizes.dim)})

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        swept = [Sizes(data) for data in instance.facts.get("swept", ())]
        if not swept:
            return ()
        lengths = [_length(sizes) / math.sqrt(math.log(sizes.dim)) for sizes in swept]
        return (fitted("‖z‖/√ln(d)", "d", 0.25, [sizes.dim for sizes in swept], lengths),)

    def default(self, rng: Generator) -> Instance:
        swept = []
        for dim in self.dims:
            clusters = int(math.sqrt(dim) / (60 * math.log(dim)))
            swept.append(Clusters(int(dim), clusters, random_means=True).sample(2, rng, in_span=True))
        return Instance(swept[-1], facts={"swept": swept})


def _length(sizes: Sizes) -> float:
    return (sizes.opening + sizes.crossing) * float(torch.linalg.vector_norm(sizes.direction))


RATIO = "‖z‖ over that of vardi2022/4.1"


@dataclass(frozen=True)
class NoNoise(Theorem):
    """At σ = 0 the examples are the means, Δ = 0, η1 is that of vardi2022/4.1, and η2 is larger by
    3(3d+1)(1-2c')/(2(1-3c')(cc'+1)(d+1)), which lies between 3 and 36/7 as c' ≤ 1/10.
    """

    id: ClassVar = "frei2023/limit"
    claim: ClassVar = "for σ -> 0 Theorem 4.2 becomes vardi2022/4.1 on the means: the same z, up to a factor ≤ 36/7"
    applies_to: ClassVar = "KKT points on the cluster means themselves"

    dim: int = 700
    clusters: int = 52
    kkt_tolerance: float = 1e-6

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from assumption(Sizes(instance.data))
        deviation = float(torch.linalg.vector_norm(Sizes(instance.data).noises, dim=1).max())
        yield at_most("largest ‖x - μ‖", deviation, 1e-9 * math.sqrt(instance.data.dim))
        yield kkt_point_up_to(self.kkt_tolerance, instance)

    def bound(self, instance: Instance) -> list[Promise]:
        return [
            promise_at_most(RATIO, 36 / 7),
            promise_at_least(RATIO, 1),
            promise_at_most(LARGEST_MARGIN, -instance.smallest_margin),
        ]

    def witness(self, instance: Instance) -> Witness:
        sizes = Sizes(instance.data)
        known = VardiSizes(Data(sizes.means, sizes.labels, truth=Truth(dim=sizes.dim)))
        theirs = (known.opening + known.crossing) * float(torch.linalg.vector_norm(known.direction))
        z = (sizes.opening + sizes.crossing) * sizes.direction
        return Witness({RATIO: _length(sizes) / theirs}, -instance.data.y[:, None] * z)

    def default(self, rng: Generator) -> Instance:
        means = torch.eye(self.clusters, dtype=torch.float64) * math.sqrt(self.dim)
        labels, cluster = halves(self.clusters), torch.arange(self.clusters)
        truth = Truth(dim=self.dim, means=means, mean_labels=labels, cluster=cluster, noise=0.0, coherence=0.0)
        data = Data(means, labels, truth=truth)
        return Instance(data, kkt_network(data, rng))


@dataclass(frozen=True)
class PerturbationScales(Theorem):
    """The smallest multiple of Σ y^(q) μ^(q) that flips every fresh example of solved KKT points, beside z."""

    id: ClassVar = "frei2023/4.2-scaling"
    claim: ClassVar = "‖z‖ ~ √(d/k): the exponent is -1/2 in the number of clusters and +1/2 in the dimension"
    applies_to: ClassVar = "KKT points on clusters under Assumption 2.2"
    explicit_constants: ClassVar = False

    clusters: tuple[int, ...] = (2, 4, 8, 16)
    dims: tuple[int, ...] = (1000, 2000, 4000)
    scaled_noise: float = 0.09  # σ√d
    test: int = 100

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from assumption(Sizes(instance.data))

    def bound(self, instance: Instance) -> list[Promise]:
        return []

    def witness(self, instance: Instance) -> Witness:
        return Witness({"k": Sizes(instance.data).clusters, "‖z‖ of the theorem": _length(Sizes(instance.data))})

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        if "by clusters" not in instance.facts:
            return ()
        by_clusters, by_dim = instance.facts["by clusters"], instance.facts["by dimension"]
        k, d = [Sizes(each.data).clusters for each in by_clusters], [each.data.dim for each in by_dim]
        return (
            fitted("smallest flip", "k", -0.5, k, [_smallest_flip(each) for each in by_clusters]),
            fitted("‖z‖ of the theorem", "k", -0.5, k, [_length(Sizes(each.data)) for each in by_clusters]),
            fitted("smallest flip", "d", 0.5, d, [_smallest_flip(each) for each in by_dim]),
        )

    def default(self, rng: Generator) -> Instance:
        by_clusters = [self._instance(self.dims[0], each, rng) for each in self.clusters]
        by_dim = [by_clusters[0], *(self._instance(each, self.clusters[0], rng) for each in self.dims[1:])]
        last = by_clusters[-1]
        return Instance(last.data, last.network, {"by clusters": by_clusters, "by dimension": by_dim})

    def _instance(self, dim: int, clusters: int, rng: Generator) -> Instance:
        return cluster_instance(dim, clusters, self.scaled_noise / math.sqrt(dim), rng, test=self.test)


def _smallest_flip(instance: Instance) -> float:
    held, u = fresh(instance), Sizes(instance.data).direction
    rays = -held.y[:, None] * u / torch.linalg.vector_norm(u)
    return flip_intervals(instance.two_layer, held.X, held.y, rays).overlap()[0]
