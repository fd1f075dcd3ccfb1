"""No attack may land below a certificate: random small networks, every method, rays, attacks and brute force."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import torch

from brittle.attacks import MinimumNorm, first_flip
from brittle.auditing.pieces import KnownFlips
from brittle.certificates import Certificate, Contradiction, Dual, Exact, LinearRelaxation, Lipschitz, RadiusBounds
from brittle.data import Data
from brittle.networks import TwoLayer
from tests.certificates.reference import brute_force_radius

POINTS = 40  # examples per network
METHODS: dict[str, Certificate] = {
    "dual": Dual(),
    "exact": Exact(gap=1e-8, seconds=0.5),
    "dual, refined": Dual(refined=True),
    "lipschitz, spectral": Lipschitz("spectral"),
    "lipschitz, sum": Lipschitz("sum"),
    "lipschitz, local": Lipschitz("local"),
    "relaxation": LinearRelaxation(),
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
    weights, biases, outputs = map(torch.from_numpy, (W, b, v))
    network = TwoLayer(weights, biases, outputs, torch.tensor(float(c), dtype=torch.float64))
    points = torch.from_numpy(X)
    y = torch.where(network.logits(points) >= 0, 1.0, -1.0).double()
    y[-1] = -y[-1]
    return network, Data(points, y)


def examine(seed: int) -> Tally:
    """One network: two methods in turn and a brute-force check of some examples."""
    rng = np.random.default_rng(seed)
    network, data = draw(rng)
    tally = Tally(cases=len(data), right=int((network.margins(data.X, data.y) > 0).sum()))
    names, attack = list(METHODS), KnownFlips(MinimumNorm(starts=6).run(network, data).perturbations)
    for name in {"dual", names[1 + seed % (len(names) - 1)]}:
        try:
            bounds = METHODS[name].bound(network, data, attack=attack, cap=1e3)
        except Contradiction as contradiction:
            tally.violations.append(f"seed {seed}, {name}: {contradiction}")
            continue
        tally.violations += [f"seed {seed}, {name}: {flip}" for flip in _undercut(network, data, bounds, rng)]
        tally.asked[name] += tally.right
        tally.zero[name] += int(((bounds.lower == 0) & (network.margins(data.X, data.y) > 0)).sum())
        if name == "exact":
            _compare(network, data, bounds, tally, seed)
    return tally


def _undercut(network: TwoLayer, data: Data, bounds: RadiusBounds, rng: np.random.Generator) -> list[str]:
    """Flips along random rays below the certified radius, if a margin below zero is measured there."""
    problems = []
    for _ in range(4):
        directions = torch.from_numpy(rng.normal(size=tuple(data.X.shape)))
        directions /= directions.norm(dim=1, keepdim=True)
        flips = first_flip(network, data.X, data.y, directions)
        for row in (flips < bounds.lower * (1 - 1e-9)).nonzero()[:, 0].tolist():
            near, far = float(flips[row]), float(bounds.lower[row])
            steps = near + (far - near) * torch.logspace(-12, 0, 1001, dtype=torch.float64)[:-1, None]
            margins = network.margins(data.X[row] + steps * directions[row], data.y[row].expand(len(steps)))
            if margins.min() < 0:
                problems.append(f"example {row} flips at {near!r}, certified to {far!r}, margin {float(margins.min())}")
    return problems


def _compare(network: TwoLayer, data: Data, bounds: RadiusBounds, tally: Tally, seed: int) -> None:
    """Exact against every activation region, on the first few examples."""
    W, b, v = network.W.numpy(), network.b.numpy(), network.v.numpy()
    tally.closed += int((bounds.exact & (network.margins(data.X, data.y) > 0)).sum())
    if not 0.1 < float(network.W.norm()) < 100 or not 0.01 < float(network.v.norm()) < 100:
        return  # the reference's tolerances are absolute
    for row in range(4):
        radius = brute_force_radius(W, b, v, float(network.c), data.X[row].numpy(), float(data.y[row]))
        lower, upper = float(bounds.lower[row]), float(bounds.upper[row])
        if not np.isfinite(radius) and not bounds.exact[row]:
            tally.touching += 1
            continue
        tally.brute += 1
        if not bounds.exact[row]:  # time was up, on a busy machine earlier: the enclosure holds all the same
            off = max(lower - radius, radius - upper, 0.0)
        else:
            off = max(abs(lower - radius), radius - upper) if radius <= bounds.cap else max(bounds.cap - lower, 0.0)
        off /= max(1.0, min(radius, bounds.cap))
        tally.worst = max(tally.worst, off)
        if off > 1e-7:
            tally.violations.append(
                f"seed {seed}, exact, example {row}: [{lower!r}, {upper!r}] and brute force {radius!r}"
            )
