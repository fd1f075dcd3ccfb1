"""Attacks against Foolbox and against a scan, one thread, as ratios measured in one run.

    python -m benchmarks.attacks --json -

Attacks take turns, round after round, and the median of their processor times counts, so that a busy machine disturbs
all alike. Norms are means over examples that all attacks flipped, measured in float64 on the same network.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from brittle.attacks import Attack, AttackResult, Foolbox, MinimumNorm, Ray
from brittle.data import Data, Digits, Mnist, Sphere, data_folder
from brittle.networks import LazyInit as LazyStart
from brittle.networks import TorchLinearInit, TwoLayer
from brittle.training import Flow, LazyTraining, LogLoss

PEERS: dict[str, Attack[AttackResult]] = {
    "DDN, 100 steps": Foolbox("DDNAttack", {"steps": 100}),
    "DDN, 1000 steps": Foolbox("DDNAttack", {"steps": 1000}),
    "DeepFool": Foolbox("L2DeepFoolAttack"),
    "Carlini-Wagner, 5 x 500 steps": Foolbox("L2CarliniWagnerAttack", {"binary_search_steps": 5, "steps": 500}),
    "Brendel-Bethge, 200 steps": Foolbox("L2BrendelBethgeAttack", {"steps": 200}),
}
QUICK = ("DDN, 100 steps",)  # timed in every round, like ours; the others once


def trained(dim: int, width: int, examples: int, seed: int) -> tuple[TwoLayer, Data]:
    rng = torch.Generator().manual_seed(seed)
    data = Sphere(dim=dim).sample(examples, rng)
    network = Flow(until=LogLoss(-3.0)).train(TorchLinearInit().draw(dim, width, rng), data).network
    assert isinstance(network, TwoLayer)
    return network, data


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def against_foolbox(dim: int, width: int, examples: int, rounds: int, seed: int) -> dict[str, Any]:
    """Mean norms and times of the minimum-norm attack, the gradient's ray and Foolbox's attacks on one network."""
    network, data = trained(dim, width, examples, seed)
    ours: dict[str, Attack[Any]] = {"minimum norm": MinimumNorm(), "gradient ray": Ray()}
    skipped = [name for name in PEERS if "Brendel" in name and find_spec("numba") is None]
    attacks = ours | {name: peer for name, peer in PEERS.items() if name not in skipped}
    times: dict[str, list[float]] = {name: [] for name in attacks}
    results: dict[str, AttackResult] = {}
    for turn in range(rounds):
        for name, attack in attacks.items():
            if turn == 0 or name in ours or name in QUICK:
                seconds, results[name] = timed(partial(attack.run, network, data))
                times[name].append(seconds)
    flipped = torch.stack([result.success for result in results.values()]).all(0)
    rows = [
        {
            "attack": name,
            "mean_norm": float(results[name].norms[flipped].mean()),
            "flipped": results[name].rate,
            "seconds": statistics.median(times[name]),
            "time_ratio": statistics.median(times[name]) / statistics.median(times["minimum norm"]),
            "longer_than_ours": float((results[name].norms > results["minimum norm"].norms)[flipped].double().mean()),
        }
        for name in attacks
    ]
    worst = float((results["minimum norm"].norms - results["gradient ray"].norms).max())
    stationary = float(results["minimum norm"].stationary.double().mean())  # type: ignore[attr-defined]
    return {"rows": rows, "skipped": skipped, "largest_excess_over_ray": worst, "stationary": stationary}


def scan(network: TwoLayer, X: Tensor, y: Tensor, step: float, largest: float) -> Tensor:
    """The smallest η among the multiples of `step`, tried in turn on all examples that are left."""
    gradients = network.margin_gradients(X, y)
    found, left, eta = torch.full((len(X),), torch.inf, dtype=torch.float64), torch.arange(len(X)), 0.0
    while len(left) and eta < largest:
        eta += step
        flipped = network.margins(X[left] - eta * gradients[left], y[left]) < 0
        found[left[flipped]] = eta
        left = left[~flipped]
    return found


def lazily_trained(width: int, examples: int, seed: int) -> tuple[TwoLayer, Data]:
    """wang2022: pictures of 0 and 1 (MNIST where it is there, otherwise digits), trained inside the lazy ball."""
    rng = torch.Generator().manual_seed(seed)
    real = (data_folder() / "mnist" / "train-images-idx3-ubyte.gz").exists()
    pictures = Mnist(classes=(0, 1)) if real else Digits(classes=(0, 1))
    data = pictures.sample(None, rng)
    network = (
        LazyTraining(radius=10.0, precision="float32")
        .train(LazyStart().draw(data.columns, width, rng), data, rng)
        .network
    )
    assert isinstance(network, TwoLayer)
    network = network.to(torch.float64)
    right = (network.margins(data.X, data.y) > 0).nonzero()[:examples, 0]
    return network, data.take(right)


def against_scan(width: int, examples: int, rounds: int, seed: int) -> dict[str, Any]:
    """The exact ray along the gradient against steps of 0.001, example by example and in one batch."""
    network, data = lazily_trained(width, examples, seed)
    X, y, single, batched, exact = data.X, data.y, [], [], []
    for _ in range(rounds):
        seconds, result = timed(lambda: Ray().run(network, data))
        exact.append(seconds)
        seconds, found = timed(lambda: scan(network, X, y, 0.001, 20.0))
        batched.append(seconds)
        each = [timed(partial(scan, network, X[row : row + 1], y[row : row + 1], 0.001, 20.0)) for row in range(len(X))]
        single.append(sum(seconds for seconds, _ in each))
    steps = result.norms / network.margin_gradients(X, y).norm(dim=1)
    excess = found - steps
    return {
        "dim": data.columns,
        "width": width,
        "examples": len(data),
        "speedup": statistics.median(single) / statistics.median(exact),
        "speedup_over_batched": statistics.median(batched) / statistics.median(exact),
        "mean_step": float(steps.mean()),
        "scan_excess_smallest": float(excess.min()),
        "scan_excess_largest": float(excess.max()),
    }


def in_a_box(networks: int) -> dict[str, Any]:
    """Linear networks whose terms cancel, in the box [-1, 1]^5: flips missed, and the excess over the shortest one.

    The shortest flip is clip(-λ g) with the smallest λ that reaches the boundary, here by bisection.
    """
    missed, examples, excess = 0, 0, 0.0
    for seed in range(networks):
        rng = torch.Generator().manual_seed(seed)
        W, v = (torch.randn(shape, generator=rng, dtype=torch.float64) for shape in ((6, 5), (6,)))
        network = TwoLayer(W, torch.full_like(v, 100.0), v, -100 * v.sum())
        X = 2 * torch.rand(8, 5, generator=rng, dtype=torch.float64) - 1
        data = Data(X, network.logits(X).sign())
        result = MinimumNorm().run(network, data, bounds=(-1.0, 1.0), rng=rng)
        shortest = _shortest_in_box(data.y[:, None] * (v @ W), X)
        known = shortest.isfinite() & result.success
        examples += int(shortest.isfinite().sum())
        missed += int((shortest.isfinite() & ~result.success).sum())
        excess = max(excess, float((result.norms / shortest - 1)[known].max()))
    return {"examples": examples, "missed": missed, "largest_excess": excess}


def _shortest_in_box(g: Tensor, X: Tensor) -> Tensor:
    """min ‖δ‖ with g·(x + δ) ≤ 0 and x + δ in [-1, 1]; the corner -sign(g) does, unless g is 0."""
    heights = (g * X).sum(1, keepdim=True)
    small, large = torch.zeros_like(heights), torch.full_like(heights, 1e9)
    for _ in range(200):
        middle = (small + large) / 2
        reached = heights + (g * (-middle * g).clamp(-1 - X, 1 - X)).sum(1, keepdim=True) <= 0
        small, large = torch.where(reached, small, middle), torch.where(reached, middle, large)
    norms = (-large * g).clamp(-1 - X, 1 - X).norm(dim=1)
    return torch.where(g.abs().sum(1) > 0, norms, torch.inf)


def show(result: dict[str, Any]) -> None:
    print(f"{'attack':32} {'mean norm':>10} {'flipped':>8} {'seconds':>9} {'x ours':>8} {'longer than ours':>17}")
    for row in result["foolbox"]["rows"]:
        print(
            f"{row['attack']:32} {row['mean_norm']:10.6f} {row['flipped']:8.3f} {row['seconds']:9.3f}"
            f" {row['time_ratio']:8.2f} {row['longer_than_ours']:17.3f}"
        )
    for name in result["foolbox"]["skipped"]:
        print(f"{name:32} skipped: Foolbox needs numba for it")
    print(f"minimum norm minus gradient ray, largest: {result['foolbox']['largest_excess_over_ray']:.2e}")
    print(f"minimum norm, share proved stationary: {result['foolbox']['stationary']:.3f}")
    scanned = result["scan"]
    print(f"exact ray against steps of 0.001, d = {scanned['dim']}, width {scanned['width']}: ", end="")
    print(f"{scanned['speedup']:.1f} times as fast (all examples in one batch: {scanned['speedup_over_batched']:.1f})")
    low, high = scanned["scan_excess_smallest"], scanned["scan_excess_largest"]
    box = result["box"]
    print(f"in a box: {box['missed']} of {box['examples']} flips missed, at most {box['largest_excess']:.1e} longer")
    print(f"the scan's step is longer by {low:.1e} to {high:.1e} (mean step {scanned['mean_step']:.4f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dim", type=int, default=200)
    parser.add_argument("--width", type=int, default=1000)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="write the result as JSON; - for standard output")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sizes = {"dim": arguments.dim, "width": arguments.width, "examples": arguments.examples}
    result = {
        **sizes,
        "foolbox": against_foolbox(**sizes, rounds=arguments.rounds, seed=arguments.seed),
        "box": in_a_box(networks=300),
        "scan": against_scan(arguments.width, arguments.examples, rounds=3, seed=arguments.seed),
    }
    if arguments.json == "-":
        print(json.dumps(result, indent=2))
        return
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(result, indent=2) + "\n")
    show(result)


if __name__ == "__main__":
    main()
