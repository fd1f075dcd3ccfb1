"""Where cells run: in processes of this machine, or on a Dask cluster. A cell whose worker died is run again."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.context import BaseContext
from typing import Any

from brittle.common.errors import InputError, require, require_count
from brittle.common.threads import one_thread
from brittle.experiments.base import Cell

Measured = dict[str, Any]  # "measured": a point, "seconds": what it took
Finished = tuple[Cell, Measured | Exception]
Work = Callable[[Cell], Measured]

DEATHS = 3  # of workers in a row, without a finished cell between them


class Engine(ABC):
    """A place to run cells. `run` yields them in whatever order they finish."""

    @abstractmethod
    def run(self, work: Work, cells: list[Cell]) -> Iterator[Finished]: ...


@dataclass(frozen=True)
class Local(Engine):
    """Processes of this machine with one BLAS thread each; one job runs in this process."""

    jobs: int = 1

    def __post_init__(self) -> None:
        require_count("jobs", self.jobs)

    def run(self, work: Work, cells: list[Cell]) -> Iterator[Finished]:
        if self.jobs == 1 or len(cells) == 1:
            yield from ((cell, attempt(work, cell)) for cell in cells)
            return
        left, deaths = {cell.key: cell for cell in cells}, 0
        while left:
            try:
                for finished in self._pool(work, list(left.values())):
                    del left[finished[0].key]
                    deaths = 0
                    yield finished
            except BrokenProcessPool:
                deaths += 1
                message = f"worker processes died {DEATHS} times in a row (out of memory?): use fewer --jobs"
                require(deaths < DEATHS, message)

    def _pool(self, work: Work, cells: list[Cell]) -> Iterator[Finished]:
        jobs = min(self.jobs, len(cells))
        with ProcessPoolExecutor(jobs, mp_context=_context(), initializer=_end_with_parent) as pool:
            futures = {pool.submit(attempt, work, cell): cell for cell in cells}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Dask(Engine):
    """A Dask cluster: its scheduler gives the cells of a lost worker to another one."""

    address: str  # host:port

    def run(self, work: Work, cells: list[Cell]) -> Iterator[Finished]:
        try:
            from distributed import Client, KilledWorker
            from distributed import as_completed as in_order_of_completion
        except ImportError:
            raise InputError("--engine dask:// needs the extra 'cluster': pip install 'brittle[cluster]'") from None
        try:
            client = Client(f"tcp://{self.address}", timeout=10)
        except (OSError, TimeoutError, ValueError):
            raise InputError(f"no Dask scheduler answers at {self.address}") from None
        with client:
            futures = {client.submit(attempt, work, cell, key=f"brittle-{cell.key}"): cell for cell in cells}
            for future in in_order_of_completion(futures):
                try:
                    yield futures[future], future.result()
                except KilledWorker:
                    yield futures[future], RuntimeError("every worker that took it died (out of memory?)")
                except (OSError, CancelledError):
                    raise InputError(f"the Dask scheduler at {self.address} went away; run the same again") from None


def engine(name: str, jobs: int) -> Engine:
    """`local`, or `dask://host:port`."""
    if name == "local":
        return Local(jobs)
    require(name.startswith("dask://") and name != "dask://", f"engine is {name!r}; use local or dask://host:port")
    return Dask(name.removeprefix("dask://"))


def attempt(work: Work, cell: Cell) -> Measured | Exception:
    """An error in one cell is a result: the others go on."""
    try:
        with one_thread():  # sums round differently with more, and a cell must give the same numbers everywhere
            return work(cell)
    except Exception as error:
        return RuntimeError(f"{type(error).__name__}: {error}")  # one that can be pickled, whatever it was


def _context() -> BaseContext:
    """Workers fork from a server that has imported everything once, where the system can do that."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(["brittle.experiments.run"])
    return context


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
