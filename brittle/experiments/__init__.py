"""The papers' figures: one experiment each, a grid of cells that can stop at any time and go on later."""

from typing import TYPE_CHECKING

from brittle.common.lazy import lazy_names

if TYPE_CHECKING:
    from brittle.experiments.base import Claim, Experiment, FigureResult
    from brittle.experiments.cell import Cell, Task
    from brittle.experiments.engines import Dask, Engine, Local
    from brittle.experiments.pieces import Executor
    from brittle.experiments.run import EXPERIMENTS, FigurePlan, find, reproduce
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "base": (
                "Claim",
                "Experiment",
                "FigureResult",
            ),
            "cell": (
                "Cell",
                "Task",
            ),
            "engines": (
                "Dask",
                "Engine",
                "Local",
            ),
            "pieces": ("Executor",),
            "run": (
                "EXPERIMENTS",
                "FigurePlan",
                "find",
                "reproduce",
            ),
        },
    )

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "Claim",
    "Dask",
    "Engine",
    "Executor",
    "Experiment",
    "FigurePlan",
    "FigureResult",
    "Local",
    "Task",
    "find",
    "reproduce",
]
