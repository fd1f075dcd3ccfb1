"""Examples 1 and 2, the limit σ -> 0, and how the perturbation of Theorem 4.2 scales."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator

from brittle.attacks import flip_intervals
from brittle.data import Clusters, Data, DataInfo
from brittle.data.orthogonal import halves
from brittle.theorems.base import ScalingClaim
from brittle.theorems.comparison import (
    LARGEST_MARGIN,
    Comparison,
    Promise,
    Scaling,
    Witness,
    at_most,
    fit_scaling,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.frei2023.groups import (
    ClusterConstants,
    ClusterGroups,
    assumption,
    cluster_data,
    cluster_instance,
    fresh,
    largest_clusters,
)
from brittle.theorems.helpers import kkt_network
from brittle.theorems.instance import Facts, Instance
from brittle.theorems.kkt_proof import AtKKTPoint
from brittle.theorems.vardi2022.groups import ExampleGroups

RATIO = "‖z‖ over that of vardi2022/4.1"


class Growth(ScalingClaim):
    """A claim of growth under Assumption 2.2."""

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from assumption(ClusterGroups(instance.data))


@dataclass(frozen=True)
class Regimes(Growth, id="frei2023/Ex1"):
    """How much Assumption 2.2 admits as d grows; p = √d ln d stands for random means. Logarithms are divided out.

    Fitted over the dimensions `dims`.
    """

    claim: ClassVar = "the assumption admits k = Õ(√d) at σ = 1, k = Õ(d) at σ = 1/√d, p = Õ(d) at k = Õ(1)"
    applies_to: ClassVar = "Assumption 2.2 itself"

    dims: tuple[float, ...] = (1e8, 1e10, 1e12, 1e14, 1e16)

    def witness(self, instance: Instance) -> Witness:
        d = self.dims[-1]
        random, orthogonal, coherent = (values[-1] for values in self._largest())
        return Witness(
            {
                "random means, σ = 1: k ln(d)/√d at the largest d": random / math.sqrt(d),
                "orthogonal means, σ = 1/√d: k ln(d)/d at the largest d": orthogonal / d,
                "two clusters, σ = 1: p/d at the largest d": coherent / d,
            }
        )

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        random, orthogonal, coherent = self._largest()
        return (
            fit_scaling("k ln(d), random means, σ = 1", "d", 0.5, self.dims, random),
            fit_scaling("k ln(d), orthogonal means, σ = 1/√d", "d", 1.0, self.dims, orthogonal),
            fit_scaling("p, two clusters, σ = 1", "d", 1.0, self.dims, coherent),
        )

    def _largest(self) -> tuple[list[float], list[float], list[float]]:
        """k ln(d) for random and for orthogonal means, and p for two clusters, at every dimension."""
        random = [largest_clusters(d, 1, math.sqrt(d) * math.log(d)) * math.log(d) for d in self.dims]
        orthogonal = [largest_clusters(d, 1 / math.sqrt(d), 0) * math.log(d) for d in self.dims]
        return random, orthogonal, [_largest_coherence(d) for d in self.dims]

    def default(self, rng: Generator) -> Instance:
        return Instance(cluster_data(570, 2, 1 / math.sqrt(570), rng))


def _largest_coherence(dim: float) -> float:
    """The largest p that Assumption 2.2 admits for two clusters with σ = 1."""
    delta = ClusterConstants(dim, 2, 0.0, balance=0.5, noise=1.0).spread
    return (dim - delta + 1) / 20 - delta - 1


@dataclass(frozen=True, eq=False)
class ClusterSweep(Facts):
    """The same setting in several dimensions: `swept`, in their order."""

    swept: tuple[Data, ...]


@dataclass(frozen=True)
class QuarterPower(Growth, id="frei2023/Ex2"):
    """‖z‖ depends on the means alone, so they are sampled in their span, k = √d/(60 ln d) of them, with no training.

    Fitted over the dimensions `dims`.
    """

    claim: ClassVar = "at σ = 1 with as many random clusters as fit, ‖z‖ = Õ(d^{1/4})"
    applies_to: ClassVar = "random means with σ = 1"

    dims: tuple[float, ...] = (1e9, 1e10, 1e11, 1e12, 1e13)

    def witness(self, instance: Instance) -> Witness:
        groups = ClusterGroups(instance.data)
        return Witness({"k": len(groups), "‖z‖": groups.length, "‖z‖/√d": groups.length / math.sqrt(groups.dim)})

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        sweep = instance.known(ClusterSweep)
        if sweep is None:
            return ()
        lengths = [ClusterGroups(data).length / math.sqrt(math.log(data.dim)) for data in sweep.swept]
        return (fit_scaling("‖z‖/√ln(d)", "d", 0.25, [data.dim for data in sweep.swept], lengths),)

    def default(self, rng: Generator) -> Instance:
        swept = tuple(self._crowded(dim).sample(2, rng, in_span=True) for dim in self.dims)
        return Instance(swept[-1], facts=ClusterSweep(swept))

    def _crowded(self, dim: float) -> Clusters:
        return Clusters(int(dim), int(math.sqrt(dim) / (60 * math.log(dim))), random_means=True)


@dataclass(frozen=True)
class NoNoise(AtKKTPoint, id="frei2023/limit"):
    """At σ = 0 the examples are the means, Δ = 0, η1 is that of vardi2022/4.1, and η2 is larger by
    3(3d+1)(1-2c')/(2(1-3c')(cc'+1)(d+1)), which lies between 3 and 36/7 as c' ≤ 1/10.

    Default: `clusters` orthogonal means in R^`dim`. `kkt_tolerance` is the largest relative residual of a KKT point.
    """

    claim: ClassVar = "for σ -> 0 Theorem 4.2 becomes vardi2022/4.1 on the means: the same z, up to a factor ≤ 36/7"
    applies_to: ClassVar = "KKT points on the cluster means themselves"

    dim: int = 700
    clusters: int = 52
    kkt_tolerance: float = 1e-6

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        groups = ClusterGroups(instance.data)
        yield from assumption(groups, noiseless=True)
        deviation = float(torch.linalg.vector_norm(groups.noises, dim=1).max())
        yield at_most("largest ‖x - μ‖", deviation, 1e-9 * math.sqrt(instance.data.dim))

    def bound(self, instance: Instance) -> list[Promise]:
        return [
            promise_at_most(RATIO, 36 / 7),
            promise_at_least(RATIO, 1),
            promise_at_most(LARGEST_MARGIN, -instance.smallest_margin),
        ]

    def witness(self, instance: Instance) -> Witness:
        groups = ClusterGroups(instance.data)
        means = ExampleGroups(Data(groups.centres, groups.labels, truth=DataInfo(dim=groups.dim)))
        return Witness({RATIO: groups.length / means.length}, groups.against(instance.data.y))

    def default(self, rng: Generator) -> Instance:
        means = torch.eye(self.clusters, dtype=torch.float64) * math.sqrt(self.dim)
        labels, cluster = halves(self.clusters), torch.arange(self.clusters)
        truth = DataInfo(dim=self.dim, means=means, mean_labels=labels, cluster=cluster, noise=0.0, coherence=0.0)
        data = Data(means, labels, truth=truth)
        return Instance(data, kkt_network(data, rng))


@dataclass(frozen=True, eq=False)
class SolvedSweeps(Facts):
    """Solved KKT points `by_clusters` at one dimension, and `by_dim` with one number of clusters."""

    by_clusters: tuple[Instance, ...]
    by_dim: tuple[Instance, ...]


@dataclass(frozen=True)
class PerturbationScales(Growth, id="frei2023/4.2-scaling"):
    """The smallest multiple of Σ y^(q) μ^(q) that flips every fresh example of solved KKT points, beside z.

    Fitted over the numbers of `clusters` at the first of the `dims`, and over the `dims` with the first number of
    them; σ√d is `scaled_noise`, and there are `test` fresh examples.
    """

    claim: ClassVar = "‖z‖ ~ √(d/k): the exponent is -1/2 in the number of clusters and +1/2 in the dimension"
    applies_to: ClassVar = "KKT points on clusters under Assumption 2.2"

    clusters: tuple[int, ...] = (2, 4, 6)
    dims: tuple[int, ...] = (2000, 4000, 8000)
    scaled_noise: float = 1.0
    test: int = 50

    def witness(self, instance: Instance) -> Witness:
        groups = ClusterGroups(instance.data)
        return Witness({"k": len(groups), "‖z‖ of the theorem": groups.length})

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        sweeps = instance.known(SolvedSweeps)
        if sweeps is None:
            return ()
        groups = [ClusterGroups(solved.data) for solved in sweeps.by_clusters]
        k, d = [len(clusters) for clusters in groups], [solved.data.dim for solved in sweeps.by_dim]
        return (
            fit_scaling("smallest flip", "k", -0.5, k, [smallest_flip(solved) for solved in sweeps.by_clusters]),
            fit_scaling("‖z‖ of the theorem", "k", -0.5, k, [clusters.length for clusters in groups]),
            fit_scaling("smallest flip", "d", 0.5, d, [smallest_flip(solved) for solved in sweeps.by_dim]),
        )

    def default(self, rng: Generator) -> Instance:
        by_clusters = tuple(self._solved(self.dims[0], clusters, rng) for clusters in self.clusters)
        larger = (self._solved(dim, self.clusters[0], rng) for dim in self.dims[1:])
        last = by_clusters[-1]
        return Instance(last.data, last.network, SolvedSweeps(by_clusters, (by_clusters[0], *larger)))

    def _solved(self, dim: int, clusters: int, rng: Generator) -> Instance:
        return cluster_instance(dim, clusters, self.scaled_noise / math.sqrt(dim), rng, test=self.test)


def smallest_flip(instance: Instance) -> float:
    """The length of the step along u that flips every fresh example."""
    unseen, u = fresh(instance), ClusterGroups(instance.data).direction
    rays = -unseen.y[:, None] * u / torch.linalg.vector_norm(u)
    return flip_intervals(instance.two_layer, unseen.X, unseen.y, rays).overlap()[0]
