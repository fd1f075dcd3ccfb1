"""Runs the cells of a grid, each finished cell one file: what is there is skipped, what crashed is run again."""

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from brittle.common.errors import InputError, require, require_count
from brittle.common.files import write_json
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import jsonable
from brittle.experiments.base import Cell, Experiment, FigureResult, Point

Finished = tuple[Cell, Point | Exception]
Work = Callable[[Cell], Point]


class Engine(ABC):
    """Where cells run. `run` yields them in whatever order they finish."""

    @abstractmethod
    def run(self, work: Work, cells: list[Cell]) -> Iterator[Finished]: ...


@dataclass(frozen=True)
class Local(Engine):
    """Processes of this machine with one BLAS thread each; one job runs in this process."""

    jobs: int = 1

    def __post_init__(self) -> None:
        require_count("jobs", self.jobs)

    def run(self, work: Work, cells: list[Cell]) -> Iterator[Finished]:
        if self.jobs == 1:
            yield from ((cell, _attempt(work, cell)) for cell in cells)
            return
        context = get_context("spawn")
        with ProcessPoolExecutor(self.jobs, mp_context=context, initializer=_one_thread) as pool:
            futures = {pool.submit(_attempt, work, cell): cell for cell in cells}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BrokenProcessPool:
                raise InputError("a worker process died; run the same command again to go on from there") from None
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Dask(Engine):
    """A Dask cluster: the scheduler gives the cells of a lost worker to another one."""

    address: str  # host:port

    def run(self, work: Work, cells: list[Cell]) -> Iterator[Finished]:
        try:
            from distributed import Client
            from distributed import as_completed as in_order_of_completion
        except ImportError:
            raise InputError("--engine dask:// needs the extra 'cluster': pip install 'brittle[cluster]'") from None
        try:
            client = Client(f"tcp://{self.address}", timeout=10)
        except (OSError, TimeoutError, ValueError):
            raise InputError(f"no Dask scheduler answers at {self.address}") from None
        with client:
            futures = {client.submit(_attempt, work, cell, key=f"brittle-{cell.key}"): cell for cell in cells}
            for future in in_order_of_completion(futures):
                yield futures[future], future.result()


def engine(name: str, jobs: int) -> Engine:
    """`local`, or `dask://host:port`."""
    if name == "local":
        return Local(jobs)
    require(name.startswith("dask://") and name != "dask://", f"engine is {name!r}; use local or dask://host:port")
    return Dask(name.removeprefix("dask://"))


def sweep(
    experiment: Experiment, preset: str, folder: Path, engine: Engine, work: Work, watch: Watch = silent
) -> FigureResult:
    """Every cell of the preset, those already in the folder from there; then the claims."""
    cells = experiment.cells(preset)
    folder.mkdir(parents=True, exist_ok=True)
    done = {cell.key: point for cell in cells if (point := _saved(folder, cell)) is not None}
    missing = [cell for cell in cells if cell.key not in done]
    total = sum(experiment.cost(cell.params) for cell in cells) or 1.0
    spent = total - sum(experiment.cost(cell.params) for cell in missing)
    failures = []
    for cell, outcome in engine.run(work, missing):
        if isinstance(outcome, Exception):
            failures.append(f"{dict(cell.params)}: {outcome}")
            continue
        write_json(folder / f"{cell.key}.json", outcome)
        done[cell.key] = outcome
        spent += experiment.cost(cell.params)
        watch(Progress(min(1.0, spent / total), f"{len(done)} of {len(cells)} cells"))
    require(not failures, f"{len(failures)} of {len(cells)} cells failed, the first: {failures[:1]}")
    points = [done[cell.key] for cell in cells]
    seconds = sum(float(point["seconds"]) for point in points)
    claims = tuple(experiment.judge(points))
    return FigureResult(experiment.id, experiment.title, preset, tuple(points), claims, seconds)


def timed(experiment: Experiment, cell: Cell) -> Point:
    """The cell's parameters, what was measured there, and how long it took."""
    begun = time.perf_counter()
    measured = jsonable(experiment.measure(cell.params))
    return {**cell.params, **measured, "seconds": time.perf_counter() - begun}


def _attempt(work: Work, cell: Cell) -> Point | Exception:
    """An error in one cell is a result: the others go on."""
    try:
        return work(cell)
    except (ValueError, ArithmeticError, RuntimeError, MemoryError, LookupError, TypeError, AssertionError) as error:
        return type(error)(str(error))


def _saved(folder: Path, cell: Cell) -> Point | None:
    try:
        return json.loads((folder / f"{cell.key}.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def _one_thread() -> None:
    import torch

    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
