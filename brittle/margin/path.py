"""How near gradient flow comes to a KKT point on its way."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from brittle.common.errors import require
from brittle.common.result import Result
from brittle.margin.kkt import residual
from brittle.networks import TwoLayer
from brittle.settings import Data
from brittle.training import Flow, LogLoss, Training


@dataclass(frozen=True)
class Moment(Result):
    """A trained network on its way.

    log_loss: where it is, ln L
    stationarity: ε, the least over all multipliers, a lower bound
    complementarity: δ of those multipliers
    normalised_margin: γ = min q / ‖θ‖²
    gradient_evaluations, seconds: what it took to get there
    """

    log_loss: float
    stationarity: float
    complementarity: float
    normalised_margin: float
    gradient_evaluations: int
    seconds: float


def moment(training: Training[TwoLayer], data: Data) -> Moment:
    """The residual of a training's network."""
    measured = residual(training.network, data, margin_tolerance=math.inf)
    return Moment(
        training.log_loss,
        measured.stationarity,
        measured.complementarity,
        measured.normalised_margin,
        training.gradient_evaluations,
        training.seconds,
    )


def along_flow(network: TwoLayer, data: Data, log_losses: Sequence[float], flow: Flow | None = None) -> list[Moment]:
    """The flow's moments at these falling log-losses; counts and seconds are those from the beginning."""
    falling = all(a > b for a, b in pairwise(log_losses))
    require(falling, f"log_losses are {list(log_losses)}; each must be smaller than the one before it")
    moments: list[Moment] = []
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
