"""Tightness and time of every certificate on the same examples, in one run.

python -m benchmarks.certificates [--points N] [--exact N] [--only WORD]; one thread; the time is processor time per
example, attack included. A ratio is lower/upper with the shortest flip that any method of the run found.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import torch

from brittle.certificates import (
    Certificate,
    Dual,
    Exact,
    Example,
    LinearRelaxation,
    Lipschitz,
    LowerBound,
    RadiusBounds,
    RadiusInterval,
)
from brittle.certificates.dual import first_iterate, refine, solve_closed_form
from brittle.certificates.dual_bound import initial_kinds
from brittle.certificates.layers import spectral_norm
from brittle.certificates.margins import LocalModel, TwoLayerMargins
from brittle.certificates.rounding import Array, Factor
from brittle.certificates.saddle import Saddle
from brittle.common.threads import one_thread
from brittle.data import Data, Mnist, Sphere
from brittle.kkt import solve
from brittle.networks import LazyInit, Network, TorchLinearInit, TwoLayer
from brittle.training import Flow, LogLoss, Steps
from brittle.training import LazyTraining as LazyTraining


@dataclass(frozen=True)
class SdpCrown(Certificate):
    """The bound of SDP-CROWN (arXiv 2506.06665) as a special case of the dual bound, for comparison only.

    One κ for all concave neurons, and M ⪯ κ‖W_N‖²·I in place of M: the quadratic part no longer knows directions. The
    best κ is found by golden section, the multipliers by the same solver; rounding is not paid for.
    """

    name: ClassVar[str] = "SDP-CROWN"

    evaluations: int = 14

    def prepare(self, network: Network) -> LowerBound:
        assert isinstance(network, TwoLayer)
        W, b, v, c = (part.numpy() for part in (network.W, network.b, network.v[None], network.c[None]))
        rows, nothing = np.zeros(network.width, dtype=np.int64), np.zeros((1, 0))
        # Neurons as they are: one κ for all depends on their scales.
        margins = TwoLayerMargins(W, rows, b, v, c, np.arange(network.width), nothing, nothing[0])
        return partial(self._enclose, margins)

    def _enclose(self, margins: TwoLayerMargins, example: Example, enclosure: RadiusInterval) -> RadiusInterval:
        over = (margins.over(rival, example, enclosure.ball) for rival in margins.rivals(example.y))
        radii = (margin.unit * self._radius(margin.model, margin.start(enclosure)) for margin in over)
        return enclosure.proven(min(radii))

    def _radius(self, model: LocalModel, flip: Array) -> float:
        kinds, start = initial_kinds(model), first_iterate(model, flip)
        N = model.c < 0
        size = max(spectral_norm(model.W[N]) ** 2, 1e-300)
        best = 0.0

        def value(share: float) -> float:
            nonlocal best
            saddle = Saddle.at(model, kinds, np.where(N, share / size, 0.0))
            identity = np.eye(model.W.shape[1])
            coarse = replace(saddle, A=(1 - share) * identity, factor=Factor(np.sqrt(1 - share) * identity))
            F = coarse.solve(start, rounds=3, steps=6, tolerance=1e-5).value
            best = max(best, F)
            return F

        golden, low, high = 0.618, 1e-3, 0.999
        left, right = high - golden * (high - low), low + golden * (high - low)
        at_left, at_right = value(left), value(right)
        for _ in range(self.evaluations - 2):
            if at_left > at_right:
                high, right, at_right = right, left, at_left
                left = high - golden * (high - low)
                at_left = value(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + golden * (high - low)
                at_right = value(right)
        return float(min(model.ball, np.sqrt(2 * best)))


@dataclass(frozen=True)
class Problem:
    """A network, examples for the quick methods, how many of them the exact one gets, and its gap."""

    name: str
    make: Callable[[int], tuple[Network, Data]]
    points: int
    exact: int
    gap: float


def _rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def near_initialisation(seed: int, examples: int) -> Callable[[int], tuple[Network, Data]]:
    """wang2022's initialisation and lazy training (radius 1) on unit vectors of 200 dimensions, width 1000.

    The labels are random, and so near its start the network has about half of them right.
    """

    def make(points: int) -> tuple[Network, Data]:
        rng = _rng(seed)
        data = Sphere(dim=200, radius=1.0).sample(examples, rng)
        regime = LazyTraining(until=Steps(2000), radius=1.0)
        return regime.train(LazyInit().draw(200, 1000, rng), data, rng=rng).network, data

    return make


def at_initialisation(points: int) -> tuple[Network, Data]:
    """nn.Linear's default initialisation, width 1000, on the sphere of radius √200, labelled by the network itself."""
    rng = _rng(4)
    network, X = TorchLinearInit().draw(200, 1000, rng), Sphere(dim=200).sample(points, rng).X
    return network, Data(X, torch.where(network.logits(X) > 0, 1.0, -1.0).double())


def trained(points: int) -> tuple[Network, Data]:
    """Gradient flow to loss 1e-30 on 200 examples of the sphere in 200 dimensions, width 1000."""
    rng = _rng(1)
    data = Sphere(dim=200).sample(200, rng)
    return Flow(until=LogLoss(-69.1)).train(TorchLinearInit().draw(200, 1000, rng), data, rng=rng).network, data


def kkt(dim: int, examples: int) -> Callable[[int], tuple[Network, Data]]:
    def make(points: int) -> tuple[Network, Data]:
        rng = _rng(2)
        data = Sphere(dim=dim).sample(examples, rng)
        start = Flow(until=LogLoss(-3)).train(TorchLinearInit().draw(dim, 1000, rng), data, rng=rng).network
        assert isinstance(start, TwoLayer)
        return solve(start, data).network, data

    return make


def random(dim: int, width: int) -> Callable[[int], tuple[Network, Data]]:
    def make(points: int) -> tuple[Network, Data]:
        rng = _rng(dim + width)
        W, b, v = (torch.randn(shape, generator=rng, dtype=torch.float64) for shape in ((width, dim), width, width))
        network = TwoLayer(W / dim**0.5, 0.3 * b, v)
        X = torch.randn(points, dim, generator=rng, dtype=torch.float64)
        return network, Data(X, torch.where(network.logits(X) > 0, 1.0, -1.0).double())

    return make


def mnist(points: int) -> tuple[Network, Data]:
    """3 against 8 of the real MNIST, width 100, flow to loss .01 on 2000 examples; test examples are certified."""
    rng = _rng(3)
    data = Mnist(classes=(3, 8)).sample(2000, rng, test=2 * points)
    network = Flow(until=LogLoss(-4.6)).train(TorchLinearInit().draw(784, 100, rng), data, rng=rng).network
    return network, data.test


def problems(points: int, exact: int) -> Iterator[Problem]:
    yield Problem("at initialisation, width 1000, d=200", at_initialisation, points, exact, 1e-4)
    lazy = "lazy near initialisation, width 1000, d=200"
    yield Problem(lazy, near_initialisation(0, 3 * points), points, exact, 1e-4)
    yield Problem(f"{lazy}, one hard example", near_initialisation(0, 200), points, exact, 1e-4)
    for seed in range(1, 6):
        yield Problem(f"{lazy}, draw {seed}", near_initialisation(seed, 200), exact, exact, 1e-4)
    yield Problem("trained to 1e-30, width 1000, d=n=200", trained, points, exact, 1e-4)
    yield Problem("KKT point, d=n=100", kkt(100, 100), 100, 100, 1e-6)
    yield Problem("KKT point, d=1000, n=31", kkt(1000, 31), 31, 31, 1e-6)
    for dim, width in ((5, 20), (10, 40), (784, 30), (100, 60)):
        yield Problem(f"random, d={dim}, width {width}", random(dim, width), 20, 20, 1e-6)
    yield Problem("random, d=10, width 500 (hard)", random(10, 500), 5, 5, 1e-4)
    if os.environ.get("BRITTLE_DATA"):
        yield Problem("MNIST 3-8, width 100", mnist, 20, 20, 1e-4)


def measure(problem: Problem, limit: float) -> None:
    network, data = problem.make(problem.points)
    correct = (network.margins(data.X, data.y) > 0).nonzero()[: problem.points, 0]
    data = Data(data.X[correct], data.y[correct])
    methods: list[tuple[str, Certificate, int]] = [
        ("Lipschitz, local", Lipschitz(), problem.points),
        ("CROWN", LinearRelaxation(), problem.points),
        ("SDP-CROWN", SdpCrown(), min(problem.points, 20)),
        ("dual", Dual(), problem.points),
        ("dual, refined", Dual(refined=True), problem.points),
        ("exact to 1e-3", Exact(gap=1e-3, seconds=limit), problem.exact),
        (f"exact to {problem.gap:g}", Exact(gap=problem.gap, seconds=limit), problem.exact),
    ]
    rows: list[tuple[str, RadiusBounds, float]] = []
    for name, method, points in methods:
        first = Data(data.X[:points], data.y[:points])
        begun = time.process_time()
        bounds = method.bound(network, first, rng=_rng(0))
        rows.append((name, bounds, (time.process_time() - begun) / len(first)))
    _report(problem.name, rows)


def _report(title: str, rows: list[tuple[str, RadiusBounds, float]]) -> None:
    longest = max(len(bounds.upper) for _, bounds, _ in rows)
    upper = torch.full((longest,), torch.inf, dtype=torch.float64)
    for _, bounds, _ in rows:
        upper[: len(bounds.upper)] = torch.minimum(upper[: len(bounds.upper)], bounds.upper)
    print(f"\n{title}: {longest} examples, mean radius at most {float(upper[upper.isfinite()].mean()):.4g}")
    print(f"{'':18}{'examples':>9}{'mean':>10}{'min':>10}{'s each':>9}{'closed':>8}{'slowest':>9}")
    for name, bounds, seconds in rows:
        ratio = (replace(bounds, upper=upper[: len(bounds.upper)])).ratio
        print(
            f"{name:18}{len(bounds.upper):9d}{float(ratio.mean()):10.5f}{float(ratio.min()):10.5f}{seconds:9.3f}"
            f"{int(bounds.exact.sum()):8d}{float(bounds.seconds.max()):9.2f}",
            flush=True,
        )


def rounding_loss() -> None:
    """1 - proven radius/radius in plain floating point, of random networks in a ball of radius 2."""
    print("\nrounding: share of the radius that is paid for it (median, largest)")
    for width, dim in ((8, 5), (60, 100), (30, 784), (500, 200), (1000, 200)):
        network, data = random(dim, width)(10)
        margins = TwoLayerMargins.of(network, "dual")
        losses = []
        for row, (x, y) in enumerate(zip(data.X, data.y, strict=True)):
            (rival,) = margins.rivals(y)
            model = margins.over(rival, Example(network, row, x, y, 0.0), ball=2.0).model
            solved = refine(solve_closed_form(model, first_iterate(model, np.zeros_like(model.q))), model.ball)
            plain = np.sqrt(2 * max(solved.value, 1e-300)) / model.stretch
            losses += [1 - solved.proven_radius / plain] if plain < model.ball else []
        print(f"width {width:5d}, d={dim:4d}: {np.median(losses):9.1e}{max(losses):9.1e} on {len(losses)} examples")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--exact", type=int, default=20)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    with one_thread():
        for problem in problems(given.points, given.exact):
            if given.only.lower() in problem.name.lower():
                measure(problem, given.limit)
        if given.only.lower() in "rounding":
            rounding_loss()


if __name__ == "__main__":
    main()
