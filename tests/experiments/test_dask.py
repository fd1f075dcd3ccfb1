"""A real scheduler on this machine, and workers that are killed, come late or never come."""

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from brittle.cli import main
from brittle.common.errors import InputError
from brittle.experiments.cells import load_cells, run_cells
from brittle.experiments.engines import Dask, Local
from brittle.experiments.run import EXPERIMENTS, run_cell
from tests.experiments import toy

pytest.importorskip("distributed", reason="the extra 'cluster' (dask, distributed) is not installed")
ROOT = Path(__file__).parent.parent.parent
CELLS = toy.Squares().cells("smoke")
LONG = 400.0  # seconds, on a machine that has much else to do


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


class Cluster:
    """A scheduler and as many workers as a test starts; `pids` are those of the workers."""

    def __init__(self, folder: Path) -> None:
        self.address, self.folder, self.processes = f"127.0.0.1:{free_port()}", folder, []
        self.start("dask_scheduler", "--host", "127.0.0.1", "--port", self.address.split(":")[1])
        wait_for(self.address)

    def start(self, program: str, *arguments: str) -> subprocess.Popen:
        # Workers that are merely slow are to stay: a killed one is missed at once, when its connection breaks.
        patient = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "1h"}
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **patient}
        command = [sys.executable, "-m", f"distributed.cli.{program}", *arguments, "--no-dashboard"]
        process = subprocess.Popen(command, env=environment, cwd=self.folder, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def start_worker(self) -> subprocess.Popen:
        return self.start("dask_worker", f"tcp://{self.address}", "--nthreads", "1", "--no-nanny")

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes[1:]]


@pytest.fixture
def cluster(tmp_path):
    started = Cluster(tmp_path)
    yield started
    for process in started.processes:
        process.kill()
        process.wait()


def test_a_killed_worker_loses_no_cell(tmp_path, cluster):
    for _ in range(2):
        cluster.start_worker()
    folder = tmp_path / "cells"
    found, cells = {}, toy.marked(CELLS, tmp_path)
    for cell, outcome in run_cells(cells, folder, toy.slow, Dask(cluster.address, patience=LONG)):
        found[cell.key] = outcome["measured"]
        if len(found) == 1:
            victim = int(next(tmp_path.glob(f"{cell.key}.*")).suffix[1:])
            assert victim in cluster.pids
            os.kill(victim, signal.SIGKILL)
    assert found == {cell.key: toy.work(cell.task)["measured"] for cell in cells}
    assert set(load_cells(folder, cells)) == set(found)
    others = {path.suffix for path in tmp_path.glob("*.[0-9]*")} - {f".{victim}"}
    assert len(others) == 1  # the survivor did the rest


def test_without_workers_a_sweep_says_so_and_ends(cluster):
    told = []
    with pytest.raises(InputError, match=f"no worker came to the Dask scheduler at {cluster.address} within 0.1 s"):
        list(Dask(cluster.address, patience=0.1, tell=told.append).run(toy.work, [cell.task for cell in CELLS]))
    assert told == [f"no worker at {cluster.address}; waiting 0.1 s for one"]


def test_the_command_ends_with_one_line_more(cluster, tmp_path, capsys):
    arguments = ["vardi2022/fig2b", "--preset", "smoke", "--out", str(tmp_path), "--patience", "0.1"]
    assert main(["reproduce", *arguments, "--engine", f"dask://{cluster.address}"]) == 2
    waiting, ended = capsys.readouterr().err.splitlines()[1:]
    assert waiting == f"no worker at {cluster.address}; waiting 0.1 s for one"
    assert ended.startswith("brittle: no worker came")


def test_the_last_worker_dies_and_none_comes_back(tmp_path, cluster):
    worker, told, finished = cluster.start_worker(), [], []
    folder, cells = tmp_path / "cells", toy.marked(CELLS, tmp_path)
    list(run_cells(cells[:1], folder, toy.slow, Dask(cluster.address, patience=LONG)))  # it is there

    def sweep():
        for cell, _ in run_cells(cells, folder, toy.slow, Dask(cluster.address, 0.1, told.append)):
            finished.append(cell.key)
            if len(finished) == 2:
                worker.kill()

    with pytest.raises(InputError, match="what is finished is kept"):
        sweep()
    assert len(told) == 1
    assert 2 <= len(finished) < len(cells)
    assert set(load_cells(folder, cells)) == set(finished)


def test_the_last_worker_dies_and_another_comes(tmp_path, cluster):
    told, tasks = [], [cell.task for cell in toy.marked(CELLS, tmp_path)]

    def help_out(message):
        told.append(message)
        cluster.start_worker()

    found = {}
    for task, outcome in Dask(cluster.address, patience=LONG, tell=help_out).run(toy.slow, tasks):
        found[task.key] = outcome["measured"]
        if len(found) == 1:
            os.kill(cluster.pids[0], signal.SIGKILL)
    assert found == {task.key: toy.work(task)["measured"] for task in tasks}
    assert len(told) == len(cluster.pids) == 2  # before the first worker and after its death


def test_no_scheduler_is_one_clear_line(monkeypatch):
    import distributed

    def refuse(*arguments, **options):
        raise OSError("refused")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at 127\.0\.0\.1:9"):
        list(Dask("127.0.0.1:9").run(toy.work, [cell.task for cell in CELLS]))


def test_a_worker_with_other_code_refuses(tmp_path):
    task = replace(EXPERIMENTS["vardi2022/fig2b"].cells("smoke")[0].task, code="another version")
    ((_, outcome),) = Local().run(run_cell, [task])
    assert "other code for vardi2022/universal" in str(outcome)
