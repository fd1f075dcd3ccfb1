"""Clustered data at KKT points: one instance on which everything holds, and some on which one thing does not."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from brittle.data import Clusters, Data
from brittle.networks import TwoLayer
from brittle.theorems import Instance
from brittle.theorems.frei2023.groups import cluster_data
from brittle.theorems.helpers import kkt_network

NOISE = 1 / math.sqrt(570)


@cache
def known() -> Instance:
    """d = 570, k = 2, σ = 1/√d, n = 81: as small as Assumption 2.2 permits at that noise."""
    rng = torch.Generator().manual_seed(3)
    data = cluster_data(570, 2, NOISE, rng, test=200)
    return Instance(data, kkt_network(data, rng))


def solved(data: Data) -> Instance:
    return Instance(data, kkt_network(data, torch.Generator().manual_seed(4)))


def changed(**truth: Any) -> Instance:
    """The known instance with another truth about it; the network stays a KKT point."""
    data = known().data
    return Instance(replace(data, truth=replace(data.truth, **truth)), known().network)


def noisy(noise: float) -> Instance:
    """Noise above 1 at a dimension that is large enough for Assumption 2.2."""
    return solved(Clusters(4_000_000, noise=noise).sample(20, torch.Generator().manual_seed(5), in_span=True, test=5))


def crowded() -> Instance:
    return solved(cluster_data(570, 3, NOISE, torch.Generator().manual_seed(6), test=50))


def unbalanced() -> Instance:
    network = known().two_layer
    return Instance(known().data, TwoLayer(network.W * 1.5, network.b * 1.5, network.v / 1.5))


@cache
def few() -> Instance:
    return solved(known().data.take(torch.arange(80)))


ASSUMPTION = {
    "relative deviation of ‖μ‖ from √d": lambda: changed(dim=575),
    "positive noise σ": lambda: changed(noise=0.0),
    "noise σ": lambda: noisy(1.1),
    "clusters of the rarer label": lambda: changed(mean_labels=torch.ones(2).double()),
    "clusters": crowded,
}
KKT = {"distance from a KKT point": unbalanced}
