"""Worker processes that see no Ctrl-C, and that are gone when the run is."""

import os
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import active_children, get_all_start_methods, get_context, parent_process, resource_tracker
from multiprocessing.context import BaseContext
from queue import Empty, Queue
from typing import Any

from brittle.common import interrupts
from brittle.common.errors import InputError, require, require_count
from brittle.common.progress import duration
from brittle.common.threads import one_thread
from brittle.experiments.cell import Task


@contextmanager
def worker_processes(jobs: int) -> Iterator[Executor]:
    """A pool whose workers are killed where the block is left early: an unfinished cell is worth nothing."""
    others = active_children()

    def kill() -> None:
        for process in active_children():
            if process not in others:
                process.kill()

    with interrupts.last_words(kill), interrupts.last_words(_kill_server):
        pool = ProcessPoolExecutor(jobs, mp_context=_context(), initializer=_end_with_parent)
        try:
            yield pool
        except interrupts.Interrupted:
            _kill_server()
            kill()
            raise
        except BaseException:
            kill()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _context() -> BaseContext:
    """Workers fork from a server that has imported everything once, where the system can do that."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(["brittle.common.fork_server", "brittle.experiments.run"])
    _start_server()
    return context


def _start_server() -> None:
    """A terminal sends Ctrl-C to every process; only the one that the user started is to answer."""
    from multiprocessing import forkserver

    with _silent_about_leaks():
        resource_tracker.ensure_running()  # first: it changes the mask of signals
    with interrupts.block_signals(signal.SIGINT):
        forkserver.ensure_running()


@contextmanager
def _silent_about_leaks() -> Iterator[None]:
    """The tracker removes what a run that was ended at once leaves behind, and would say so after our last line."""
    sys.warnoptions.append("ignore::UserWarning:multiprocessing.resource_tracker")  # it inherits the options
    try:
        yield
    finally:
        sys.warnoptions.pop()


def _kill_server() -> None:
    """It may be about to fork a worker, which would complain that this process is half gone."""
    from multiprocessing import forkserver

    pid = getattr(forkserver._forkserver, "_forkserver_pid", None)
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever, on systems without `orphans`."""
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


# Where cells run: in processes of this machine, or on a Dask cluster. A cell whose worker died is run again.


Measured = dict[str, Any]  # "measured": a point, "seconds": what it took
Finished = tuple[Task, Measured | Exception]
Work = Callable[[Task], Measured]

SECONDS_BETWEEN_LOOKS = 0.5  # at whether a cluster has workers
DEATHS = 3  # of workers in a row, without a finished cell between them


class Engine(ABC):
    """A place to run cells. `run` yields them in whatever order they finish.

    Examples:
        >>> import brittle as bt
        >>> isinstance(bt.experiments.Local(2), bt.experiments.Engine)
        True
    """

    @abstractmethod
    def run(self, work: Work, tasks: list[Task]) -> Iterator[Finished]:
        """Every task once, with what was measured or the error that it ended in."""


@dataclass(frozen=True)
class Local(Engine):
    """Processes of this machine with one BLAS thread each; one job runs in this process.

    Examples:
        >>> import brittle as bt
        >>> bt.experiments.Local(jobs=2).jobs
        2
    """

    jobs: int = 1  # processes

    def __post_init__(self) -> None:
        require_count("jobs", self.jobs)

    def run(self, work: Work, tasks: list[Task]) -> Iterator[Finished]:
        if self.jobs == 1 or len(tasks) == 1:
            yield from ((task, attempt(work, task)) for task in tasks)
            return
        left, deaths = {task.key: task for task in tasks}, 0
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

    def _pool(self, work: Work, tasks: list[Task]) -> Iterator[Finished]:
        with worker_processes(min(self.jobs, len(tasks))) as pool:
            futures = {pool.submit(attempt, work, task): task for task in tasks}
            for future in as_completed(futures):
                yield futures[future], future.result()


def quiet(_: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class Dask(Engine):
    """A Dask cluster: its scheduler gives the cells of a lost worker to another one.

    A cluster without any worker is told of at once, and waited for as long as `patience` (in seconds) lasts.

    Examples:
        >>> import brittle as bt
        >>> bt.experiments.Dask("127.0.0.1:8786").address
        '127.0.0.1:8786'
    """

    address: str  # host:port
    patience: float = 60.0  # seconds
    tell: Callable[[str], None] = field(default=quiet, compare=False)  # what is told of a cluster without workers

    def __post_init__(self) -> None:
        require(self.patience >= 0, f"patience is {self.patience!r}; it must be a number of seconds, 0 or more")

    def run(self, work: Work, tasks: list[Task]) -> Iterator[Finished]:
        try:
            from distributed import Client, KilledWorker
        except ImportError:
            raise InputError("--engine dask:// needs the extra 'cluster': pip install 'brittle[cluster]'") from None
        try:
            connect: Any = Client  # its package is typed in part only
            client = connect(f"tcp://{self.address}", timeout=10)
        except (OSError, TimeoutError, ValueError):
            raise InputError(f"no Dask scheduler answers at {self.address}") from None
        with client:
            finished: Queue[Any] = Queue()
            futures = {client.submit(attempt, work, task, key=f"brittle-{task.key}"): task for task in tasks}
            for future in futures:
                future.add_done_callback(finished.put)
            for future in self._in_order_of_completion(client, finished, len(futures)):
                try:
                    yield futures[future], future.result()
                except KilledWorker:
                    yield futures[future], RuntimeError("every worker that took it died (out of memory?)")
                except (OSError, CancelledError):
                    raise self._gone() from None

    def _in_order_of_completion(self, client: Any, finished: "Queue[Any]", count: int) -> Iterator[Any]:
        absence = Absence(self)
        while count:
            try:
                future = finished.get(timeout=SECONDS_BETWEEN_LOOKS)
            except Empty:
                absence.look(self._workers(client))
                continue
            absence.since = None
            count -= 1
            yield future

    def _workers(self, client: Any) -> int:
        try:
            return len(client.nthreads())
        except (OSError, TimeoutError):
            raise self._gone() from None

    def _gone(self) -> InputError:
        return InputError(f"the Dask scheduler at {self.address} went away; run the same again")


class Absence:
    """How long a cluster has had no worker."""

    def __init__(self, cluster: Dask) -> None:
        self.cluster = cluster
        self.since: float | None = None

    def look(self, workers: int) -> None:
        """Tell of an absence when it begins, and end the run when it lasts too long."""
        address, patience = self.cluster.address, self.cluster.patience
        if workers:
            self.since = None
        elif self.since is None:
            self.since = time.monotonic()
            self.cluster.tell(f"no worker at {address}; waiting {duration(patience)} for one")
        elif time.monotonic() - self.since > patience:
            message = f"no worker came to the Dask scheduler at {address} within {duration(patience)}"
            raise InputError(f"{message}; what is finished is kept: start workers and run the same again")


def engine(name: str, jobs: int, patience: float = Dask.patience, tell: Callable[[str], None] = quiet) -> Engine:
    """`local`, or `dask://host:port`; the last two are the cluster's."""
    if name == "local":
        return Local(jobs)
    require(name.startswith("dask://") and name != "dask://", f"engine is {name!r}; use local or dask://host:port")
    return Dask(name.removeprefix("dask://"), patience, tell)


def attempt(work: Work, task: Task) -> Measured | Exception:
    """An error in one cell is a result: the others go on."""
    try:
        with one_thread():  # sums round differently with more, and a cell must give the same numbers everywhere
            return work(task)
    except Exception as error:
        return RuntimeError(f"{type(error).__name__}: {error}")  # one that can be pickled, whatever it was
