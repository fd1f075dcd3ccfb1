"""Exact radii of small deep networks, many of them degenerate, against the enumeration of all activation regions."""

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch

from brittle.certificates import Contradiction, Exact
from brittle.data import Data
from brittle.networks import Deep
from tests.certificates.reference import brute_force_strict_radius

SHAPES = (
    "plain",
    "whole numbers",
    "repeated neurons",
    "zero weights",
    "nearly parallel",
    "mostly off",
    "no biases",
    "dead layer",
)
CAP = 3.0
POINTS = 2  # examples per network


@dataclass
class DeepTally:
    """Cases by outcome, and what is wrong."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, other: "DeepTally") -> None:
        self.cases += other.cases
        self.outcomes += other.outcomes
        self.violations += other.violations


def draw(rng: np.random.Generator, shape: str, widest: int = 5) -> tuple[Deep, Data]:
    """A network with 2 or 3 hidden layers of at least 3 neurons and some examples that it classifies as labelled."""
    hidden = rng.integers(3, widest + 1, size=rng.integers(2, 4)).tolist()
    widths = [int(rng.integers(2, 5)), *hidden, int(rng.choice([1, 3]))]
    weights = [1.5 * rng.normal(size=(b, a)) / a**0.5 for a, b in pairwise(widths)]
    biases, X = [0.3 * rng.normal(size=b) for b in widths[1:]], rng.normal(size=(POINTS, widths[0]))
    if shape == "whole numbers":
        weights, biases, X = [W.round() for W in weights], [b.round() for b in biases], X.round()
    elif shape == "repeated neurons":
        for W, b in zip(weights[:-1], biases[:-1], strict=True):
            W[-1], b[-1] = W[0], b[0]
    elif shape == "zero weights":
        weights[0][0], weights[1][1], biases[1][1] = 0, 0, 0
    elif shape == "nearly parallel":
        for W, b in zip(weights[:-1], biases[:-1], strict=True):
            W[-1], b[-1] = W[0] * (1 + 1e-9) + 1e-10, b[0]
    elif shape == "mostly off":
        biases = [b - 0.7 for b in biases[:-1]] + biases[-1:]
    elif shape == "no biases":
        biases = [0 * b for b in biases]
    elif shape == "dead layer":
        biases[1] = -np.abs(biases[1]) - 10
    network = Deep.dense([torch.from_numpy(W) for W in weights], [torch.from_numpy(b) for b in biases])
    points = torch.from_numpy(X)
    logits = network.logits(points)
    return network, Data(points, torch.where(logits > 0, 1.0, -1.0).double() if widths[-1] == 1 else logits.argmax(1))


def examine(seed: int) -> DeepTally:
    """One network, one gap, both examples."""
    rng = np.random.default_rng(seed)
    network, data = draw(rng, SHAPES[seed % len(SHAPES)])
    tally = DeepTally(len(data))
    gap = float(10.0 ** -rng.integers(2, 7))
    try:
        found = Exact(gap=gap, seconds=1.0).bound(network, data, cap=CAP)
    except Contradiction as contradiction:
        tally.violations.append(f"seed {seed}: {contradiction}")
        return tally
    weights, biases = ([each.numpy() for each in part] for part in (network.weights, network.biases))
    for row, (x, y) in enumerate(zip(data.X, data.y, strict=True)):
        tally.outcomes[found.status[row]] += 1
        radius = brute_force_strict_radius(weights, biases, x.numpy(), float(y), limit=CAP)
        lower, upper = float(found.lower[row]), float(found.upper[row])
        if lower > radius * (1 + 1e-7) or upper < radius * (1 - 1e-7):
            tally.violations.append(f"seed {seed}, example {row}: [{lower!r}, {upper!r}], enumeration {radius!r}")
    return tally
