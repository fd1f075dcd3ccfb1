"""The KKT point that one of many starts leads to on the same data, beside the network of largest margin.

A change in this file makes every finished cell of the family stale: claims and drawings live in `starts_figures`.
"""

from dataclasses import dataclass

from torch import Generator

from brittle.common.errors import InputError
from brittle.experiments.beyond.margins import Largest, draw_data
from brittle.experiments.cell import Cell, Point
from brittle.experiments.kkt import kkt_point_from
from brittle.kkt import Status
from brittle.networks import TorchLinearInit


@dataclass(frozen=True, kw_only=True)
class StartCell(Cell):
    """Its margin, mean and smallest exact radius and universal direction, as shares of the largest margin's."""

    family = "beyond/starts"
    dim: int  # d
    examples: int  # n, of the sphere
    width: int  # of the start
    scale: float  # times which all parameters of the start are taken
    start: int  # which of the starts of this kind
    seed: int  # of the data

    def measure(self) -> Point:
        data = draw_data("sphere", self.dim, self.examples, self.seed)
        rng = Generator().manual_seed(1000 * self.seed + self.start)
        try:
            point = kkt_point_from(TorchLinearInit(scale=1 / self.scale).draw(self.dim, self.width, rng), data)
        except InputError as error:
            return {"reached": False, "why": str(error)}
        best = Largest.on(data)
        measured = best.beside("kkt", point.network)
        return {
            "reached": best.reached and point.status is Status.SOLVED and measured["kkt_exact"],
            "margin": best.found.normalised_margin,
            "neurons": best.found.neurons,
            "kkt_neurons": point.neurons,
            **measured,
        }

    def cost(self) -> float:
        return 0.3 + 1e-5 * self.examples * self.width + 1e-5 * self.examples**3
