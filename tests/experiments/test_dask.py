"""A real scheduler and two worker processes on this machine, one of which is killed in the middle."""

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from brittle.common.errors import InputError
from brittle.experiments.cells import finished_cells, saved
from brittle.experiments.run import EXPERIMENTS, run_cell
from brittle.experiments.sweep import Dask, Local
from tests.experiments import toy

pytest.importorskip("distributed", reason="the extra 'cluster' (dask, distributed) is not installed")
ROOT = Path(__file__).parent.parent.parent
CELLS = toy.Squares().cells("smoke")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(address: str, seconds: float = 300) -> None:
    """Until somebody listens there: a loaded machine takes its time."""
    end = time.monotonic() + seconds
    host, port = address.split(":")
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < end, "the scheduler does not come up"
            time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path):
    """The scheduler's address and the two worker processes."""
    address = f"127.0.0.1:{free_port()}"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "10s",
    }
    place = ["--host", "127.0.0.1", "--port", address.split(":")[1], "--no-dashboard"]
    worker = [f"tcp://{address}", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    programs = [["distributed.cli.dask_scheduler", *place], *[["distributed.cli.dask_worker", *worker]] * 2]
    processes = [
        subprocess.Popen([sys.executable, "-m", *program], env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL)
        for program in programs
    ]
    wait_for(address)
    yield address, processes[1:]
    for process in processes:
        process.kill()
        process.wait()


def test_a_killed_worker_loses_no_cell(tmp_path, cluster):
    address, workers = cluster
    folder = tmp_path / "cells"
    found, cells = {}, toy.marked(CELLS, tmp_path)
    for cell, outcome in finished_cells(cells, folder, toy.slow, Dask(address)):
        found[cell.key] = outcome["measured"]
        if len(found) == 1:
            victim = int(next(tmp_path.glob(f"{cell.key}.*")).suffix[1:])
            assert victim in [worker.pid for worker in workers]
            os.kill(victim, signal.SIGKILL)
    assert found == {cell.key: toy.work(cell)["measured"] for cell in cells}
    assert set(saved(folder, cells)) == set(found)
    others = {path.suffix for path in tmp_path.glob("*.[0-9]*")} - {f".{victim}"}
    assert len(others) == 1  # the survivor did the rest


def test_no_scheduler_is_one_clear_line(monkeypatch):
    import distributed

    def refuse(*arguments, **options):
        raise OSError("refused")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at 127\.0\.0\.1:9"):
        list(Dask("127.0.0.1:9").run(toy.work, CELLS))


def test_a_worker_with_other_code_refuses(tmp_path):
    cell = replace(EXPERIMENTS["vardi2022/fig2b"].cells("smoke")[0], code="another version")
    ((_, outcome),) = Local().run(run_cell, [cell])
    assert "other code for vardi2022/universal" in str(outcome)
