"""Clusters as classes of their own: a network that has to tell them apart cannot average what they look like.

Trained on two labels, gradient descent gives every neuron the mean of all clusters of a class, which points at none of
them, and a small step against it leaves all of them (feature averaging, Li et al., arXiv 2410.10322). Trained on the
clusters, every neuron keeps to one. The class is then that of the best cluster.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.auditing.budget import WorkBudget, afford
from brittle.auditing.costs import RATE, gradient_work, spectrum
from brittle.auditing.geometry import CLUSTER_DIRECTIONS, MOST_CLUSTERS, cluster_examples
from brittle.auditing.remedy import Remedy, RemedyContext
from brittle.auditing.trained_on import EVALUATIONS, make_divided_start, require_fitted
from brittle.common.errors import require, require_positive
from brittle.common.parts import option
from brittle.data import Data
from brittle.networks import Deep, Layered, Network, as_layered, best_of
from brittle.networks.affine import Dense
from brittle.training import Flow, Logistic, LogLoss

ITERATIONS = 300  # of k-means, of all starts, for one number of groups
GROUPED = 0.02  # seconds for one number of groups, however few examples
MOST = 1000  # examples of a class that clusters are looked for among


@dataclass(frozen=True)
class ClusterLabels(Remedy):
    """Trains again to tell clusters apart, from a first layer divided by `factor`, and takes the best of each class."""

    name: ClassVar = "cluster-labels"
    explains: ClassVar = "trained again to tell the clusters of every class apart; the best one names the class"
    reshapes: ClassVar = True

    factor: float = field(default=8.0, metadata=option("Divides the first layer.", check=require_positive))

    def apply(self, patient: RemedyContext, rng: Generator, budget: WorkBudget) -> Network:
        data, network = patient.data, patient.layered
        work = 0.0 if data.truth.cluster is not None else _looking(data)
        afford(work <= budget.left, f"looking for clusters takes {work:.2g} s of work: more than the budget affords")
        budget.charge(work)
        fine, members = clusters_of(data)
        start = with_outputs(make_divided_start(network, self.factor, rng), sum(map(len, members)), rng)
        work = gradient_work(start, data)
        until = (LogLoss(patient.log_loss), *budget.stops(EVALUATIONS * work))
        training = Flow(until=until, loss=Logistic()).train(start, Data(data.X, fine))
        budget.charge(training.gradient_evaluations * work)
        return best_of(as_layered(require_fitted(patient, training), self.name), members, one_logit=data.binary)


def clusters_of(data: Data) -> tuple[Tensor, list[list[int]]]:
    """The cluster of every example (n,), and of every class, in order, the clusters that belong to it.

    Those that the data know of, or those that k-means finds in a class; InputError where no class has two.
    """
    labels, classes = torch.unique(data.y, return_inverse=True)
    require(len(labels) > 1, f"all {len(data)} examples have the label {labels[0]:g}: there is no other class")
    whole = data.binary or labels.tolist() == list(range(len(labels)))
    require(whole, f"the examples are of the classes {labels.tolist()}: of every class before the last one is needed")
    inner = data.truth.cluster if data.truth.cluster is not None else _found(data, classes)
    pairs, fine = torch.unique(torch.stack([classes, inner], 1), dim=0, return_inverse=True)
    require(len(pairs) > len(labels), "no class falls apart into clusters: there is nothing else to tell apart")
    return fine, [(pairs[:, 0] == each).nonzero()[:, 0].tolist() for each in range(len(labels))]


def _found(data: Data, classes: Tensor) -> Tensor:
    """In every class: groups of at most so many of its examples, and all others where the nearest mean is."""
    inner = torch.zeros(len(data), dtype=torch.int64)
    for each in torch.unique(classes):
        rows = (classes == each).nonzero()[:, 0]
        some = rows[:: -(-len(rows) // MOST)]
        X, middle = data.X[some], data.X[some].mean(0)
        V = torch.linalg.svd(X - middle, full_matrices=False).Vh[:CLUSTER_DIRECTIONS].T
        groups, _ = cluster_examples((X - middle) @ V)
        means = torch.stack([X[groups == group].mean(0) for group in range(int(groups.max()) + 1)])
        inner[rows] = torch.cdist(data.X[rows] @ V, means @ V).argmin(1)
    return inner


def _looking(data: Data) -> float:
    """What looking for clusters costs: singular vectors, k-means and silhouettes of some examples of every class."""
    count, classes = min(len(data), MOST), len(torch.unique(data.y))
    kmeans = ITERATIONS * 2.0 * count * MOST_CLUSTERS * CLUSTER_DIRECTIONS / RATE
    return classes * (spectrum(count, data.columns) + kmeans + GROUPED * MOST_CLUSTERS)


def with_outputs(network: Layered, outputs: int, rng: Generator) -> Deep:
    """The network with a fresh last layer of so many outputs."""
    *layers, last = network.layers
    weights = (2 * torch.rand(outputs, last.inputs, generator=rng, dtype=torch.float64) - 1) / last.inputs**0.5
    return Deep((*layers, Dense(weights, torch.zeros(outputs, dtype=torch.float64))))
