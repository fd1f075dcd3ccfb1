"""What several statements of frei2023 share: two clusters as default, and a promise about every fresh example."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Generator, Tensor

from brittle.theorems.base import Failures, LikelyClaim
from brittle.theorems.comparison import Comparison
from brittle.theorems.frei2023.groups import ClusterConstants, ClusterGroups, assumption, fresh
from brittle.theorems.frei2023.instances import cluster_data
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import AboutData


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
