"""Certificates of many examples that are killed in the middle: the same file as an undisturbed run, and how fast.

BRITTLE_DATA=... python -m benchmarks.many_examples [--examples N] [--folder DIR] [--jobs N]; trains a small network on
MNIST with a fixed seed and runs `brittle certify --method dual` on the test images, each time in processes of its own:
undisturbed, killed with SIGKILL when a third of the chunks are there and run again, and the same by a Dask cluster of
two workers. What they wrote must be equal but for seconds: exit code 1 where it is not.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from brittle.data import Data, Mnist, save_data
from brittle.experiments.pieces import CERTIFIED_AT_ONCE
from brittle.networks import TorchLinearInit, save_network
from brittle.training import GradientDescent, Steps

WIDTHS = (32, 32)
EPOCH = 469  # steps of 128 examples
KILLED_AT = 1 / 3  # of the chunks
LOOK = 0.05  # seconds between two looks
PATIENCE = 120.0  # seconds for a scheduler
TIMES = ("seconds", "mean_seconds")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def prepare(folder: Path, examples: int) -> None:
    """The network and the test images, as files."""
    rng, data = torch.Generator().manual_seed(0), Mnist().load()
    start = TorchLinearInit().draw_deep(784, WIDTHS, rng, outputs=10)
    training = GradientDescent(until=Steps(EPOCH), rate=0.1, batch=128).train(start, Data(data.X, data.y), rng=rng)
    save_network(training.network, folder / "network.pt")
    save_data(Data(data.test.X[:examples], data.test.y[:examples]), folder / "data.npz")


@dataclass(frozen=True)
class Work:
    """One way to certify the images in a folder: its name is that of the file and of the folder with chunks."""

    folder: Path
    name: str
    engine: tuple[str, ...]

    @property
    def kept(self) -> int:
        """Finished chunks."""
        return len(list((self.folder / self.name).rglob("*.json")))

    def start(self) -> subprocess.Popen[bytes]:
        files = [str(self.folder / "network.pt"), "--data", str(self.folder / "data.npz"), "--method", "dual"]
        outputs = ["--keep", str(self.folder / self.name), "--json", str(self.folder / f"{self.name}.json")]
        command = [sys.executable, "-m", "brittle", "certify", *files, *self.engine, *outputs]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, env=ENVIRONMENT, start_new_session=True, **quiet)  # type: ignore[call-overload,no-any-return]

    def run(self) -> float:
        """To its end; seconds of the clock."""
        begun, process = time.perf_counter(), self.start()
        assert process.wait() == 0, f"{self.name}: exit code {process.returncode}"
        return time.perf_counter() - begun

    def kill(self, chunks: int) -> tuple[float, int]:
        """Begun, and ended by SIGKILL once so many chunks are there: seconds, and how many are kept."""
        begun, process = time.perf_counter(), self.start()
        while self.kept < chunks and process.poll() is None:
            time.sleep(LOOK)
        assert process.poll() is None, f"{self.name}: it ended before it could be killed"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return time.perf_counter() - begun, self.kept

    @property
    def found(self) -> dict[str, Any]:
        content = json.loads((self.folder / f"{self.name}.json").read_text())
        return {name: value for name, value in content.items() if name not in TIMES}


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A scheduler and two workers on this machine; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address, processes = f"127.0.0.1:{port}", list[subprocess.Popen[bytes]]()
    one = ["dask_worker", f"tcp://{address}", "--nthreads", "1", "--no-nanny"]
    for program in (["dask_scheduler", "--host", "127.0.0.1", "--port", str(port)], one, one):
        command = [sys.executable, "-m", f"distributed.cli.{program[0]}", *program[1:], "--no-dashboard"]
        processes.append(subprocess.Popen(command, env=ENVIRONMENT, cwd=folder, stderr=subprocess.DEVNULL))
    try:
        _wait_for("127.0.0.1", port)
        yield address
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _wait_for(host: str, port: int) -> None:
    for _ in range(int(PATIENCE / LOOK)):
        try:
            socket.create_connection((host, port), timeout=1).close()
            return
        except OSError:
            time.sleep(LOOK)
    raise SystemExit("the scheduler does not come up")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        prepare(folder, options.examples)
        local = ("--jobs", str(options.jobs))
        whole = Work(folder, "undisturbed", local)
        _say(f"undisturbed, {options.jobs} processes", whole.run(), options.examples)
        equal = [_disturbed(Work(folder, "killed", local), whole, options.examples)]
        with cluster(folder) as address:
            engine = ("--engine", f"dask://{address}")
            equal.append(_disturbed(Work(folder, "dask", engine), whole, options.examples))
    return 0 if all(equal) else 1


def _disturbed(work: Work, whole: Work, examples: int) -> bool:
    chunks = -(-examples // CERTIFIED_AT_ONCE)
    before, kept = work.kill(max(1, int(KILLED_AT * chunks)))
    after = work.run()
    same = work.found == whole.found
    _say(f"{work.name}, SIGKILL after {before:.0f} s with {kept} of {chunks} chunks kept", before + after, examples)
    print(f"  the file is {'the same' if same else 'another one'} as that of the undisturbed run", flush=True)
    return same


def _say(what: str, seconds: float, examples: int) -> None:
    print(f"{what}: {seconds:.0f} s, {examples / seconds:.1f} examples a second", flush=True)


if __name__ == "__main__":
    sys.exit(main())
