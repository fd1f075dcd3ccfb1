"""What training for the radius reaches, as a share of what the data allow, on data of every kind.

    python -m benchmarks.cure [--cases NAME ...] [--seeds N] [--json FILE]

Each network is trained to a mean logistic loss of e^-3 by gradient flow and
then hardened with `MaximumRadius` as it is. Radii are proved (`Dual`) unless marked, medians over training examples and
over held-out ones; ρ is half the distance to the nearest training example of another class. Figures are means over
seeds; seconds are processor time of the hardening alone.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

from brittle.certificates import Dual
from brittle.common.files import write_json
from brittle.geometry import nearest_rivals
from brittle.networks import Network, PyTorch
from brittle.settings import Clusters, Data, Digits, Mnist, Sphere, Subspace
from brittle.training import Flow, Logistic, LogLoss, MaximumRadius

Made = tuple[Network, Data, MaximumRadius]
MOST = 200  # examples of a set that are certified or attacked


def two_layers(data: Data, width: int, rng: Generator) -> Network:
    start = PyTorch().draw(data.columns, width, rng)
    return Flow(until=LogLoss(-3.0), loss=Logistic()).train(start, data).network


def digits(rng: Generator) -> Made:
    data = Digits(classes=(3, 8)).sample(rng=rng, test=107)
    return two_layers(data, 200, rng), data, MaximumRadius()


def mnist_pair(rng: Generator) -> Made:
    data = Mnist(classes=(3, 8)).sample(1000, rng, test=1000)
    return two_layers(data, 100, rng), data, MaximumRadius()


def sphere(rng: Generator) -> Made:
    data = Sphere(100).sample(100, rng)
    return two_layers(data, 100, rng), data, MaximumRadius()


def clusters(rng: Generator) -> Made:
    data = Clusters(200, 10).sample(200, rng, test=200)
    return two_layers(data, 100, rng), data, MaximumRadius()


def subspace(rng: Generator) -> Made:
    data = Subspace(784, 756).sample(200, rng)
    return two_layers(data, 400, rng), data, MaximumRadius()


CASES: dict[str, Callable[[Generator], Made]] = {
    "digits 3v8": digits,
    "MNIST 3v8, n = 1000": mnist_pair,
    "Sphere, d = n = 100": sphere,
    "Clusters, d = 200, k = 10": clusters,
    "Subspace, 28 of 784": subspace,
}


def radii(network: Network, data: Data) -> tuple[Tensor, Tensor]:
    """Proved and attacked, of the first examples."""
    some = data.take(torch.arange(min(MOST, len(data))))
    found = Dual().bound(network, some)
    return found.lower, found.upper


def judged(network: Network, data: Data) -> dict[str, float]:
    sets = {"train": data, **({} if data.X_test is None else {"test": data.test})}
    row: dict[str, float] = {}
    for name, examples in sets.items():
        lower, upper = radii(network, examples)
        limits = nearest_rivals(examples.X, examples.y, data.X, data.y)[0][: len(lower)] / 2
        row |= {
            f"{name} share": float((lower / limits).median()),
            f"{name} median": float(lower.median()),
            f"{name} attacked": float(upper.median()),
            f"{name} tenth": float(lower.quantile(0.1)),
            f"{name} accuracy": network.accuracy(examples.X, examples.y),
        }
    return row


def case(make: Callable[[Generator], Made], seed: int) -> dict[str, float]:
    network, data, regime = make(torch.Generator().manual_seed(seed))
    before = judged(network, data)
    begun = time.process_time()
    hardened = regime.train(network, data, torch.Generator().manual_seed(seed)).network
    seconds = time.process_time() - begun
    after = judged(hardened, data)
    row = {f"{name} before": value for name, value in before.items()}
    return {**row, **{f"{name} after": value for name, value in after.items()}, "seconds": seconds}


def mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


def words(name: str, row: dict[str, Any]) -> str:
    def change(what: str, form: str) -> str:
        if f"{what} before" not in row:
            return ""
        return f"{format(row[f'{what} before'], form)} → {format(row[f'{what} after'], form)}"

    parts = ["train share", "train median", "train tenth", "test median"]
    cells = [change(part, ".2f" if "share" in part else ".3g") for part in parts]
    accuracy = change("test accuracy", ".1%") or change("train accuracy", ".1%")
    return f"| {name} | {' | '.join(cells)} | {accuracy} | {row['seconds']:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="NAME")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    print("| data | share of the limit | proved median | tenth | held-out median | accuracy | seconds |")
    print("|---|---|---|---|---|---|---|")
    found = {}
    for name in options.cases:
        found[name] = mean([case(CASES[name], seed) for seed in range(options.seeds)])
        print(words(name, found[name]), flush=True)
    if options.json:
        write_json(options.json, found)


if __name__ == "__main__":
    main()
