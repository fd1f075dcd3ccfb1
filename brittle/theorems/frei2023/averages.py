"""A KKT point of many examples in high dimension, from the averages of the clusters alone.

A training set of n ≥ k ln²d examples has n² inner products, which nobody could draw for k of some hundred. Where d is
large enough, the network whose neurons are sums of the averages x̄_q of the clusters is a KKT point up to rounding, and
of the examples it asks only for two numbers each, which are drawn exactly.

Let x_i = μ_q + σξ_i and ξ_i = ξ̄_q + e_i with the average ξ̄_q over the n_q examples of the cluster. As the ξ_i are
normal, the ξ̄_q are independent N(0, I/n_q), and the deviations e_i of all clusters are independent of them. So

1. the averages are drawn in coordinates of their own span and that of the means: k coordinates along the means, and a
   Bartlett factor with d - k degrees of freedom for what is orthogonal to them;
2. given the averages the weights W are fixed, and the W e_i of a cluster are what is left of independent N(0, W Wᵀ)
   variables when their average is taken away: two numbers for an example, as the network has two neurons;
3. a fresh example has standard normal coordinates in the span of 1, and what is orthogonal to it moves no output.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from brittle.common.errors import require
from brittle.data import Data, DataInfo
from brittle.data.orthogonal import halves
from brittle.data.span import bartlett, to_norm
from brittle.networks import TwoLayer
from brittle.theorems.comparison import Comparison, at_least, at_most
from brittle.theorems.frei2023.groups import ClusterConstants, ClusterGroups
from brittle.theorems.instance import Facts, Instance


@dataclass(frozen=True, eq=False)
class AveragedSet(Facts):
    """The training set behind data whose training examples are the averages of the clusters.

    `cluster` (n,) is the cluster of every example, `Z` (n, 2) its inputs to the two neurons, and `multipliers` (k,) the
    λ of every example of a cluster. Slopes are 1 where neuron and cluster have one sign, and 0 elsewhere.
    """

    cluster: Tensor
    Z: Tensor
    multipliers: Tensor

    @property
    def counts(self) -> Tensor:
        """Examples of each cluster, (k,)."""
        return torch.bincount(self.cluster, minlength=len(self.multipliers))


@dataclass(frozen=True)
class Conditions:
    """How nearly a network is a KKT point with the multipliers and slopes of an `AveragedSet`.

    `stationarity` is ε. `excess` is the largest q/min q - 1: every example carries a multiplier. `kink` is how far an
    input may be on the other side of 0 than its slope says, over ‖(w_j, b_j)‖√d.
    """

    stationarity: float
    excess: float
    kink: float


def conditions(instance: Instance, training: AveragedSet) -> Conditions:
    """What the conditions for a KKT point leave, measured on every training example."""
    network, averages, labels = instance.two_layer, instance.data.X, instance.data.y
    signs, y, lam = network.v.sign(), labels[training.cluster], training.multipliers[training.cluster]
    outputs = training.Z.relu()
    q = y * (outputs @ network.v)
    sums = labels * training.multipliers * training.counts  # Σ λ_i y_i over each cluster
    loads = network.v[:, None] * torch.where(labels == signs[:, None], sums, 0.0)
    left = (network.W - loads @ averages, network.b - loads.sum(1), network.v - outputs.T @ (lam * y))
    misfit, size = (_norm(parts) for parts in (left, (network.W, network.b, network.v)))
    wrong = torch.where(signs == y[:, None], -training.Z, training.Z).amax(0).clamp(min=0)
    lengths = torch.cat([network.W, network.b[:, None]], 1).norm(dim=1) * math.sqrt(instance.data.dim)
    return Conditions(misfit / size, float(q.max() / q.min()) - 1, float((wrong / lengths).max()))


def _norm(parts: tuple[Tensor, ...]) -> float:
    return float(torch.cat([part.flatten() for part in parts]).norm())


def about_averages(instance: Instance, training: AveragedSet, tolerance: float) -> Iterator[Comparison]:
    """That the network is a KKT point of the training set behind the averages; the measures of `bt.kkt.residual`."""
    found = conditions(instance, training)
    yield at_least("examples of the smallest cluster", int(training.counts.min()), 1)
    yield at_least("smallest multiplier", float(training.multipliers.min()), 0)
    yield at_most("distance from a KKT point", found.stationarity, tolerance)
    yield at_most("margin beyond the smallest of an example with a multiplier", found.excess, tolerance)
    yield at_most("input on the other side of its slope, over ‖w_j‖√d", found.kink, tolerance)


def training_constants(instance: Instance) -> ClusterConstants:
    """The numbers of the proofs, with the n of the training set behind averages."""
    numbers, training = ClusterGroups(instance.data).constants, instance.known(AveragedSet)
    return numbers if training is None else replace(numbers, examples=len(training.cluster))


def make_averaged_instance(dim: int, clusters: int, noise: float, examples: int, test: int, rng: Generator) -> Instance:
    """Random means on the sphere, half of them of each label, with fresh examples."""
    require(clusters <= dim // 2, f"clusters is {clusters}; at most half of dim = {dim} can be averaged")
    labels, cluster = halves(clusters), torch.randint(clusters, (examples,), generator=rng)
    counts = torch.bincount(cluster, minlength=clusters).clamp(min=1)
    along = torch.randn(clusters, clusters, generator=rng, dtype=torch.float64)
    noises = noise * torch.cat([along, bartlett(clusters, dim - clusters, rng)], 1)
    means = to_norm(bartlett(clusters, dim, rng), math.sqrt(dim))
    means = torch.nn.functional.pad(means, (0, clusters))
    averages = means + noises / counts.sqrt()[:, None]
    network, sums = two_sums(averages, labels)
    Z = network.preactivations(averages)[cluster] + noise * deviations(network.W, cluster, counts, rng)
    held = torch.randint(clusters, (test,), generator=rng)
    X_test = means[held] + noise * torch.randn(test, 2 * clusters, generator=rng, dtype=torch.float64)
    order = torch.arange(clusters)
    truth = DataInfo(dim=dim, means=means, mean_labels=labels, cluster=order, cluster_test=held, noise=noise)
    data = Data(averages, labels, X_test, labels[held], truth)
    return Instance(data, network, AveragedSet(cluster, Z, sums / counts))


def two_sums(averages: Tensor, labels: Tensor) -> tuple[TwoLayer, Tensor]:
    """A neuron for each sign that is a sum of the clusters of its label and 1 at their averages; and Σλ_i of each."""
    X = torch.cat([averages, torch.ones(len(averages), 1, dtype=averages.dtype)], 1)
    U, sums = torch.zeros(2, X.shape[1], dtype=X.dtype), torch.zeros_like(labels)
    signs = torch.tensor([1.0, -1.0], dtype=X.dtype)
    for neuron, sign in enumerate(signs):
        own = X[labels == sign]
        weights = torch.linalg.solve(own @ own.T, torch.ones(len(own), dtype=X.dtype))
        U[neuron] = weights @ own
        sums[labels == sign] = weights / U[neuron].norm()
    size = U.norm(dim=1).sqrt()
    W = U / size[:, None]
    return TwoLayer(W[:, :-1].contiguous(), W[:, -1].contiguous(), signs * size), sums


def deviations(W: Tensor, cluster: Tensor, counts: Tensor, rng: Generator) -> Tensor:
    """W e_i for every example, (n, neurons): normal with covariance W Wᵀ, less the average over the cluster."""
    drawn = torch.randn(len(cluster), len(W), generator=rng, dtype=W.dtype)
    sums = torch.zeros(len(counts), len(W), dtype=W.dtype).index_add(0, cluster, drawn)
    centred = drawn - (sums / counts[:, None])[cluster]
    R: Tensor = torch.linalg.qr(W.T).R
    return centred @ R
