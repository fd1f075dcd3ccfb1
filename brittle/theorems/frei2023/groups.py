"""frei2023's reading of the shared proof: a group is a cluster. With the suppositions that its statements share."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import InputError, require
from brittle.data import Clusters, Data
from brittle.networks import TwoLayer
from brittle.networks.constructions import clustered
from brittle.theorems.base import Failures, LikelyClaim
from brittle.theorems.comparison import Comparison, at_least, at_most
from brittle.theorems.helpers import kkt_network
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import RADIUS_TOLERANCE, AboutData, Groups, OtherPoints, ProofConstants


@dataclass(frozen=True)
class ClusterConstants(ProofConstants):
    """Groups that are clusters: `noise` is σ, `examples` n."""

    inverse_share: ClassVar = 10
    before: ClassVar[float] = 2.0  # Lemma D.2 as stated; its proof gives 3/2

    noise: float = 0.0
    examples: int = 0

    @property
    def spread(self) -> float:
        """Δ = 4σ√d ln d."""
        return 4 * self.noise * math.sqrt(self.dim) * math.log(self.dim)

    @property
    def within_most(self) -> float:
        """3d + Δ + 1: the largest <x_i, x_l> + 1 of two examples of one cluster."""
        return 3 * self.dim + self.spread + 1

    @property
    def cluster_mass(self) -> float:
        """Lemma A.10: the most that Σ v_j² λ_i σ'_ij can be over a cluster and the neurons of one sign."""
        return 1 / ((1 - 2 * self.share) * self.within)

    @property
    def lost(self) -> float:
        """c'/(1-2c'): what the other clusters can take from an output, by Lemma A.10."""
        return self.share / (1 - 2 * self.share)

    @property
    def own_mass(self) -> float:
        """Lemma A.11: the least that it can be over a cluster and the neurons of the cluster's own sign."""
        return (1 - self.lost) / self.within_most

    @property
    def mass(self) -> float:
        """Of the ck clusters of the rarer label at least."""
        return self.balance * self.groups * self.own_mass

    @property
    def least_room(self) -> float:
        """Lemma D.5: 6d/7 - 1/10."""
        return 6 * self.dim / 7 - 0.1

    @property
    def longest(self) -> float:
        """Lemma D.9 with the instance's own c', Δ and d, and with 2Δ + p + 1 ≤ 2(p + Δ + 1)."""
        return self.length_at_most(2 * self.across)

    @property
    def rare(self) -> float:
        """d^{-ln(d)/2}: how rarely a standard normal exceeds ln d, up to a factor 2."""
        return math.exp(-(math.log(self.dim) ** 2) / 2)

    @property
    def unlikely(self) -> float:
        """How likely P1-P6 fail at most (Proposition A.1)."""
        n, d = self.examples, self.dim
        return 3 * n**2 * self.rare + n**2 * math.exp(-d / 16) + math.pow(d, 1 - math.log(d))

    @property
    def strange(self) -> float:
        """How likely a fresh example is not as Lemma A.13 says, at most."""
        return 4 * self.examples * self.rare

    @property
    def misplaced(self) -> float:
        """How likely the noise of a fresh example is far along some mean, at most: 2d^{1-ln(d)/2}."""
        return 2 * self.dim * self.rare


def largest_clusters(dim: float, noise: float, coherence: float) -> float:
    """The most clusters that Assumption 2.2 admits: (d-Δ+1)/(10(p+Δ+1))."""
    return ClusterConstants(dim, 2, coherence, balance=0.5, noise=noise).limit


@dataclass(frozen=True, eq=False)
class ClusterGroups(Groups):
    """Clusters that the data know: their means are the centres."""

    def __post_init__(self) -> None:
        super().__post_init__()
        truth = self.data.truth
        given = truth.means is not None and truth.cluster is not None
        require(given, "frei2023 is about clusters: the data must come with their means and each example's cluster")

    @property
    def centres(self) -> Tensor:
        """μ^(q), (k, columns)."""
        assert self.data.truth.means is not None
        return self.data.truth.means

    @cached_property
    def labels(self) -> Tensor:
        """y^(q), (k,), read off the examples where the data do not say it; 0 where there are none."""
        if self.data.truth.mean_labels is not None:
            return self.data.truth.mean_labels
        return torch.zeros(len(self), dtype=torch.float64).index_add(0, self.cluster, self.data.y).sign()

    @property
    def cluster(self) -> Tensor:
        """Which cluster each example belongs to, (n,)."""
        assert self.data.truth.cluster is not None
        return self.data.truth.cluster

    @cached_property
    def noises(self) -> Tensor:
        """ξ_i, (n, columns)."""
        return self.data.X - self.centres[self.cluster]

    @property
    def noise(self) -> float:
        """σ, estimated where the data do not say it."""
        if self.data.truth.noise is not None:
            return self.data.truth.noise
        return math.sqrt(float(self.noises.square().sum()) / (len(self.data) * self.dim))

    @cached_property
    def constants(self) -> ClusterConstants:
        """The numbers of the proofs of Theorems 3.1 and 4.2."""
        clusters, examples = len(self), len(self.data)
        return ClusterConstants(self.dim, clusters, self.coherence, self.balance, self.noise, examples)

    def gathered(self, values: Tensor) -> Tensor:
        """Sums over the examples of each cluster, (k,)."""
        return torch.zeros(len(self), dtype=values.dtype).index_add(0, self.cluster, values)


def assumption(groups: ClusterGroups, *, noiseless: bool = False) -> Iterator[Comparison]:
    """Assumption 2.2 and that both labels occur; the limit σ -> 0 is the only statement that is `noiseless`."""
    yield at_most("relative deviation of ‖μ‖ from √d", groups.radius_error, RADIUS_TOLERANCE)
    if not noiseless:
        yield at_least("positive noise σ", groups.noise, math.ulp(0.0))
    yield at_most("noise σ", groups.noise, 1)
    yield at_least("clusters of the rarer label", groups.rarer, 1)
    yield at_most("clusters", len(groups), groups.constants.limit)


def enough_examples(numbers: ClusterConstants) -> Comparison:
    """n ≥ k ln²d."""
    return at_least("examples", numbers.examples, numbers.groups * math.log(numbers.dim) ** 2)


def fresh(instance: Instance) -> Data:
    """The examples that training has not seen."""
    if instance.data.X_test is None:
        raise InputError("this is about fresh examples: the data need X_test and y_test from the same clusters")
    unseen = instance.data.test
    require(unseen.truth.cluster is not None, "the fresh examples need to know their clusters")
    return unseen


# The instances on which the theorems of frei2023 are checked by default.


def count_needed_examples(dim: int, clusters: int) -> int:
    """n ≥ k ln²d."""
    return math.ceil(clusters * math.log(dim) ** 2)


def cluster_data(
    dim: int,
    clusters: int,
    noise: float,
    rng: Generator,
    *,
    test: int = 0,
    random_means: bool = False,
    balance: float = 0.5,
    cosine: float = 0.0,
    examples: int | None = None,
) -> Data:
    """As few training examples as the theorems ask for, in the span where that is smaller than the space."""
    examples = count_needed_examples(dim, clusters) if examples is None else examples
    in_span = clusters + examples + test < dim
    setting = Clusters(dim, clusters, noise, balance, random_means, cosine)
    return setting.sample(examples, rng, test=test, in_span=in_span)


def cluster_instance(
    dim: int,
    clusters: int,
    noise: float,
    rng: Generator,
    *,
    test: int = 1000,
    balance: float = 0.5,
    starts: int = 1,
    cosine: float = 0.0,
    examples: int | None = None,
) -> Instance:
    """Clusters at KKT points that are solved for from so many starts, with fresh examples."""
    data = cluster_data(dim, clusters, noise, rng, test=test, balance=balance, cosine=cosine, examples=examples)
    network, *others = [kkt_network(data, rng) for _ in range(starts)]
    return Instance(data, network, OtherPoints(tuple(others)))


def robust_network(data: Data) -> TwoLayer:
    """Theorem 4.1."""
    groups = ClusterGroups(data)
    return clustered(groups.centres, groups.labels).network


# What several statements of frei2023 share: two clusters as default, and a promise about every fresh example.


@dataclass(frozen=True)
class ClusterClaim(AboutData):
    """A statement about data under Assumption 2.2.

    The default instance has `clusters` of noise `noise` in R^`dim`, whose means are at angles of the given `cosine`,
    with `test` fresh examples and no network.
    """

    applies_to: ClassVar = "clusters under Assumption 2.2"

    dim: int = 3_000_000
    clusters: int = 2
    noise: float = 1.0
    test: int = 1000
    cosine: float = 0.01

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        yield from assumption(self.groups(instance))

    def default(self, rng: Generator) -> Instance:
        return Instance(cluster_data(self.dim, self.clusters, self.noise, rng, test=self.test, cosine=self.cosine))

    def groups(self, instance: Instance) -> ClusterGroups:
        """The clusters of the data."""
        return ClusterGroups(instance.data)


@dataclass(frozen=True)
class FreshClaim(ClusterClaim, LikelyClaim):
    """A promise about a fresh example, stated here for all of them together."""

    @abstractmethod
    def rate(self, constants: ClusterConstants) -> float:
        """How often it may fail for one example."""

    @abstractmethod
    def holds(self, instance: Instance) -> Tensor:
        """For which of the fresh examples it does hold, (n,)."""

    def probability(self, instance: Instance) -> float:
        return 1 - len(fresh(instance)) * self.rate(self.groups(instance).constants)

    def failures(self, trials: int, rng: Generator) -> Failures:
        """A draw is a fresh example."""
        instance = replace(self, test=trials).default(rng)
        rate = self.rate(self.groups(instance).constants)
        if not self.supposes(instance):
            return Failures(0, trials, rate)
        return Failures(int((~self.holds(instance)).sum()), 0, rate)
