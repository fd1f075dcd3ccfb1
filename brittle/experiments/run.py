"""Every figure by its name, and what it takes to reproduce one."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from brittle.common.errors import InputError, require
from brittle.common.kinds import check_kinds
from brittle.common.progress import Progress, Watch, silent
from brittle.common.threads import one_thread
from brittle.experiments import beyond, frei2023, melamed2023, vardi2022, wang2022
from brittle.experiments.base import Experiment, FigureResult
from brittle.experiments.cell import Cell, Task
from brittle.experiments.cells import conclude_figure, load_cells, run_cells, time_cell
from brittle.experiments.engines import Engine, Measured
from brittle.experiments.images import MissingData

REFERENCE = 73.0  # float64 GFLOP/s of one core of the machine on which `Experiment.cost` was measured
SIDE = 384


def gigaflops(repeats: int = 5) -> float:
    """float64 matrix products per second on one thread, the fastest of a few: about a tenth of a second."""
    A = torch.ones(SIDE, SIDE, dtype=torch.float64)
    with one_thread():
        A @ A
        return 2 * SIDE**3 / min(_seconds(A) for _ in range(repeats)) / 1e9


def slowness() -> float:
    """How many seconds here are one second of the reference."""
    return REFERENCE / gigaflops()


def _seconds(A: torch.Tensor) -> float:
    begun = time.perf_counter()
    A @ A
    return time.perf_counter() - begun


PAPERS = (vardi2022, frei2023, melamed2023, wang2022, beyond)
EXPERIMENTS: dict[str, Experiment] = {figure.id: figure for paper in PAPERS for figure in paper.FIGURES}
KINDS: list[type[Cell]] = [*(figure.kind for figure in EXPERIMENTS.values()), MissingData]
OTHERS: list[type[Cell]] = []  # of figures that are not brittle's own, known to this process alone


@check_kinds
def find(name: str) -> list[Experiment]:
    """A figure by its id, all figures of a paper, or `all`.

    Examples:
        >>> import brittle as bt
        >>> [figure.id for figure in bt.experiments.find("frei2023")]
        ['frei2023/fig-a', 'frei2023/fig-b', 'frei2023/fig-c']
    """
    if name == "all":
        return list(EXPERIMENTS.values())
    found = [figure for key, figure in EXPERIMENTS.items() if name in (key, key.split("/")[0])]
    require(len(found) > 0, f"no figure is called {name!r}; there are all, {', '.join(EXPERIMENTS)}")
    return found


def run_cell(task: Task) -> Measured:
    """What a worker does, in this process or on another machine."""
    kind = next((kind for kind in [*KINDS, *OTHERS] if kind.family == task.family), None)
    if kind is None or kind.code() != task.code:
        raise InputError(f"this worker's brittle has other code for {task.family} than the run that asks for it")
    return time_cell(kind(**task.params))


@dataclass(frozen=True)
class FigurePlan:
    """Figures at a preset, with the cells that each of them needs; one sweep runs them all.

    Examples:
        >>> import brittle as bt
        >>> plan = bt.experiments.FigurePlan(tuple(bt.experiments.find("melamed2023/fig1a")), "smoke")
        >>> len(plan.cells["melamed2023/fig1a"]), plan.cost() > 0
        (1, True)
    """

    experiments: tuple[Experiment, ...]  # the figures
    preset: str  # smoke, quick or full
    only: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # values to which parameters are confined
    first_seed: int = 0  # from which seeds count

    @cached_property
    def cells(self) -> dict[str, list[Cell]]:
        """By figure, the longest first within a figure: the last ones to end are then short."""
        return {
            figure.id: sorted(figure.cells(self.preset, self.only, self.first_seed), key=lambda cell: -cell.cost())
            for figure in self.experiments
        }

    @cached_property
    def costs(self) -> dict[str, float]:
        """Seconds on one core of the reference machine, by the key of the cell; shared cells count once."""
        return {cell.key: cell.cost() for figure in self.experiments for cell in self.cells[figure.id]}

    def cost(self, folder: str | Path | None = None) -> float:
        """Of the cells that are not in the folder."""
        together = [cell for cells in self.cells.values() for cell in cells]
        done = {} if folder is None else load_cells(cells_folder(folder), together)
        return sum(seconds for key, seconds in self.costs.items() if key not in done)

    def run(self, folder: str | Path, engine: Engine | None = None, watch: Watch = silent) -> Iterator[FigureResult]:
        """Every figure as soon as its cells are there. Cells that fail do not keep the others from being measured."""
        together = [cell for cells in self.cells.values() for cell in cells]
        outcomes: dict[str, Measured | Exception] = {}
        waiting, total, spent = list(self.experiments), sum(self.costs.values()) or 1.0, 0.0
        for cell, outcome in run_cells(together, cells_folder(folder), run_cell, engine):
            outcomes[cell.key] = outcome
            spent += self.costs[cell.key]
            watch(Progress(min(1.0, spent / total), f"{len(outcomes)} of {len(self.costs)} cells"))
            ready = [figure for figure in waiting if all(cell.key in outcomes for cell in self.cells[figure.id])]
            waiting = [figure for figure in waiting if figure not in ready]
            yield from (result for figure in ready if (result := self._concluded(figure, outcomes)) is not None)
        failures = [(cell, outcomes[cell.key]) for cell in together if isinstance(outcomes.get(cell.key), Exception)]
        if failures:
            cell, error = failures[0]
            message = f"{len(failures)} of {len(together)} cells failed (the others are kept), the first: "
            raise InputError(f"{message}{cell.family} {cell.to_json()}: {error}")

    def _concluded(self, figure: Experiment, outcomes: Mapping[str, Measured | Exception]) -> FigureResult | None:
        """In the order of the grid; None where a cell failed."""
        cells = figure.cells(self.preset, self.only, self.first_seed)
        measured = [each for cell in cells if not isinstance(each := outcomes[cell.key], Exception)]
        return conclude_figure(figure, self.preset, cells, measured) if len(measured) == len(cells) else None


@check_kinds
def reproduce(
    experiment: Experiment, preset: str, folder: str | Path, engine: Engine | None = None, watch: Watch = silent
) -> FigureResult:
    """One figure, brittle's or your own: run the cells that are not in the folder yet, and conclude.

    The cells of your own figures run in this process: other engines know brittle's alone.

    Examples:
        >>> import brittle as bt
        >>> figure = bt.experiments.find("melamed2023/fig1a")[0]
        >>> bt.experiments.reproduce(figure, "smoke", "out").holds
        True
    """
    if experiment.kind not in KINDS:
        require(engine is None, f"{experiment.id} is not one of brittle's figures; its cells run in this process only")
        OTHERS[:] = [kind for kind in OTHERS if kind.family != experiment.kind.family] + [experiment.kind]
    return next(iter(list(FigurePlan((experiment,), preset).run(folder, engine, watch))))


def cells_folder(folder: str | Path) -> Path:
    """Figures that are written into one folder share their cells."""
    return Path(folder) / "cells"
