"""Exact radii of deep MNIST networks: tightness and time of the relaxation, of the root and of the whole tree.

BRITTLE_DATA=... python -m benchmarks.deep_exact [--points N] [--limit SECONDS] [--only WORD] [--networks FOLDER]; one
thread. Seconds are processor time per example, the attack aside; the limit is on processor time too. A ratio is
lower/upper with the shortest flip of the run. The networks are trained here with fixed seeds, or read from the folder,
where they are kept. `--only sdpcrown` decides images of the SDP-CROWN paper's MNIST MLP at radius 1 instead (--points
200: all of them), `--only rounding` shows what the judge pays for rounding.
"""

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from brittle.attacks import PGD, MinimumNorm
from brittle.certificates import Exact, Example, LinearRelaxation, LowerBound, RadiusInterval
from brittle.certificates.deep_dual import DeepDual
from brittle.certificates.deep_exact.branch_and_bound import RivalNode, make_tree
from brittle.certificates.deep_exact.judge import examine
from brittle.certificates.layers import Layers
from brittle.common.threads import one_thread
from brittle.data import Data, Mnist
from brittle.data.sources import data_folder
from brittle.networks import Deep, TorchLinearInit, load_network, save_network
from brittle.training import GradientDescent, Steps

EPOCH = 469  # steps of 128 examples
ROUND = 2048  # examples that an attack moves at once in adversarial training
GAP = 1e-3


@dataclass(frozen=True)
class Case:
    """Hidden widths, epochs of training, and the budget of adversarial training if there is any."""

    name: str
    widths: tuple[int, ...]
    epochs: int = 5
    budget: float | None = None


CASES = (
    Case("784-100-100-10", (100, 100)),
    Case("784-100-100-100-10", (100, 100, 100)),
    Case("784-256-256-10", (256, 256)),
    Case("784-100-100-10 adversarial", (100, 100), epochs=4, budget=1.0),
)


def trained(case: Case, data: Data) -> Deep:
    """By descent with batches, epoch by epoch; adversarially on examples as PGD moves them, a few at a time."""
    rng = torch.Generator().manual_seed(0)
    network = TorchLinearInit().draw_deep(784, case.widths, rng, outputs=10)
    if case.budget is None:
        for _ in range(case.epochs):
            network = _descended(network, Data(data.X, data.y), EPOCH, rng)
        return network
    attack = PGD(budget=case.budget, steps=5)
    for _ in range(case.epochs * len(data) // ROUND):
        rows = torch.randperm(len(data), generator=rng)[:ROUND]
        some = Data(data.X[rows], data.y[rows])
        moved = Data(some.X + attack.run(network, some).perturbations, some.y)
        network = _descended(network, moved, ROUND // 128, rng)
    return network


def _descended(network: Deep, data: Data, steps: int, rng: torch.Generator) -> Deep:
    return GradientDescent(until=Steps(steps), rate=0.1, batch=128).train(network, data, rng=rng).network


def network_of(case: Case, data: Data, folder: Path | None) -> Deep:
    path = None if folder is None else folder / f"{case.name}.pt"
    if path is not None and path.exists():
        network = load_network(path)
        assert isinstance(network, Deep)
        return network
    network = trained(case, data)
    if path is not None:
        save_network(network, path)
    return network


@dataclass(frozen=True)
class Staged(Exact):
    """`Exact` that notes the root's radius and the processor seconds up to it and to the end."""

    roots: list[float] = field(default_factory=list)
    times: list[tuple[float, float]] = field(default_factory=list)

    def _enclose_deep(
        self, layers: Layers, dual: DeepDual, relaxed: LowerBound, example: Example, enclosure: RadiusInterval
    ) -> RadiusInterval:
        begun = time.process_time()
        margins = layers.around(example.x, enclosure.ball, example.y)
        tree = make_tree(margins, example, enclosure, self.gap, lambda: time.process_time() > begun + self.seconds)
        assert tree is not None
        nodes: list[RivalNode] = []
        if tree.rivals:
            nodes, enclosure = tree.first_nodes(enclosure)
        self.roots.append(tree.radius_of(min((node.floor for node in nodes), default=np.inf), enclosure))
        middle = time.process_time()
        enclosure = tree.grow(nodes, enclosure)
        self.times.append((middle - begun, time.process_time() - begun))
        return enclosure


def measure(case: Case, network: Deep, test: Data, points: int, limit: float) -> None:
    right = (network.margins(test.X, test.y) > 0).nonzero()[:points, 0]
    data = Data(test.X[right], test.y[right])
    relaxed = LinearRelaxation().bound(network, data)
    method = Staged(GAP, limit)
    found = method.bound(network, data)
    roots, times = torch.tensor(method.roots), torch.tensor(method.times)
    print(
        f"\n{case.name}: accuracy {network.accuracy(test.X, test.y):.3f}, mean radius {float(found.upper.mean()):.4g}"
    )
    for name, lower, seconds in (
        ("CROWN", relaxed.lower, relaxed.seconds),
        ("root", roots, times[:, 0]),
        ("exact", found.lower, times[:, 1]),
    ):
        ratio = lower / found.upper
        print(
            f"{name:8} mean {float(ratio.mean()):.4f} min {float(ratio.min()):.4f}, "
            f"closed {int((ratio >= 1 - GAP * (1 + 1e-6)).sum())} of {len(data)}, "
            f"seconds mean {float(seconds.mean()):.2f} max {float(seconds.max()):.2f}",
            flush=True,
        )


def decide(points: int, limit: float) -> None:
    """The first images of the SDP-CROWN paper for its MNIST MLP at radius 1: a flip, or a proof that there is none."""
    folder = data_folder() / "sdpcrown"
    state = torch.load(folder / "mnist_mlp.pth", weights_only=True, map_location="cpu")
    weights, biases = ([value.double() for key, value in state.items() if word in key] for word in ("weight", "bias"))
    network = Deep.dense(weights, biases)
    X = torch.from_numpy(np.load(folder / "mnist_X.npy")).double().flatten(1)[:points]
    y = torch.from_numpy(np.load(folder / "mnist_y.npy")).long()[:points]
    begun = time.process_time()
    found = Exact(GAP, limit).bound(network, Data(X, y), attack=MinimumNorm(), cap=1.0)
    wrong, flipped, proved = found.upper == 0, (found.upper > 0) & (found.upper <= 1), found.lower >= 1
    print(
        f"\nSDP-CROWN's MNIST MLP at radius 1 without a box: {int(wrong.sum())} wrong, {int(flipped.sum())} flipped, "
        f"{int(proved.sum())} proved, {int((~(wrong | flipped | proved)).sum())} undecided of {len(y)}; "
        f"{(time.process_time() - begun) / len(y):.2f} s each, at most {float(found.seconds.max()):.1f} s of wall clock"
    )


def rounding_loss() -> None:
    """1 - floor/F in plain floating point, of random networks some iterations after the start."""
    print("\nrounding: share of F that is paid for it")
    for shape in ((5, 8, 8, 1), (100, 60, 60, 1), (784, 100, 100, 1), (784, 100, 100, 100, 1)):
        rng = torch.Generator().manual_seed(sum(shape))
        network = TorchLinearInit().draw_deep(shape[0], shape[1:-1], rng).to(torch.float64)
        x = torch.randn(shape[0], generator=rng, dtype=torch.float64)
        y = torch.tensor(1.0 if float(network.logits(x[None])) > 0 else -1.0, dtype=torch.float64)
        ball = 1.05 * float(MinimumNorm().run(network, Data(x[None], y[None])).norms[0])  # more than can be proved
        margins = Layers.of(network, "exact").around(x, ball, y)
        example = Example(network, 0, x, y, float(network.margins(x[None], y[None])))
        enclosure = RadiusInterval(0.0, np.inf, torch.zeros_like(x), ball)
        tree = make_tree(margins, example, enclosure, GAP, lambda: False)
        assert tree is not None
        losses = []
        for node in tree.first_nodes(enclosure)[0]:
            problem, multipliers = node.solved.problem, node.solved.iterate.y.copy()
            multipliers[1] = 0.0
            S = problem.lagrangian(multipliers)
            plain = 0.5 * (S[-1, -1] - S[-1, :-1] @ np.linalg.solve(S[:-1, :-1], S[:-1, -1]))
            losses.append(1 - examine(problem, multipliers, tree.root.ball.reach).floor / plain)
        print(f"{'-'.join(map(str, shape)):22}", *(f"{loss:.1e}" for loss in losses), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--networks", type=Path)
    given = parser.parse_args()
    with one_thread():
        if given.only == "sdpcrown":
            decide(given.points, given.limit)
            return
        if given.only == "rounding":
            rounding_loss()
            return
        data = Mnist().load()
        assert data.test is not None
        for case in CASES:
            if given.only in case.name:
                measure(case, network_of(case, data, given.networks), data.test, given.points, given.limit)


if __name__ == "__main__":
    main()
