"""The network of largest margin, the KKT point that gradient flow leads to, and two networks that it passes.

A change in this file makes every finished cell of the family stale: claims and drawings live in `largest_figures`.
"""

import math
from dataclasses import dataclass

from torch import Generator

from brittle.common.errors import InputError
from brittle.experiments.beyond.margins import Largest, draw_data
from brittle.experiments.cell import Cell, Point
from brittle.kkt import Status, solve
from brittle.networks import TorchLinearInit
from brittle.training import Flow, LogLoss

LOSSES = {"early": 1e-2, "late": 1e-30}


@dataclass(frozen=True, kw_only=True)
class LargestCell(Cell):
    """Their margins, mean and smallest exact radii and universal directions, as shares of the largest margin's."""

    family = "beyond/largest"
    law: str  # sphere or clusters
    dim: int  # d
    examples: int  # n
    width: int  # of the start; KKT points and the network of largest margin have as many neurons as they need
    seed: int  # of data and start

    def measure(self) -> Point:
        data = draw_data(self.law, self.dim, self.examples, self.seed)
        start = TorchLinearInit().draw(self.dim, self.width, Generator().manual_seed(self.seed))
        flows = {name: Flow(until=LogLoss(math.log(loss))).train(start, data) for name, loss in LOSSES.items()}
        try:
            point = solve(flows["late"].network, data)
        except InputError as error:
            return {"reached": False, "why": str(error)}
        best = Largest.on(data)
        others = {"kkt": point.network, **{name: flow.network for name, flow in flows.items()}}
        measured = {key: value for name, other in others.items() for key, value in best.beside(name, other).items()}
        solved = point.status is Status.SOLVED and all(flow.reached for flow in flows.values())
        return {
            "reached": best.reached and solved and all(measured[f"{name}_exact"] for name in others),
            "margin": best.found.normalised_margin,
            "proved_gap": best.found.proved_gap,
            "neurons": best.found.neurons,
            "kkt_neurons": point.neurons,
            "radius": best.withstands.mean,
            "direction": best.withstands.direction,
            **measured,
        }

    def cost(self) -> float:
        hard = 0.0 if self.law == "clusters" else 4e-7 * self.examples**3.7 / (1 + self.dim / self.examples) ** 2
        return 0.3 + 1e-4 * self.examples * self.width + hard
