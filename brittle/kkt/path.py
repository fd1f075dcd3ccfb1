"""How near gradient flow comes to a KKT point on its way."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from brittle.common.errors import require
from brittle.common.kinds import check_kinds
from brittle.common.result import Result
from brittle.data import Data
from brittle.kkt.residual import residual
from brittle.networks import TwoLayer
from brittle.training import Flow, LogLoss, TrainingResult


@dataclass(frozen=True)
class PathNetwork(Result):
    """A trained network on its way.

    log_loss: where it is, ln L
    stationarity: ε, the least over all multipliers, a lower bound
    complementarity: δ of those multipliers
    normalised_margin: γ = min q / ‖θ‖²
    gradient_evaluations, seconds: what it took to get there

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=10, rng=torch.Generator().manual_seed(0))
        >>> early, late = bt.kkt.along_flow(start, data, [-5, -50])
        >>> late.normalised_margin > early.normalised_margin
        True
    """

    log_loss: float
    stationarity: float
    complementarity: float
    normalised_margin: float
    gradient_evaluations: int
    seconds: float


@check_kinds
def moment(training: TrainingResult[TwoLayer], data: Data) -> PathNetwork:
    """The residual of a training's network.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=10, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.Flow(until=bt.training.LogLoss(-20)).train(start, data)
        >>> bt.kkt.moment(trained, data).log_loss == trained.log_loss
        True
    """
    measured = residual(training.network, data, margin_tolerance=math.inf)
    return PathNetwork(
        training.log_loss,
        measured.stationarity,
        measured.complementarity,
        measured.normalised_margin,
        training.gradient_evaluations,
        training.seconds,
    )


@check_kinds
def along_flow(
    network: TwoLayer, data: Data, log_losses: Sequence[float], flow: Flow | None = None
) -> list[PathNetwork]:
    """The flow's moments at these falling log-losses; counts and seconds are those from the beginning.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=10, rng=torch.Generator().manual_seed(0))
        >>> [moment.log_loss <= goal for moment, goal in zip(bt.kkt.along_flow(start, data, [-5, -50]), [-5, -50])]
        [True, True]
    """
    falling = all(a > b for a, b in pairwise(log_losses))
    require(falling, f"log_losses are {list(log_losses)}; each must be smaller than the one before it")
    moments: list[PathNetwork] = []
    evaluations, seconds = 0, 0.0
    for value in log_losses:
        training = replace(flow or Flow(), until=LogLoss(value)).train(network, data)
        if not training.reached:
            break
        reached = moment(training, data)
        evaluations, seconds = evaluations + reached.gradient_evaluations, seconds + reached.seconds
        moments.append(replace(reached, gradient_evaluations=evaluations, seconds=seconds))
        network = training.network
    return moments
