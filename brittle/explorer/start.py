"""Where training starts, and how it goes on: the controls that the plane and the papers share."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torch import Generator

from brittle.data import Data
from brittle.explorer.requests import LONGEST, Clock, JsonQuery
from brittle.networks import PARTS as STARTS
from brittle.networks import Initialisation, TwoLayer
from brittle.training import Exponential, Flow, Logistic, LogLoss, Steps, Time, TrainingResult

WIDEST = 300
UNTIL, DEEPEST = -20.0, -200.0  # log-losses
LOSSES = {"exponential": Exponential, "logistic": Logistic}
STEPS = 4000  # between two frames
AGAIN = 100  # of them where a point was moved and somebody waits: what takes more is not near


def law(asked: JsonQuery) -> Initialisation:
    """How the first weights are drawn; `scale` divides them."""
    options: dict[str, Any] = {"scale": asked.number("scale", 1.0, 0.01, 1e4)}
    if "biases" in asked.values:
        options["biases"] = asked.flag("biases")
    return STARTS[asked.word("start", tuple(STARTS), "pytorch")](**options)


def make_start(asked: JsonQuery, data: Data, widest: int = WIDEST) -> TwoLayer:
    """The network at its start."""
    rng = Generator().manual_seed(asked.whole("seed", 0, 0, 2**31))
    return law(asked).draw(data.columns, asked.whole("width", 60, 1, widest), rng, ambient=data.dim)


def flow_of(asked: JsonQuery) -> Flow:
    """Gradient flow as it was asked for, until the clock or the next mark."""
    loss = LOSSES[asked.word("loss", tuple(LOSSES), "exponential")]()
    layers = asked.word("layers", ("all", "first"), "all")
    return Flow(loss=loss, layers=layers)  # type: ignore[arg-type]


def marks(last: float) -> list[float]:
    """The log-losses of the frames: every quarter down to -3, then each a fifth deeper."""
    found = [-0.25 * step for step in range(1, 13) if -0.25 * step > last]
    while found and found[-1] <= -3 and found[-1] * 1.2 > last:
        found.append(found[-1] * 1.2)
    return [*found, last]


def goal(asked: JsonQuery) -> float:
    """The log-loss to end at."""
    return asked.number("until", UNTIL, DEEPEST, -0.5)


def train_to_marks(
    asked: JsonQuery, data: Data, start: TwoLayer, clock: Clock, steps: int = STEPS
) -> Iterator[TrainingResult[TwoLayer]]:
    """The flow from mark to mark; the last one may be short of its mark, and says so."""
    flow, network = flow_of(asked), start
    for mark in marks(goal(asked)):
        training = replace(flow, until=(LogLoss(mark), Steps(steps), Time(LONGEST))).train(network, data)
        yield training
        if not training.reached or clock.left <= 0:
            return
        network = training.network
