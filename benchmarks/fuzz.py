"""No attack may land below a certificate: random small networks, every method, rays, attacks and brute force.

python -m benchmarks.fuzz [CASES] [SEED]; a case is one network with one example. Exit code 1 on any violation.
"""

import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from brittle.attacks import MinimumNorm, first_flip
from brittle.certificates import Bounds, Certificate, Contradiction, Dual, Exact, Lipschitz, Relaxation
from brittle.certificates.local import Local, Span, localise
from brittle.certificates.pairs import scaled
from brittle.certificates.root import Solved, closed_form, first_iterate, initial_kinds, trim
from brittle.certificates.rounding import never_flips, proven_radius
from brittle.certificates.signs import agreed_signs
from brittle.networks import TwoLayer
from brittle.settings import Data
from tests.certificates.reference import Proof, brute_force_radius, neurons

POINTS = 40  # examples per network
METHODS: dict[str, Certificate] = {
    "dual": Dual(),
    "exact": Exact(gap=1e-8, seconds=0.5),
    "dual, refined": Dual(refined=True),
    "lipschitz, spectral": Lipschitz("spectral"),
    "lipschitz, sum": Lipschitz("sum"),
    "lipschitz, local": Lipschitz("local"),
    "relaxation": Relaxation(),
}
SHAPES = (
    "plain",
    "whole numbers",
    "repeated neuron",
    "zero weights",
    "dead output",
    "mostly off",
    "no biases",
    "far from 1",
)


@dataclass
class Tally:
    """What a run found; `worst` is the largest disagreement of exact with brute force."""

    cases: int = 0
    right: int = 0
    zero: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    closed: int = 0
    brute: int = 0
    worst: float = 0.0
    touching: int = 0
    violations: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        for name in ("cases", "right", "closed", "brute", "touching"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.zero += other.zero
        self.asked += other.asked
        self.worst = max(self.worst, other.worst)
        self.violations += other.violations


def draw(rng: np.random.Generator) -> tuple[TwoLayer, Data]:
    """A network of at most 8 neurons in at most 5 dimensions, often degenerate, with some examples."""
    width, dim, shape = int(rng.integers(1, 9)), int(rng.integers(1, 6)), rng.choice(SHAPES)
    W, b, v = rng.normal(size=(width, dim)), rng.normal(size=width) * rng.choice([0.3, 1.0]), rng.normal(size=width)
    c, X = rng.choice([0.0, 0.3]) * rng.normal(), rng.normal(size=(POINTS, dim))
    if shape == "whole numbers":
        W, b, v, c, X = W.round(), b.round(), v.round(), round(c), X.round()
    elif shape == "repeated neuron":
        W[-1], b[-1] = W[0], b[0]
    elif shape == "zero weights":
        W[0] = 0
    elif shape == "dead output":
        v[0] = 0
    elif shape == "mostly off":
        b -= 2
    elif shape == "no biases":
        b[:], c = 0, 0.0
    elif shape == "far from 1":
        scale = 10.0 ** rng.uniform(-140, 140)
        W, b, v = W * scale, b * scale, v * 10.0 ** rng.uniform(-140, 140)
    network = TwoLayer(*map(torch.from_numpy, (W, b, v)), torch.tensor(float(c), dtype=torch.float64))
    points = torch.from_numpy(X)
    y = torch.where(network.logits(points) >= 0, 1.0, -1.0).double()
    y[-1] = -y[-1]
    return network, Data(points, y)


def examine(seed: int) -> Tally:
    """One network: two methods in turn and a brute-force check of some examples."""
    rng = np.random.default_rng(seed)
    network, data = draw(rng)
    tally = Tally(cases=len(data), right=int((network.margins(data.X, data.y) > 0).sum()))
    names = list(METHODS)
    for name in {"dual", names[1 + seed % (len(names) - 1)]}:
        try:
            found = METHODS[name].bound(network, data, attack=MinimumNorm(starts=6), cap=1e3)
        except Contradiction as contradiction:
            tally.violations.append(f"seed {seed}, {name}: {contradiction}")
            continue
        tally.violations += [f"seed {seed}, {name}: {each}" for each in _undercut(network, data, found, rng)]
        tally.asked[name] += tally.right
        tally.zero[name] += int(((found.lower == 0) & (network.margins(data.X, data.y) > 0)).sum())
        if name == "exact":
            _compare(network, data, found, tally, seed)
    return tally


def _undercut(network: TwoLayer, data: Data, found: Bounds, rng: np.random.Generator) -> list[str]:
    """Flips along random rays below the certified radius, if a margin below zero is measured there."""
    problems = []
    for _ in range(4):
        directions = torch.from_numpy(rng.normal(size=tuple(data.X.shape)))
        directions /= directions.norm(dim=1, keepdim=True)
        flips = first_flip(network, data.X, data.y, directions)
        for row in (flips < found.lower * (1 - 1e-9)).nonzero()[:, 0].tolist():
            near, far = float(flips[row]), float(found.lower[row])
            steps = near + (far - near) * torch.logspace(-12, 0, 1001, dtype=torch.float64)[:-1, None]
            margins = network.margins(data.X[row] + steps * directions[row], data.y[row].expand(len(steps)))
            if margins.min() < 0:
                problems.append(f"example {row} flips at {near!r}, certified to {far!r}, margin {float(margins.min())}")
    return problems


def _compare(network: TwoLayer, data: Data, found: Bounds, tally: Tally, seed: int) -> None:
    """Exact against every activation region, on the first few examples."""
    W, b, v = network.W.numpy(), network.b.numpy(), network.v.numpy()
    tally.closed += int((found.exact & (network.margins(data.X, data.y) > 0)).sum())
    if not 0.1 < float(network.W.norm()) < 100 or not 0.01 < float(network.v.norm()) < 100:
        return  # the reference's tolerances are absolute
    for row in range(4):
        radius = brute_force_radius(W, b, v, float(network.c), data.X[row].numpy(), float(data.y[row]))
        lower, upper = float(found.lower[row]), float(found.upper[row])
        if not np.isfinite(radius) and not found.exact[row]:
            tally.touching += 1
            continue
        tally.brute += 1
        off = max(abs(lower - radius), radius - upper) if radius <= found.cap else max(found.cap - lower, 0.0)
        off /= max(1.0, min(radius, found.cap))
        tally.worst = max(tally.worst, off)
        if off > 1e-7:
            tally.violations.append(
                f"seed {seed}, exact, example {row}: [{lower!r}, {upper!r}] and brute force {radius!r}"
            )


def confirm(seed: int) -> str:
    """What rational arithmetic says of one dual bound in a ball of 1.5, of the signs it settles, of the bound then."""
    network, data = draw(np.random.default_rng(seed))
    rows = (network.margins(data.X, data.y) > 0).nonzero()[:, 0]
    if not len(rows):
        return "nothing to prove"
    x, y = data.X[rows[0]].numpy(), float(data.y[rows[0]])
    v, output_bias = network.v.numpy()[None], np.array([float(network.c)])
    W, b, V, biases = scaled(network.W.numpy(), network.b.numpy(), y * v, y * output_bias)
    exactly = W, b, V[0], float(biases[0]), x
    with np.errstate(all="ignore"):
        local = localise(Span.of(W), *exactly, ball=1.5)
        if never_flips(local, initial_kinds(local)):
            return "nothing to prove"
        solved = closed_form(local, first_iterate(local, np.zeros(local.W.shape[1])))
        return _confirm(exactly, local, solved)


def _confirm(exactly: tuple[Any, ...], local: Local, solved: Solved) -> str:
    point = solved.saddle.dual_point(solved.iterate)
    radius = proven_radius(local, point)
    if radius == 0:
        return "zero"
    ball = min(local.ball, 1.2 * radius)  # nearer to the bound, more signs are settled
    proof, signs = Proof.of(*exactly, local, point), agreed_signs(local, point, ball)
    if not proof.holds(radius):
        return "refuted"
    if not signs.any():
        return "confirmed"
    settled = {neuron: int(sign) for neuron, sign in zip(neurons(*exactly, local), signs, strict=True) if sign}
    if not all(proof.settles(neuron, sign, ball) for neuron, sign in settled.items()):
        return "refuted"
    smaller = trim(solved, ball)
    again = closed_form(smaller.saddle.local, smaller.iterate)
    local, point = again.saddle.local, again.saddle.dual_point(again.iterate)
    holds = never_flips(local, point.kinds) or Proof.of(*exactly, local, point, settled).holds(
        proven_radius(local, point)
    )
    return "confirmed with signs" if holds else "refuted"


def run(cases: int, seed: int = 0, jobs: int = 1) -> Tally:
    seeds = range(seed * 10**7, seed * 10**7 + -(-cases // POINTS))
    total = Tally()
    if jobs == 1:
        for each in map(examine, seeds):
            total.add(each)
        return total
    with ProcessPoolExecutor(jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for each in pool.map(examine, seeds, chunksize=20):
            total.add(each)
    return total


def main() -> int:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    started = time.perf_counter()
    jobs = int(os.environ.get("JOBS", os.cpu_count() or 1))
    total = run(cases, seed, jobs)
    print(f"{total.cases} cases, {total.right} rightly classified, {time.perf_counter() - started:.0f} s")
    for name in METHODS:
        if total.asked[name]:
            share = total.zero[name] / total.asked[name]
            print(f"{name:>20}: {total.asked[name]:6d} certified, {share:.4%} of them with radius 0")
    print(f"exact closed the gap on {total.closed} of {total.asked['exact']}")
    print(f"brute force: {total.brute} compared, largest disagreement {total.worst:.1e}; ", end="")
    print(f"{total.touching} margins that reach 0 and never go below it")
    outcomes = Counter(confirm(each) for each in range(1000))
    print("rational arithmetic:", ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    print(f"violations: {len(total.violations)}", *total.violations[:20], sep="\n")
    return 1 if total.violations or outcomes["refuted"] else 0


if __name__ == "__main__":
    sys.exit(main())
