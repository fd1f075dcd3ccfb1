"""How long `brittle certify` takes beside busy processes, with as many threads as cores and with brittle's choice.

python -m benchmarks.busy [--examples 20] [--busy 0 1 2 4]; two networks with fixed random weights, one dense and one
convolutional, on random pictures, by the dual bound. The command runs in a process of its own, with OMP_NUM_THREADS as
many as there are cores, as PyTorch has it where nobody says anything, and without, where brittle takes one thread.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import nn

import brittle as bt
from benchmarks.budgets import busy
from brittle.common.threads import VARIABLES
from brittle.data import Data, save_data


def dense() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def convolutional() -> nn.Module:
    convolutions = (nn.Conv2d(1, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 4, 2, 1), nn.ReLU())
    return nn.Sequential(nn.Unflatten(1, (1, 28, 28)), *convolutions, nn.Flatten(), nn.Linear(16 * 49, 10))


NETWORKS = {"dense": dense, "convolutional": convolutional}


def written(name: str, folder: Path, examples: int) -> tuple[Path, Path]:
    """The network and pictures that it is right about."""
    torch.manual_seed(0)
    module, X = NETWORKS[name]().eval(), torch.rand(examples, 784).double()
    network = bt.networks.as_network(module, (784,))
    model, data = folder / f"{name}.pt", folder / f"{name}.npz"
    bt.networks.save_network(network, model)
    save_data(Data(X, network.predict(X)), data)
    return model, data


def seconds(model: Path, data: Path, threads: int | None, others: int) -> float:
    """By the clock, of the whole command."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment |= {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", "brittle", "certify", str(model), "--data", str(data)]
    with busy(others):
        began = time.perf_counter()
        subprocess.run(command, env=environment, capture_output=True, check=True)
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--busy", type=int, nargs="*", default=[0, 1, 2, 4])
    arguments = parser.parse_args()
    cores = os.cpu_count() or 1
    print(f"load before: {os.getloadavg()[0]:.2f}, {cores} cores\n")
    print(f"| network | busy processes | {cores} threads, s | one thread, s |", "|---|---|---|---|", sep="\n")
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            files = written(name, Path(folder), arguments.examples)
            for others in arguments.busy:
                before, now = (seconds(*files, threads, others) for threads in (cores, None))
                print(f"| {name} | {others} | {before:.1f} | {now:.1f} |", flush=True)


if __name__ == "__main__":
    main()
