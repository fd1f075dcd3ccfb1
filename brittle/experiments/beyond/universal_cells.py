"""One network on sphere data, with one thing other than in vardi2022, and the direction that flips its margin.

A change in this file makes every finished cell of the family stale: claims and drawings live in `universal_figures`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from brittle.attacks import Universal
from brittle.data import Data, Sphere
from brittle.experiments.cell import Cell, Point
from brittle.networks import Network, TorchLinearInit, TwoLayer, as_two_layer
from brittle.training import Exponential, Flow, Loss
from brittle.training.objective import objective_for

Optimiser = torch.optim.Optimizer
# ln L instead of L is the same path for flow; the others would stand still long before the loss is 1e-30
OPTIMISERS: dict[str, Callable[[list[Tensor]], Optimiser]] = {
    "descent": lambda theta: torch.optim.SGD(theta, lr=5e-3),
    "momentum": lambda theta: torch.optim.SGD(theta, lr=5e-4, momentum=0.9),
    "adam": lambda theta: torch.optim.Adam(theta, lr=1e-3),
    "sign": lambda theta: torch.optim.SGD(theta, lr=3e-4),
}
LONGEST = 20_000  # steps


class OptimiserRun(NamedTuple):
    """Where it ended, after how many steps, and whether the loss is low enough there."""

    network: Network
    steps: int
    reached: bool


def walk(name: str, start: TwoLayer, data: Data, log_loss: float) -> OptimiserRun:
    """Steps of an optimiser on the exponential loss, until its logarithm is as low as this."""
    objective = objective_for(start, data)
    theta = objective.start.clone()
    optimiser = OPTIMISERS[name]([theta])
    for step in range(LONGEST):
        at = objective.evaluate(theta, Exponential())
        if at.log_loss <= log_loss:
            return OptimiserRun(objective.network(theta), step, True)
        theta.grad = -(at.direction.sign() if name == "sign" else at.direction)
        optimiser.step()
    return OptimiserRun(objective.network(theta), LONGEST, False)


LOSS = 1e-30
SLACK = 0.1  # an example is on the margin if q ≤ 1.1 min q


@dataclass(frozen=True, kw_only=True)
class VariedCell(Cell):
    """The smallest c at which x - y c z/‖z‖ flips every example on the margin, z = Σ y_i x_i over those of the flow."""

    family = "beyond/universal"
    dim: int  # d
    examples: int  # n
    width: int  # of the network
    ratio: float  # of the largest possible norm to the smallest; √d is their geometric mean
    biases: bool  # whether hidden neurons have them
    by: str  # flow, or one of OPTIMISERS
    seed: int  # of data and start

    def measure(self) -> Point:
        rng = Generator().manual_seed(self.seed)
        data = self.sampled(rng)
        start = TorchLinearInit(biases=self.biases).draw(self.dim, self.width, rng)
        flow = Flow(until=Loss(LOSS), biases=self.biases).train(start, data)
        found = Universal(margin_slack=SLACK).run(flow.network, data)
        point = {"reached": flow.reached, "shortest": float(data.X.norm(dim=1).min())}
        if self.by == "flow":
            return point | _sizes(flow.network, data, found.z)
        walked = walk(self.by, start, data, math.log(LOSS))
        reached = {"reached": flow.reached and walked.reached, "steps": walked.steps}
        other = _sizes(as_two_layer(walked.network, "this figure"), data, found.z)
        return point | reached | other | {"beside_flow": other["size"] / found.smallest}

    def sampled(self, rng: Generator) -> Data:
        """Uniform directions; the logarithms of the norms are uniform between their ends."""
        data = Sphere(self.dim).sample(self.examples, rng)
        exponents = torch.rand(self.examples, generator=rng, dtype=torch.float64) - 0.5
        return Data(data.X * (self.ratio**exponents)[:, None], data.y)

    def cost(self) -> float:
        flow = 0.1 + 1.5e-7 * self.examples * self.width * (1 + self.dim / 200)
        return flow if self.by == "flow" else flow + 1e-6 * self.width * self.dim + 40 * flow / 10


def _sizes(network: TwoLayer, data: Data, z: torch.Tensor) -> Point:
    found = Universal(direction=z, margin_slack=SLACK).run(network, data)
    return {
        "share_on_margin": float(found.considered.double().mean()),
        "largest_bias": float(network.b.abs().max()),
        "size": found.smallest,
        "over_root": found.smallest / math.sqrt(data.dim),
        "over_shortest": found.smallest / float(data.X.norm(dim=1).min()),
    }
