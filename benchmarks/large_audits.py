"""Audits of a whole data set: wall clock, processor seconds, peak memory, and what was reached.

BRITTLE_DATA=... python -m benchmarks.large_audits [--budget S] [--folder DIR] [--only WORD] [--epochs N]; trains a
dense and a convolutional network on all training images of CIFAR-10, and of MNIST, with fixed seeds, by PyTorch alone,
saves them as a user would, and runs `brittle audit` on each in a process of its own. Networks and data are kept in the
folder.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from brittle.data import Cifar10, Data, Mnist, save_data

BATCH, RATE = 128, 1e-3


def mlp(pixels: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(pixels, 512), nn.ReLU(), nn.Linear(512, 10))


def cnn(channels: int, side: int) -> nn.Module:
    convolutions = (nn.Conv2d(channels, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU())
    width = 32 * (side // 4) ** 2
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(width, 100), nn.ReLU(), nn.Linear(100, 10))


@dataclass(frozen=True)
class Case:
    """A network for pictures of this shape, and where they come from."""

    make: Callable[[], nn.Module]
    images: Cifar10 | Mnist
    shape: tuple[int, int, int]

    def trained(self, data: Data, epochs: int) -> nn.Module:
        """By Adam on the cross entropy, in single precision."""
        torch.manual_seed(0)
        network, X = self.make(), data.X.float().reshape(-1, *self.shape)
        adam = torch.optim.Adam(network.parameters(), RATE)
        for _ in range(epochs):
            for rows in torch.split(torch.randperm(len(X)), BATCH):
                adam.zero_grad()
                nn.functional.cross_entropy(network(X[rows]), data.y[rows]).backward()  # type: ignore[no-untyped-call]
                adam.step()
        return network

    def prepare(self, model: Path, file: Path, epochs: int) -> None:
        """The network and its data as files, where they are not there yet."""
        if file.exists() and model.exists():
            return
        data = self.images.load()
        if not file.exists():
            save_data(data, file)
        scripted = torch.jit.trace(self.trained(data, epochs), torch.zeros(2, *self.shape))  # type: ignore[no-untyped-call]
        scripted.save(str(model))


CASES = {
    "3072-512-10": Case(lambda: mlp(3072), Cifar10(), (3, 32, 32)),
    "CNN": Case(lambda: cnn(3, 32), Cifar10(), (3, 32, 32)),
    "784-512-10": Case(lambda: mlp(784), Mnist(), (1, 28, 28)),
    "MNIST CNN": Case(lambda: cnn(1, 28), Mnist(), (1, 28, 28)),
}


@dataclass(frozen=True)
class Spent:
    """What a process took, and what it wrote."""

    wall: float
    user: float
    system: float
    gigabytes: float
    found: dict[str, Any]


def audited(model: Path, data: Path, budget: float, shape: tuple[int, ...]) -> Spent:
    out, begun = model.with_suffix(".json"), time.perf_counter()
    options = ["--budget", str(budget), "--shape", ",".join(map(str, shape)), "--json", str(out)]
    command = [sys.executable, "-m", "brittle", "audit", str(model), "--data", str(data), *options]
    child = subprocess.Popen(command)
    _, code, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(code)
    assert child.returncode == 0, f"exit code {child.returncode}"
    return Spent(time.perf_counter() - begun, *_measured(usage), json.loads(out.read_text()))


def _measured(usage: resource.struct_rusage) -> tuple[float, float, float]:
    return usage.ru_utime, usage.ru_stime, usage.ru_maxrss * 1024 / 1e9


def row(name: str, spent: Spent) -> str:
    weak, found = spent.found["vulnerability"], spent.found
    proofs, remedies = weak["certified"], found["remedies"]
    status = proofs["status"] if proofs else []
    counts = ", ".join(f"{status.count(word)} {word}" for word in ("exact", "proved", "open", "error"))
    cells = (
        name,
        f"{spent.wall:.0f}",
        f"{spent.user:.0f} + {spent.system:.0f}",
        f"{spent.gigabytes:.2f}",
        str(len(weak["free"]["norms"])),
        counts,
        f"{sum(each['applied'] for each in remedies)} of {len(remedies)}",
        ", ".join(found["partial"]) or "nothing",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print("| network | wall clock, s | user + system, s | peak, GB | attacked | certified | remedies | cut short |")
        print("|---|---|---|---|---|---|---|---|")
        for name, case in CASES.items():
            if options.only in name:
                model, file = folder / f"{name}.pt", folder / f"{case.images.name}.npz"
                case.prepare(model, file, options.epochs)
                print(row(name, audited(model, file, options.budget, case.shape)), flush=True)


if __name__ == "__main__":
    main()
