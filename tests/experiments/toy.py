"""A family whose cells cost nothing, or as much time, luck and damage as a test asks for."""

import os
import signal
import time
from pathlib import Path

from brittle.experiments.base import Cell, Claim, Experiment
from brittle.experiments.cells import timed
from brittle.experiments.picture import Chart, Curve, Picture


class Squares(Experiment):
    """Squares of seeds."""

    id = "toy/squares"
    title = "Squares"
    family = "toy/squares"

    def grid(self, preset):
        return [{"offset": offset, "seed": seed} for offset in (0, 10) for seed in range(3)]

    def measure(self, params):
        missed = params["seed"] == 1 and params["offset"] == 10
        return {"value": params["offset"] + params["seed"] ** 2, "reached": not missed, "seconds": {"other": 2.0}}

    def judge(self, points):
        return [Claim("squares are positive", f"{len(points)} points", all(point["value"] >= 0 for point in points))]

    def picture(self, points):
        return Picture([Chart("", "seed", "value", [Curve("", [0.0], [0.0])])])


def work(cell: Cell):
    return timed(Squares(), cell)


def failing(cell: Cell):
    if cell.params["seed"] == 2:
        raise ValueError("two is too many")
    return work(cell)


def deadly_once(cell: Cell):
    """Kills its process the first time that seed 1 comes along."""
    marker = Path(cell.params["marker"])
    if cell.params["seed"] == 1 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return work(cell)


def deadly(cell: Cell):
    os.kill(os.getpid(), signal.SIGKILL)


def slow(cell: Cell):
    """Says who is at work, and takes long enough to be killed."""
    Path(cell.params["marker"], f"{cell.key}.{os.getpid()}").touch()
    time.sleep(0.4)
    return work(cell)


def marked(cells: list[Cell], marker: Path) -> list[Cell]:
    """The cells with the path that `deadly_once` and `slow` write to."""
    return [Cell(cell.family, {**cell.params, "marker": str(marker)}, cell.code) for cell in cells]
