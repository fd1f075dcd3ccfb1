"""Gradient flow in the plane, frame by frame as it goes."""

import math
from collections.abc import Iterator
from typing import Any

from brittle.common.threads import one_torch_thread
from brittle.explorer import packed, points
from brittle.explorer.asked import Asked
from brittle.explorer.clock import Clock
from brittle.explorer.plane import grid
from brittle.explorer.start import goal, trained, untrained
from brittle.margin import residual
from brittle.networks import TwoLayer
from brittle.settings import Data


def frames(asked: Asked) -> Iterator[dict[str, Any]]:
    """First the network as it was drawn, then one frame for every mark of the log-loss."""
    clock, data = Clock(), points.given(asked)
    goal(asked)  # what is wrong with it is said before the first frame
    start = untrained(asked, data)
    yield frame(asked, start, data, math.nan, 0)
    steps = 0
    with one_torch_thread():
        for training in trained(asked, data, start, clock):
            steps += training.steps
            yield frame(asked, training.network, data, training.log_loss, steps, training.message)


def frame(
    asked: Asked, network: TwoLayer, data: Data, log_loss: float, steps: int, message: str = ""
) -> dict[str, Any]:
    """What is drawn of one moment; the KKT residual where every point is classified."""
    found = {"log_loss": log_loss, "steps": steps, "message": message, "network": packed.weights(network)}
    return found | progress(network, data) | {"grid": grid(network, asked)}


def progress(network: TwoLayer, data: Data) -> dict[str, Any]:
    """Margin and residual: the least over all multipliers, as for `brittle kkt`."""
    margins = network.margins(data.X, data.y)
    found: dict[str, Any] = {"margin": float(margins.min()), "stationarity": None, "normalised_margin": None}
    if network.homogeneous and found["margin"] > 0:
        measured = residual(network, data, margin_tolerance=math.inf)
        found |= {"stationarity": measured.stationarity, "normalised_margin": measured.normalised_margin}
    return found
