"""Worker processes that see no Ctrl-C, and that are gone when the run is."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import active_children, get_all_start_methods, get_context, parent_process, resource_tracker
from multiprocessing.context import BaseContext

from brittle.common import interrupts


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
    with interrupts.blocked(signal.SIGINT):
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
