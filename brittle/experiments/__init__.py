"""The papers' figures: one experiment each, a grid of cells that can stop at any time and go on later."""

from brittle.experiments.base import Claim, Experiment, FigureResult
from brittle.experiments.cell import Cell, Task
from brittle.experiments.pieces import Crew
from brittle.experiments.run import EXPERIMENTS, Plan, find, reproduce
from brittle.experiments.sweep import Dask, Engine, Local

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "Claim",
    "Crew",
    "Dask",
    "Engine",
    "Experiment",
    "FigureResult",
    "Local",
    "Plan",
    "Task",
    "find",
    "reproduce",
]
