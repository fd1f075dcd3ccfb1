"""A network trained on points of a line or a plane until its margin is large enough, and where it changes sign.

A change in this file makes every finished cell of the family stale: claims and drawings live in `boundary_figures`.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Generator, Tensor

from brittle.attacks import first_flip
from brittle.data import Data, Grid25, Line7
from brittle.experiments.cell import Cell, Point
from brittle.networks import Deep, Kaiming, Layered, Network, TorchLinearInit, TwoLayer
from brittle.training import GradientDescent, Logistic, Margin, Steps

DIGITS = 4  # of the drawn values


@dataclass(frozen=True, kw_only=True)
class BoundaryCell(Cell):
    """A network on seven points of a line or 25 of a plane, and how far its boundary is off the data.

    The paper does not say whether losses are summed; its scripts take their mean.
    """

    family = "melamed2023/boundary"
    setting: str = "mean"  # whose settings these are: the paper's text in one reading, its scripts, ...
    panel: str = "a"  # of the figure
    points: Literal["line7", "grid25"]  # seven of a line, or 25 of a plane
    height: float = 0.0  # of the plane over the origin
    layers: int  # of weights
    width: int  # of every hidden layer
    margin: float  # to be reached
    rate: float  # of gradient descent
    steps: int  # at most
    start: Literal["pytorch", "normal", "signs", "spread"] = "pytorch"  # how weights are drawn: see `start`
    factor: float = 1.0  # divides the start
    divided: Literal["all", "weights"] = "all"  # what the factor divides
    decay: float = 0.0  # of L2 regularisation
    decay_on: Literal["all", "weights", "first"] = "all"  # which parameters are regularised
    squared: bool = True  # the penalty is the squared norm, or else the norm
    loss: Literal["sum", "mean"] = "mean"  # over examples
    resolution: int = 12  # of what is drawn, along each axis
    seed: int = 0  # of the start

    def measure(self) -> Point:
        data = examples(self.points, self.height)
        begun = start(self, data.dim)
        training = GradientDescent(
            until=(Margin(self.margin), Steps(self.steps)),
            loss=Logistic(self.loss),
            rate=self.rate,
            decay=self.decay,
            decay_on=self.decay_on,
            squared=self.squared,
            biases=True,
        ).train(begun, data)
        found = {"reached": training.reached, "margin_reached": training.margin, "taken": training.steps}
        if not training.reached:
            return {**found, "why": training.message}
        return {
            **found,
            "normal": normal_length(training.network, data) / normal_length(begun, data) / self.factor,
            "predicted": self.predicted(training.steps),
            **off_lengths(off_distances(training.network, data), data.y),
            "values": evaluate_on_axes(training.network, axes(self.points, self.height, self.resolution)),
        }

    def predicted(self, steps: int) -> float | None:
        """What the theory multiplies the weights normal to the data by, beside those of a start that is not divided.

        No gradient moves them on a linear subspace (A.2): they keep the start's length (6.1) and decay by 1 - ηλ in
        every step (6.2). None where the penalty is no square: each step then has a factor of its own.
        """
        kept: float = (1 - self.rate * self.decay) ** steps
        return kept / self.factor if self.squared else None

    def cost(self) -> float:
        """Seconds of as many steps as such runs took, about half of the most that are allowed."""
        step = 4e-4 if self.layers > 2 else 2e-4 + 6e-8 * self.width
        places = float(self.resolution) ** (2 if self.points == "line7" else 3)
        return 0.1 + self.steps / 2 * step + places * self.width * 1e-9


def examples(points: str, height: float) -> Data:
    """The line's or the plane's."""
    return (Line7() if points == "line7" else Grid25(height)).load()


def start(cell: BoundaryCell, dim: int) -> Layered:
    """The untrained network, with a bias in every layer."""
    rng = Generator().manual_seed(cell.seed)
    hidden, factor, weights_only = [cell.width] * (cell.layers - 1), cell.factor, cell.divided == "weights"
    if cell.start == "signs":  # figure 3: w ~ N(0, I/3) ÷ factor, outputs ±1
        drawn = Kaiming(beta=3**-0.5, scale=factor, scale_biases=not weights_only, biases=True).draw(
            dim, hidden[0], rng
        )
        return TwoLayer(drawn.W, drawn.b, drawn.v.sign(), torch.tensor(0.0))
    if cell.start == "spread":
        return _spread(dim, hidden[0], factor, rng)
    if cell.start == "normal":
        return _normal(dim, hidden, factor, rng)
    network = TorchLinearInit(scale=factor, scale_biases=not weights_only).draw_deep(dim, hidden, rng)
    return network.as_two_layer() if network.depth == 2 else network


def _spread(dim: int, width: int, factor: float, rng: Generator) -> TwoLayer:
    """The scripts for figure 3: w ~ N(0, I/9) ÷ factor, outputs uniform in ±1, biases as PyTorch draws them."""
    network = TorchLinearInit().draw_deep(dim, [width], rng).as_two_layer()
    W = torch.randn(network.W.shape, generator=rng, dtype=network.W.dtype) / (3 * factor)
    v = 2 * torch.rand(network.v.shape, generator=rng, dtype=network.v.dtype) - 1
    return TwoLayer(W, network.b, v, network.c)


def _normal(dim: int, hidden: list[int], factor: float, rng: Generator) -> Layered:
    """The scripts for figure 2: weights N(0, 1/fan_in) ÷ factor, biases as PyTorch draws them."""
    network = TorchLinearInit().draw_deep(dim, hidden, rng)
    weights = tuple(
        torch.randn(W.shape, generator=rng, dtype=W.dtype) / (factor * W.shape[1] ** 0.5) for W in network.weights
    )
    network = Deep.dense(weights, network.biases)
    return network.as_two_layer() if network.depth == 2 else network


def normal_to(data: Data) -> Tensor:
    """The unit vector (dim,) that is normal to the data's line or plane."""
    complement = data.truth.complement
    assert complement is not None
    return complement[:, 0]


def normal_length(network: Layered, data: Data) -> float:
    """Of the first layer's weights normal to the data, all neurons together."""
    return float((network.weights[0] @ normal_to(data)).norm())


def off_distances(network: Network, data: Data) -> Tensor:
    """How far each example is from the boundary straight off the data, infinity where there is none: (n,)."""
    ways = [first_flip(network, data.X, data.y, sign * normal_to(data)) for sign in (1.0, -1.0)]
    return torch.minimum(*ways)


def off_lengths(away: Tensor, y: Tensor) -> Point:
    """The nearest of all, of each class, and the median."""
    return {
        "off_nearest": float(away.min()),
        "off_positive": float(away[y > 0].min()),
        "off_negative": float(away[y < 0].min()),
        "off_median": float(away.median()),
        "off_all": away.tolist(),
    }


def axes(points: str, height: float, resolution: int) -> list[Tensor]:
    """The coordinates at which a network is drawn."""
    if points == "line7":
        return [torch.linspace(-1.2, 1.2, resolution, dtype=torch.float64)] * 2
    flat = torch.linspace(-0.2, 1.2, resolution, dtype=torch.float64)
    return [flat, flat, torch.linspace(height - 1, height + 1, resolution, dtype=torch.float64)]


def evaluate_on_axes(network: Network, grid: list[Tensor]) -> list[Any]:
    """N on the axes: for a line values[i][j] = N(x[j], y[i]), for a plane values[i][j][k] = N(x[i], y[j], z[k])."""
    values = network.logits(torch.cartesian_prod(*grid)).view([len(axis) for axis in grid])
    values = values.T if len(grid) == 2 else values
    return [[_rounded(row) for row in plane] if values.ndim == 3 else _rounded(plane) for plane in values.tolist()]


def _rounded(row: list[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in row]
