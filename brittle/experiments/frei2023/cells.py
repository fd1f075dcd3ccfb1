"""One network on clustered data, at a KKT point or after flow, beside the networks that need no training.

A change in this file makes every finished cell of the family stale: claims and drawings live in `claims` and `figures`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
import torch
from torch import Generator

from brittle.attacks import MinimumNorm, Universal, sum_signed_means
from brittle.common.errors import InputError
from brittle.data import Clusters, Data
from brittle.experiments.cell import Cell, Point
from brittle.experiments.kkt import kkt_point_from
from brittle.kkt import Status
from brittle.networks import NearestNeighbour, Network, TorchLinearInit, TwoLayer, clustered, linear_model
from brittle.training import Flow, Loss

SIZES = tuple(i / 20 for i in range(61))  # of the universal perturbation, in units of √(d/k)
COMPARATORS: dict[str, Callable[[Data], Network]] = {
    "construction": lambda data: clustered(data.truth.means, data.truth.mean_labels).network,  # type: ignore[arg-type]
    "linear": lambda data: linear_model(data.truth.means, data.truth.mean_labels).network,  # type: ignore[arg-type]
    "neighbour": lambda data: NearestNeighbour(data.X, data.y),
}


@dataclass(frozen=True, kw_only=True)
class ClusterCell(Cell):
    """One network on clusters whose means are uniform on the sphere.

    Data are in coordinates of their span where there are fewer points than dimensions: d may be too large for others.
    """

    family = "frei2023/clusters"
    dim: int  # d
    clusters: int  # k
    seed: int  # of the network
    noise: float = 1.0  # σ
    per_cluster: int = 10  # training examples
    width: int = 1000  # of the network
    data_seed: int  # every seed draws data of its own unless it is told to share them
    at: Literal["kkt", "flow"] = "kkt"  # a KKT point, or trained by flow to loss 1e-30
    shortest: int = 0  # fresh examples whose shortest perturbation is searched
    test: int  # fresh examples

    def measure(self) -> Point:
        data = cluster_data(self)
        rng = Generator().manual_seed(self.seed)
        start = TorchLinearInit().draw(data.columns, self.width, rng, ambient=data.dim)
        try:
            point, network = (at_kkt_point if self.at == "kkt" else after_flow)(start, data)
        except InputError as error:
            return {"reached": False, "why": str(error)}
        point |= {"separable": separable(data), **flips(network, data)}
        for name, make in COMPARATORS.items():
            point |= beside(name, make, data, point["size"])
        return point | (shortest(network, data, self.shortest) if self.shortest else {})

    def cost(self) -> float:
        """Fitted to cells of 20 to 640 examples; points in few dimensions have more neurons at their KKT points."""
        n = self.clusters * self.per_cluster
        flow = 3e-6 * n * self.width
        solving = (2.5e-5 + 6e-6 * n / self.dim) * n**2.1
        return 0.3 + (flow + solving if self.at == "kkt" else 5 * flow)


def cluster_data(cell: ClusterCell) -> Data:
    """Training and fresh examples, with their means."""
    k, dim, test = cell.clusters, cell.dim, cell.test
    examples = k * cell.per_cluster
    setting = Clusters(dim, k, cell.noise, random_means=True)
    rng = Generator().manual_seed(cell.data_seed)
    return setting.sample(examples, rng, test=test, in_span=k + examples + test < dim)


def at_kkt_point(start: TwoLayer, data: Data) -> tuple[Point, TwoLayer]:
    """The KKT point to which the start leads."""
    found = kkt_point_from(start, data)
    point = {
        "reached": found.status is Status.SOLVED,
        "neurons": found.neurons,
        "stationarity": found.residual.stationarity,
        "share_on_margin": found.residual.share_on_margin,
    }
    return point, found.network


def after_flow(start: TwoLayer, data: Data) -> tuple[Point, TwoLayer]:
    """Flow to loss 1e-30."""
    training = Flow(until=Loss(1e-30)).train(start, data)
    point = {
        "reached": training.reached,
        "neurons": training.network.width,
        "stationarity": None,
        "share_on_margin": training.share_on_margin,
    }
    return point, training.network


def flips(network: Network, data: Data) -> Point:
    """Test error, and how fresh examples flip along Σ y^(q) μ^(q)."""
    unit = math.sqrt(data.dim / len(data.truth.means))  # type: ignore[arg-type]
    found = Universal(direction=sum_signed_means).run(network, data.test)
    return {
        "error": error(network, data),
        "size": found.smallest,
        "ratio": found.smallest / unit,
        "flipped": found.curve(torch.tensor(SIZES) * unit).tolist(),
    }


def beside(name: str, make: Callable[[Data], Network], data: Data, size: float) -> Point:
    """What a comparator's error is, what flips it, and how much of it the network's own perturbation flips."""
    try:
        network = make(data)
    except InputError:  # its conditions fail on these means
        return {f"{name}_{what}": None for what in ("error", "size", "flipped")}
    found = Universal(direction=sum_signed_means).run(network, data.test)
    flipped = float(found.curve(torch.tensor([size]))) if math.isfinite(size) else None
    return {f"{name}_error": error(network, data), f"{name}_size": found.smallest, f"{name}_flipped": flipped}


def shortest(network: Network, data: Data, count: int) -> Point:
    """The shortest perturbations found, beside the exact distances of the rule that takes the nearest mean."""
    fresh = data.test.take(torch.arange(count))
    right = fresh.take(network.margins(fresh.X, fresh.y) > 0)
    rule = NearestNeighbour(data.truth.means, data.truth.mean_labels)  # type: ignore[arg-type]
    return {
        "shortest": float(MinimumNorm().run(network, right).norms.median()),
        "rule_radius": float(rule.radii(right.X, right.y).median()),
    }


def error(network: Network, data: Data) -> float:
    """The share of fresh examples that are misclassified."""
    return float((network.margins(data.test.X, data.test.y) <= 0).double().mean())


def separable(data: Data) -> bool:
    """Whether some w has y^(q) w·μ^(q) ≥ 1 for every cluster: a linear program."""
    means, labels = data.truth.means, data.truth.mean_labels
    assert means is not None
    assert labels is not None
    if len(means) <= means.shape[1] and data.in_span:
        return True  # the means are independent
    A = -(labels[:, None] * means).numpy()
    return bool(scipy.optimize.linprog(np.zeros(A.shape[1]), A, -np.ones(len(A)), bounds=(None, None)).status == 0)
