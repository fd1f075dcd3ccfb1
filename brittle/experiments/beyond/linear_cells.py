"""A KKT point and the linear classifier of largest margin on the same separable data, by their exact radii.

A change in this file makes every finished cell of the family stale: claims and drawings live in `linear_figures`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from brittle.certificates import Exact
from brittle.common.errors import InputError, require_value
from brittle.data import Data, Sphere
from brittle.experiments.cell import Cell, Point
from brittle.experiments.kkt import kkt_point_from
from brittle.geometry.least_distance import least_distance
from brittle.kkt import Status
from brittle.networks import TorchLinearInit

GAP = 1e-4  # relative, of the radii
HEAVY = 1e3  # how much longer than the examples the coordinate of the bias is: a bias costs 1e-6 of its square then


class Linear(NamedTuple):
    """x ↦ w·x + b."""

    w: Tensor
    b: float

    def radii(self, data: Data) -> Tensor:
        """How far every example is from the boundary, on its right side."""
        radii: Tensor = data.y * (data.X @ self.w + self.b) / self.w.norm()
        return radii


@dataclass(frozen=True, kw_only=True)
class LinearCell(Cell):
    """Smallest and median radius of both on n examples of the sphere with random labels."""

    family = "beyond/linear"
    dim: int  # d
    examples: int  # n, at most d: then the labels are separable
    width: int  # of the start; the KKT point has as many neurons as it needs
    seed: int  # of data and start

    def measure(self) -> Point:
        rng = Generator().manual_seed(self.seed)
        data = Sphere(self.dim).sample(self.examples, rng)
        try:
            point = kkt_point_from(TorchLinearInit().draw(self.dim, self.width, rng), data)
        except InputError as error:
            return {"reached": False, "why": str(error)}
        linear, network = max_margin(data).radii(data), Exact(gap=GAP).bound(point.network, data)
        smallest = float(linear.min())
        return {
            "reached": point.status is Status.SOLVED and bool(network.exact.all()),
            "neurons": point.neurons,
            "linear": smallest,
            "linear_median": float(linear.median()),
            "network": float(network.upper.min()),
            "network_median": float(network.upper.median()),
            "gain": float(network.upper.min()) / smallest,
            "median_gain": float(network.upper.median() / linear.median()),
        }

    def cost(self) -> float:
        return 0.3 + 1e-4 * self.examples**2 + 0.05 * self.examples


def max_margin(data: Data) -> Linear:
    """min ‖w‖ subject to y (w·x + b) ≥ 1, as a least distance with b on a coordinate that costs next to nothing."""
    heavy = HEAVY * float(data.X.norm(dim=1).max())
    augmented = torch.nn.functional.pad(data.X, (0, 1), value=heavy)
    found = least_distance((data.y[:, None] * augmented).numpy(), torch.ones(len(data), dtype=torch.float64).numpy())
    point = torch.from_numpy(require_value(found.point, "no linear classifier separates these data"))
    return Linear(point[:-1], float(point[-1]) * heavy)
