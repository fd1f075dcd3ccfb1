"""kill -9 in the middle of a sweep, then the same command again; and two runs into one folder."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brittle.cli import main

ARGUMENTS = ["reproduce", "vardi2022/fig1a", "--preset", "smoke", "--only", "alpha=0.5", "--only", "dim=64"]


def command(out: Path, jobs: int) -> list[str]:
    return [*ARGUMENTS, "--out", str(out), "--jobs", str(jobs)]


def start(out: Path, jobs: int) -> subprocess.Popen:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "brittle", *command(out, jobs)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def cells(out: Path) -> dict[str, dict]:
    """Finished cells without their timings."""
    return {path.name: json.loads(path.read_text())["measured"] for path in (out / "cells").glob("*.json")}


def wait_until(condition, seconds=600):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def same_figures(one: Path, other: Path) -> None:
    one, other = one / "vardi2022-fig1a", other / "vardi2022-fig1a"
    for name in ("points.csv", "figure.svg", "figure.png"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    first, second = (json.loads((each / "figure.json").read_text()) for each in (one, other))
    for name in ("points", "unreached", "claims", "holds"):
        assert first[name] == second[name]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("uninterrupted")
    assert main(command(out, 1)) == 0
    return out


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the workers in /proc, which is Linux's")
def test_killed_and_run_again_gives_the_same_figure(tmp_path, uninterrupted, capsys):
    process = start(tmp_path, jobs=2)
    wait_until(lambda: cells(tmp_path) or process.poll() is not None)
    workers = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = cells(tmp_path)
    assert 0 < len(kept) < len(cells(uninterrupted))
    assert not (tmp_path / "vardi2022-fig1a").exists()
    wait_until(lambda: not any(running(worker) for worker in workers))
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").glob("*.json")}
    assert main(command(tmp_path, 1)) == 0
    assert all(path.stat().st_mtime_ns == changed for path, changed in files.items())
    assert cells(tmp_path) == cells(uninterrupted)
    same_figures(tmp_path, uninterrupted)


def test_two_runs_into_one_folder(tmp_path, uninterrupted, capsys):
    process = start(tmp_path, jobs=1)
    assert main(command(tmp_path, 1)) == 0
    assert process.wait(600) == 0
    assert cells(tmp_path) == cells(uninterrupted)
    same_figures(tmp_path, uninterrupted)
    assert not list(tmp_path.rglob("*.partial"))
