"""The papers' figures: one experiment each, a grid of cells that can stop at any time and go on later."""

from typing import TYPE_CHECKING

from brittle.common.lazy import lazy_names

if TYPE_CHECKING:
    from brittle.experiments.base import Claim, Experiment, FigureResult
    from brittle.experiments.cell import Cell, Task
    from brittle.experiments.pieces import Crew
    from brittle.experiments.run import EXPERIMENTS, Plan, find, reproduce
    from brittle.experiments.sweep import Dask, Engine, Local
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "base": ("Claim", "Experiment", "FigureResult"),
            "cell": ("Cell", "Task"),
            "pieces": ("Crew",),
            "run": ("EXPERIMENTS", "Plan", "find", "reproduce"),
            "sweep": ("Dask", "Engine", "Local"),
        },
    )

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
