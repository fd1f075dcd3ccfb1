"""Whether audits keep their budgets, on networks of many kinds.

BRITTLE_DATA=... python -m benchmarks.budgets [--budget 20] [--busy N] [--only WORDS] [--all]

Every network is made from a fixed seed, trained for a few steps on MNIST (a synthetic picture set where there is no
BRITTLE_DATA) or on scikit-learn's digits, and audited in a process of its own, beside N busy processes. An audit
promises to end within 1.5 budgets and 5 s of computing, and within 2 budgets and 5 s by the clock where two cores are
busy. `--all` adds the networks of `benchmarks.networks`.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import brittle as bt
from benchmarks.networks import Residual, architectures
from brittle.auditing import Audit
from brittle.auditing import budget as budgets
from brittle.data import Data, Digits, Mnist

TRAINED, HELD_OUT, STEPS, BATCH, RATE = 2000, 500, 150, 64, 2e-3
COMPUTING, CLOCK, SLACK = 1.5, 2.0, 5.0  # budgets, and seconds on top
BUSY = "x = 0\nwhile True:\n    x += 1"


def conv(before: int, after: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(before, after, 3, stride=stride, padding=1, groups=groups)


def separable(bend: Callable[[], nn.Module]) -> nn.Module:
    """Depthwise and pointwise convolutions in turn."""
    blocks: list[nn.Module] = []
    for before, after, stride in ((16, 32, 2), (32, 64, 2)):
        depthwise = (conv(before, before, stride, groups=before), nn.BatchNorm2d(before), bend())
        blocks += [*depthwise, nn.Conv2d(before, after, 1), nn.BatchNorm2d(after), bend()]
    pooled = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return nn.Sequential(conv(1, 16), nn.BatchNorm2d(16), bend(), *blocks, *pooled)


class UNet(nn.Module):
    """Down twice, up once by a transposed convolution, joined with what was there before."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(conv(1, 8), nn.ReLU(), conv(8, 8), nn.ReLU())
        self.down = nn.Sequential(nn.MaxPool2d(2), conv(8, 16), nn.ReLU(), conv(16, 16), nn.ReLU())
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.last = nn.Sequential(conv(16, 8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 10))

    def forward(self, X: Tensor) -> Tensor:
        first = self.first(X)
        output: Tensor = self.last(torch.cat([first, self.up(self.down(first))], 1))
        return output


class Transformer(nn.Module):
    """Patches of 7 × 7 pixels, two layers of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 32, 7, stride=7)
        self.place = nn.Parameter(torch.zeros(1, 16, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, 10)

    def forward(self, X: Tensor) -> Tensor:
        patches = self.patches(X).flatten(2).transpose(1, 2)
        output: Tensor = self.head(self.encoder(patches + self.place).mean(1))
        return output


class Recurrent(nn.Module):
    """Reads a picture row by row."""

    def __init__(self, cell: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.cell, self.head = cell(28, 48, batch_first=True), nn.Linear(48, 10)

    def forward(self, X: Tensor) -> Tensor:
        output: Tensor = self.head(self.cell(X[:, 0])[0][:, -1])
        return output


def dense(*bends: Callable[[], nn.Module]) -> nn.Module:
    hidden = [each for bend in bends for each in (bend(), nn.Linear(256, 256))][:-1]
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), *hidden, nn.Linear(256, 10))


def plain() -> nn.Module:
    """Convolutions with batch norm and max pooling."""
    first = (conv(1, 16), nn.BatchNorm2d(16), nn.ReLU(), conv(16, 16), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
    second = (conv(16, 32), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*first, *second, nn.Linear(32 * 49, 64), nn.ReLU(), nn.Linear(64, 10))


def face() -> nn.Module:
    """The form of a face detector's refinement network: PReLU after every convolution."""
    convolutions = (conv(1, 16), nn.PReLU(16), nn.MaxPool2d(3, 2, ceil_mode=True), conv(16, 32), nn.PReLU(32))
    head = (nn.Flatten(), nn.Linear(32 * 49, 64), nn.PReLU(64), nn.Linear(64, 10))
    return nn.Sequential(*convolutions, nn.MaxPool2d(3, 2, ceil_mode=True), *head)


def leaky() -> nn.Module:
    convolutions = (conv(1, 16, 2), nn.LeakyReLU(0.1), conv(16, 32, 2), nn.LeakyReLU(0.1), nn.Flatten())
    return nn.Sequential(*convolutions, nn.Linear(32 * 49, 64), nn.LeakyReLU(0.1), nn.Linear(64, 10))


def residual(channels: int = 16) -> nn.Module:
    """On the 8 × 8 digits, with pooling between and after two residual blocks."""
    first = (conv(1, channels), nn.BatchNorm2d(channels), nn.ReLU(), Residual(channels), nn.MaxPool2d(2))
    pooled = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))
    return nn.Sequential(*first, Residual(channels), *pooled)


def average() -> nn.Module:
    pooled = (nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16 * 49, 10))
    return nn.Sequential(conv(1, 16, 2), nn.ReLU(), conv(16, 16), nn.ReLU(), *pooled)


MNIST = (1, 28, 28)
DIGITS = (1, 8, 8)


@dataclass(frozen=True)
class Case:
    """A network for pictures of this shape."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...] = MNIST

    @property
    def data(self) -> Data:
        return mnist() if self.shape == MNIST else digits()

    def audited(self, module: nn.Module, data: Data, budget: float) -> Audit:
        return bt.audit(bt.networks.as_network(module, self.shape), data, budget=budget)

    def trained(self, data: Data) -> nn.Module:
        """By Adam on the cross entropy, in single precision, by one thread."""
        torch.manual_seed(0)
        network, X = self.make(), data.X.float().reshape(-1, *self.shape)
        adam = torch.optim.Adam(network.parameters(), RATE)
        for _ in range(STEPS):
            rows = torch.randint(len(X), (BATCH,))
            adam.zero_grad()
            nn.functional.cross_entropy(network(X[rows]), data.y[rows]).backward()  # type: ignore[no-untyped-call]
            adam.step()
        return network.eval()


CASES = {
    "two layers": Case(lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))),
    "three layers": Case(lambda: dense(nn.ReLU, nn.ReLU)),
    "GELU": Case(lambda: dense(nn.GELU, nn.GELU)),
    "leaky CNN": Case(leaky),
    "CNN, batch norm, max pooling": Case(plain),
    "CNN, average pooling": Case(average),
    "separable, ReLU6": Case(lambda: separable(nn.ReLU6)),
    "separable, Hardswish": Case(lambda: separable(nn.Hardswish)),
    "PReLU, max pooling": Case(face),
    "residual, pooling": Case(residual, DIGITS),
    "U-Net": Case(UNet),
    "transformer": Case(Transformer),
    "LSTM": Case(lambda: Recurrent(nn.LSTM)),
    "GRU": Case(lambda: Recurrent(nn.GRU)),
}


def cases() -> dict[str, Case]:
    """With those of `benchmarks.networks`, which are for ten classes of digits."""
    small = {
        f"digits: {name}": Case(lambda build=build: build(10), DIGITS)  # type: ignore[misc]
        for name, build in architectures().items()
    }
    return CASES | small


def mnist() -> Data:
    """Some pictures; random ones of ten kinds where MNIST is not at hand."""
    rng = torch.Generator().manual_seed(0)
    if "BRITTLE_DATA" in os.environ:
        data = Mnist().load()
        return _some(data, rng)
    means = torch.rand(10, 784, generator=rng).double()
    y = torch.randint(10, (TRAINED + HELD_OUT,), generator=rng)
    X = (means[y] + 0.3 * torch.randn(len(y), 784, generator=rng).double()).clamp(0, 1)
    return Data(X[:TRAINED], y[:TRAINED], X[TRAINED:], y[TRAINED:])


def _some(data: Data, rng: torch.Generator) -> Data:
    held = data.test
    rows, others = (torch.randperm(len(each), generator=rng) for each in (data, held))
    rows, others = rows[:TRAINED], others[:HELD_OUT]
    return Data(data.X[rows], data.y[rows], held.X[others], held.y[others])


def digits() -> Data:
    data = Digits().load()
    return Data(data.X[:-300], data.y[:-300], data.X[-300:], data.y[-300:])


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Beside so many processes that only compute."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def row(name: str, budget: float) -> str:
    """Audited here: what came out, and both promises."""
    case = cases()[name]
    data = case.data
    module = case.trained(data)
    began = time.process_time(), time.perf_counter()
    found = case.audited(module, data, budget)
    computing, clock = time.process_time() - began[0], time.perf_counter() - began[1]
    weak = found.vulnerability
    proofs = weak.certified
    counts = {} if proofs is None else proofs.counts
    applied = sum(each.applied for each in found.remedies)
    kept = [
        "kept" if computing <= COMPUTING * budget + SLACK else "BROKEN",
        "kept" if clock <= CLOCK * budget + SLACK else "BROKEN",
    ]
    cells = [
        name,
        f"{found.speed:g}",
        f"{computing:.1f}",
        f"{clock:.1f}",
        f"{os.getloadavg()[0]:.1f}",
        f"{len(weak.free.norms)} ({weak.free.median:.3g})",
        "-" if proofs is None else f"{len(proofs.rows)} ({proofs.median_lower:.3g})",
        str(counts.get("exact", 0)),
        f"{applied} of {len(found.remedies)}",
        "reproducible" if found.reproducible else ", ".join(found.partial),
        *kept,
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=20.0)
    parser.add_argument("--busy", type=int, default=0, help="processes beside every audit")
    parser.add_argument("--only", default="", help="networks with these words")
    parser.add_argument("--all", action="store_true", help="those of benchmarks.networks too")
    parser.add_argument("--patient", action="store_true", help="no limit by the clock: for machines with other work")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.patient:
        budgets.WALL = 1e3
    if arguments.one:
        print(row(arguments.one, arguments.budget))
        return
    load = os.getloadavg()[0]
    print(f"budget {arguments.budget:g}, {arguments.busy} busy processes beside it, load before: {load:.2f}\n")
    heads = "network, speed, computing s, wall s, load, attacked (median), certified (median), exact, remedies applied"
    heads += ", verdict, ≤ 1.5 B + 5 s, wall ≤ 2 B + 5 s"
    print("| " + heads.replace(", ", " | ") + " |", "|" + "---|" * (heads.count(", ") + 1), sep="\n", flush=True)
    for name in cases() if arguments.all else CASES:
        if arguments.only in name:
            with busy(arguments.busy):
                command = [sys.executable, "-m", "benchmarks.budgets", "--one", name]
                command += ["--budget", str(arguments.budget), *(["--patient"] if arguments.patient else [])]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
            print(lines[-1] if done.returncode == 0 else f"| {name} | failed: {lines[-1]} |", flush=True)


if __name__ == "__main__":
    main()
