"""The instances on which the theorems of frei2023 are checked by default."""

import math

from torch import Generator

from brittle.networks import TwoLayer
from brittle.networks.constructions import clustered
from brittle.settings import Clusters, Data
from brittle.theorems.frei2023.groups import ClusterGroups
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import OtherPoints
from brittle.theorems.solved import kkt_network


def examples_needed(dim: int, clusters: int) -> int:
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
    examples = examples_needed(dim, clusters) if examples is None else examples
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
