"""A network trained on points of a line or a plane until its margin is large enough, and where it changes sign.

A change in this file makes every finished cell of the family stale: claims and drawings live in `boundary_figures`.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Generator, Tensor

from brittle.attacks import first_flip
from brittle.experiments.cell import Cell, Point
from brittle.networks import Deep, Kaiming, Network, PyTorch, TwoLayer
from brittle.settings import Data, Grid25, Line7
from brittle.training import Descent, Logistic, Margin, Steps

FARTHEST = 10.0  # distances off the data are looked for up to here
DIGITS = 4  # of the drawn values


@dataclass(frozen=True, kw_only=True)
class BoundaryCell(Cell):
    """A network on seven points of a line or 25 of a plane, and how far its boundary is off the data.

    The text's objective is a sum over examples; the paper's scripts take the mean.
    """

    family = "melamed2023/boundary"
    setting: str = "text"  # whose settings these are: the paper's text, its scripts, ...
    panel: str = "a"  # of the figure
    points: Literal["line7", "grid25"]  # seven of a line, or 25 of a plane
    layers: int  # of weights
    width: int  # of every hidden layer
    margin: float  # to be reached
    rate: float  # of gradient descent
    steps: int  # at most
    start: Literal["pytorch", "normal", "signs"] = "pytorch"  # how weights are drawn; `signs` has outputs ±1
    factor: float = 1.0  # divides the start
    divided: Literal["all", "weights"] = "all"  # what the factor divides
    decay: float = 0.0  # of L2 regularisation
    decay_on: Literal["all", "weights", "first"] = "all"  # which parameters are regularised
    squared: bool = True  # the penalty is the squared norm, or else the norm
    loss: Literal["sum", "mean"] = "sum"  # over examples
    resolution: int = 12  # of what is drawn, along each axis
    seed: int = 0  # of the start

    def measure(self) -> Point:
        data = (Line7() if self.points == "line7" else Grid25()).load()
        training = Descent(
            until=(Margin(self.margin), Steps(self.steps)),
            loss=Logistic(self.loss),
            rate=self.rate,
            decay=self.decay,
            decay_on=self.decay_on,
            squared=self.squared,
            biases=True,
        ).train(start(self, data.dim), data)
        found = {"reached": training.reached, "margin_reached": training.margin, "taken": training.steps}
        if not training.reached:
            return {**found, "why": training.message}
        away = off_distances(training.network, data)
        return {
            **found,
            "off": float(away.median()),
            "off_nearest": float(away.min()),
            "off_all": away.tolist(),
            "values": drawn(training.network, self.points, self.resolution),
        }

    def cost(self) -> float:
        """Seconds of as many steps as such runs took, about half of the most that are allowed."""
        step = 4e-4 if self.layers > 2 else 2e-4 + 6e-8 * self.width
        places = float(self.resolution) ** (2 if self.points == "line7" else 3)
        return 0.1 + self.steps / 4 * step + places * self.width * 1e-9


def start(cell: BoundaryCell, dim: int) -> Network:
    """The untrained network, with a bias in every layer."""
    rng = Generator().manual_seed(cell.seed)
    hidden, factor, weights_only = (
        [cell.width] * (cell.layers - 1),
        cell.factor,
        cell.divided == "weights",
    )
    if cell.start == "signs":  # figure 3: w ~ N(0, I/3) ÷ factor, outputs ±1
        drawn = Kaiming(beta=3**-0.5, scale=factor, scale_biases=not weights_only, biases=True).draw(
            dim, hidden[0], rng
        )
        return TwoLayer(drawn.W, drawn.b, drawn.v.sign(), torch.tensor(0.0))
    if cell.start == "normal":
        return _normal(dim, hidden, factor, rng)
    network = PyTorch(scale=factor, scale_biases=not weights_only).draw_deep(dim, hidden, rng)
    return network.as_two_layer() if network.depth == 2 else network


def _normal(dim: int, hidden: list[int], factor: float, rng: Generator) -> Network:
    """The scripts for figure 2: weights N(0, 1/fan_in) ÷ factor, biases as PyTorch draws them."""
    network = PyTorch().draw_deep(dim, hidden, rng)
    weights = tuple(
        torch.randn(W.shape, generator=rng, dtype=W.dtype) / (factor * W.shape[1] ** 0.5) for W in network.weights
    )
    network = Deep.dense(weights, network.biases)
    return network.as_two_layer() if network.depth == 2 else network


def off_distances(network: Network, data: Data) -> Tensor:
    """How far each example is from the boundary straight off the data, FARTHEST where it is farther: (n,)."""
    complement = data.truth.complement
    assert complement is not None
    normal = complement[:, 0]
    ways = [first_flip(network, data.X, data.y, sign * normal, FARTHEST) for sign in (1.0, -1.0)]
    return torch.minimum(*ways).clamp(max=FARTHEST)


def axes(points: str, resolution: int) -> list[Tensor]:
    """The coordinates at which a network is drawn."""
    if points == "line7":
        return [torch.linspace(-1.2, 1.2, resolution, dtype=torch.float64)] * 2
    flat = torch.linspace(-0.2, 1.2, resolution, dtype=torch.float64)
    return [flat, flat, torch.linspace(-0.5, 1.5, resolution, dtype=torch.float64)]


def drawn(network: Network, points: str, resolution: int) -> list[Any]:
    """N on the axes: for a line values[i][j] = N(x[j], y[i]), for a plane values[i][j][k] = N(x[i], y[j], z[k])."""
    grid = axes(points, resolution)
    X = torch.cartesian_prod(*grid)
    values = network.logits(X).view([resolution] * len(grid))
    values = values.T if len(grid) == 2 else values
    return [[_rounded(row) for row in plane] if values.ndim == 3 else _rounded(plane) for plane in values.tolist()]


def _rounded(row: list[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in row]
