"""A family whose cells cost nothing, or as much time, luck and damage as a test asks for."""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from brittle.experiments.base import Claim, Experiment
from brittle.experiments.cell import Cell, Point, Task
from brittle.experiments.cells import time_cell
from brittle.experiments.engines import Measured
from brittle.experiments.picture import Chart, Picture, PlotCurve


@dataclass(frozen=True)
class Square(Cell):
    """The square of a seed."""

    family = "toy/squares"
    offset: int
    seed: int

    def measure(self) -> Point:
        missed = self.seed == 1 and self.offset == 10
        return {"value": self.offset + self.seed**2, "reached": not missed, "seconds": {"other": 2.0}}


@dataclass(frozen=True)
class MarkedSquare(Square):
    """With the path that `deadly_once` and `slow` write to."""

    marker: str


class Squares(Experiment):
    """Squares of seeds."""

    id = "toy/squares"
    title = "Squares"
    kind = Square

    def grid(self, preset: str) -> list[Square]:
        return [Square(offset, seed) for offset in (0, 10) for seed in range(3)]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        return [Claim("squares are positive", f"{len(points)} points", all(point["value"] >= 0 for point in points))]

    def picture(self, points: Sequence[Point]) -> Picture:
        return Picture([Chart("", "seed", "value", [PlotCurve("", [0.0], [0.0])])])


def work(task: Task) -> Measured:
    kind = MarkedSquare if "marker" in task.params else Square
    return time_cell(kind(**task.params))


def failing(task: Task) -> Measured:
    if task.params["seed"] == 2:
        raise ValueError("two is too many")
    return work(task)


def deadly_once(task: Task) -> Measured:
    """Kills its process the first time that seed 1 comes along."""
    marker = Path(task.params["marker"])
    if task.params["seed"] == 1 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return work(task)


def deadly(task: Task) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def slow(task: Task) -> Measured:
    """Says who is at work, and takes long enough to be killed."""
    Path(task.params["marker"], f"{task.key}.{os.getpid()}").touch()
    time.sleep(0.4)
    return work(task)


def marked(cells: list[Square], marker: Path) -> list[MarkedSquare]:
    """The cells with the path that `deadly_once` and `slow` write to."""
    return [MarkedSquare(cell.offset, cell.seed, str(marker)) for cell in cells]
