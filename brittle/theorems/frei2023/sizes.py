"""The quantities that frei2023's proofs speak of, and the suppositions that its statements share."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.settings import Data
from brittle.theorems.base import Comparison, Instance, at_least, at_most

RADIUS_TOLERANCE = 1e-9  # relative


def spread(dim: float, noise: float) -> float:
    """Δ = 4σ√d ln d."""
    return 4 * noise * math.sqrt(dim) * math.log(dim)


def largest_clusters(dim: float, noise: float, coherence: float) -> float:
    """The most clusters that Assumption 2.2 admits: (d-Δ+1)/(10(p+Δ+1))."""
    delta = spread(dim, noise)
    return (dim - delta + 1) / (10 * (coherence + delta + 1))


@dataclass(frozen=True, eq=False)
class Sizes:
    """d, k, σ, p, c and Δ of clustered data, and what the proofs make of them."""

    data: Data

    def __post_init__(self) -> None:
        self.data.require_binary()
        truth = self.data.truth
        known = truth.means is not None and truth.cluster is not None
        require(known, "frei2023 is about clusters: the data must come with their means and each example's cluster")

    @property
    def dim(self) -> int:
        return self.data.dim

    @property
    def examples(self) -> int:
        return len(self.data)

    @property
    def means(self) -> Tensor:
        assert self.data.truth.means is not None
        return self.data.truth.means

    @property
    def cluster(self) -> Tensor:
        assert self.data.truth.cluster is not None
        return self.data.truth.cluster

    @property
    def clusters(self) -> int:
        return len(self.means)

    @cached_property
    def labels(self) -> Tensor:
        """y^(q), (k,), read off the examples where the data do not say it; 0 where there are none."""
        if self.data.truth.mean_labels is not None:
            return self.data.truth.mean_labels
        return torch.zeros(self.clusters, dtype=torch.float64).index_add(0, self.cluster, self.data.y).sign()

    @cached_property
    def noises(self) -> Tensor:
        """ξ_i, (n, columns)."""
        return self.data.X - self.means[self.cluster]

    @property
    def noise(self) -> float:
        """σ, estimated where the data do not say it."""
        if self.data.truth.noise is not None:
            return self.data.truth.noise
        return math.sqrt(float(self.noises.square().sum()) / (self.examples * self.dim))

    @cached_property
    def coherence(self) -> float:
        """p = max |<μ_q, μ_r>| over q ≠ r."""
        gram = self.means @ self.means.T
        return float(gram.fill_diagonal_(0).abs().max())

    @property
    def rarer(self) -> int:
        """Clusters of the rarer label."""
        return min(int((self.labels > 0).sum()), int((self.labels < 0).sum()))

    @property
    def balance(self) -> float:
        """c."""
        return self.rarer / self.clusters

    @property
    def spread(self) -> float:
        """Δ."""
        return spread(self.dim, self.noise)

    @property
    def share(self) -> float:
        """c' = k(p+Δ+1)/(d-Δ+1), at most 1/10."""
        return self.clusters * (self.coherence + self.spread + 1) / (self.dim - self.spread + 1)

    @property
    def room(self) -> float:
        """d - Δ - kp - kΔ, positive by Lemma D.5."""
        return self.dim - self.spread - self.clusters * (self.coherence + self.spread)

    @property
    def opening(self) -> float:
        """η1."""
        return (2 * self.spread + self.coherence + 1) / self.room

    @property
    def crossing(self) -> float:
        """η2."""
        over = self.room * (1 - 3 * self.share) * self.balance * self.clusters
        return 3 * (3 * self.dim + self.spread + 1) * (1 - 2 * self.share) / over

    @property
    def direction(self) -> Tensor:
        """Σ_q y^(q) μ^(q), (columns,)."""
        return self.labels @ self.means

    @property
    def rare(self) -> float:
        """d^{-ln(d)/2}: how rarely a standard normal exceeds ln d, up to a factor 2."""
        return math.exp(-(math.log(self.dim) ** 2) / 2)

    @property
    def unlikely(self) -> float:
        """How likely P1-P6 fail at most (Proposition A.1)."""
        n, d = self.examples, self.dim
        return 3 * n**2 * self.rare + n**2 * math.exp(-d / 16) + d ** (1 - math.log(d))

    @property
    def strange(self) -> float:
        """How likely a fresh example is not as Lemma A.13 says, at most."""
        return 4 * self.examples * self.rare

    def gathered(self, values: Tensor) -> Tensor:
        """Sums over the examples of each cluster, (k,)."""
        return torch.zeros(self.clusters, dtype=values.dtype).index_add(0, self.cluster, values)


def assumption(sizes: Sizes) -> Iterator[Comparison]:
    """Assumption 2.2 and that both labels occur; σ > 0 is nowhere used."""
    norms = torch.linalg.vector_norm(sizes.means, dim=1)
    deviation = float((norms / math.sqrt(sizes.dim) - 1).abs().max())
    yield at_most("relative deviation of ‖μ‖ from √d", deviation, RADIUS_TOLERANCE)
    yield at_most("noise σ", sizes.noise, 1)
    yield at_least("clusters of the rarer label", sizes.rarer, 1)
    yield at_most("clusters", sizes.clusters, largest_clusters(sizes.dim, sizes.noise, sizes.coherence))


def enough_examples(sizes: Sizes) -> Comparison:
    return at_least("examples", sizes.examples, sizes.clusters * math.log(sizes.dim) ** 2)


def kkt_point_up_to(tolerance: float, instance: Instance) -> Comparison:
    return at_most("distance from a KKT point", instance.kkt_distance, tolerance)


def fresh(instance: Instance) -> Data:
    """The examples that training has not seen."""
    if instance.data.X_test is None:
        raise InputError("this is about fresh examples: the data need X_test and y_test from the same clusters")
    held = instance.data.test
    require(held.truth.cluster is not None, "the fresh examples need to know their clusters")
    return held
