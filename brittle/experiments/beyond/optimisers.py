"""Other walks down the logarithm of the loss than gradient flow: fixed steps, momentum, Adam and signs."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.networks import Network, TwoLayer
from brittle.settings import Data
from brittle.training import Exponential
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


class Walk(NamedTuple):
    """Where it ended, after how many steps, and whether the loss is low enough there."""

    network: Network
    steps: int
    reached: bool


def walk(name: str, start: TwoLayer, data: Data, log_loss: float) -> Walk:
    """Steps of an optimiser on the exponential loss, until its logarithm is as low as this."""
    objective = objective_for(start, data)
    theta = objective.start.clone()
    optimiser = OPTIMISERS[name]([theta])
    for step in range(LONGEST):
        at = objective.evaluate(theta, Exponential())
        if at.log_loss <= log_loss:
            return Walk(objective.network(theta), step, True)
        theta.grad = -(at.direction.sign() if name == "sign" else at.direction)
        optimiser.step()
    return Walk(objective.network(theta), LONGEST, False)
