"""Networks of any depth, with convolutions, several classes and a box, against enumeration and rational arithmetic.

Every kind is a row of `KINDS` and is counted by itself. Small networks are judged by the enumeration of all activation
regions; those at far scales, which no enumeration in floats can judge, by exact margins along rays at the claim.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from brittle.attacks.base import Bounds as Box
from brittle.certificates import Certificate, Contradiction, Dual, Exact, LinearRelaxation, Lipschitz, RadiusBounds
from brittle.data import Data
from brittle.networks import Affine, Convolution, Deep, Dense
from tests.certificates.rational import exact_margin
from tests.certificates.reference import brute_force_deep_radius, brute_force_strict_radius

Array = NDArray[np.float64]
CAP = 3.0
POINTS = 2  # examples per network
RAYS = 6  # at far scales
SHELLS = (1 - 2.0**-30, 0.9, 0.5, 1e-3)  # shares of a claim at which a network at far scales is evaluated
SLACK = 1e-7  # of the enumeration
FAR = 40  # powers of two up to which a layer is scaled
METHODS: tuple[Certificate, ...] = (
    Exact(gap=1e-4, seconds=2.0, nodes=200),
    Dual(),
    Dual(refined=True),
    LinearRelaxation(),
    Lipschitz("spectral"),
)


@dataclass(frozen=True)
class Kind:
    """How many hidden layers and outputs; the shape, the box and the scale of its networks."""

    hidden: int
    outputs: int = 1
    picture: bool = False  # a convolution first
    box: bool = False
    degenerate: str = ""
    far: bool = False


KINDS = {
    "depth 3": Kind(2),
    "depth 4": Kind(3),
    "depth 5": Kind(4),
    "depth 3, classes": Kind(2, 3),
    "depth 4, classes": Kind(3, 3),
    "convolution": Kind(2, picture=True),
    "convolution, classes": Kind(2, 3, picture=True),
    "box": Kind(2, box=True),
    "box, classes": Kind(2, 3, box=True),
    "box, convolution": Kind(2, picture=True, box=True),
    "whole numbers": Kind(2, 3, degenerate="whole numbers"),
    "repeated neurons": Kind(3, degenerate="repeated neurons"),
    "zero weights": Kind(2, 3, degenerate="zero weights"),
    "nearly parallel": Kind(2, degenerate="nearly parallel"),
    "dead layer": Kind(3, degenerate="dead layer"),
    "far scales, depth 3": Kind(2, 3, far=True),
    "far scales, depth 5": Kind(4, far=True),
    "far scales, convolution": Kind(2, picture=True, far=True),
}


@dataclass
class LayeredTally:
    """Cases by kind, by outcome, and what is wrong; `lost` sums 1 - lower/radius where an exact method closed."""

    cases: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    lost: float = 0.0
    closed: int = 0

    def add(self, other: "LayeredTally") -> None:
        self.cases += other.cases
        self.outcomes += other.outcomes
        self.violations += other.violations
        self.lost, self.closed = self.lost + other.lost, self.closed + other.closed


def draw(rng: np.random.Generator, kind: Kind) -> tuple[Deep, Data, Box | None]:
    """A network of at most 12 hidden neurons, and examples that it classifies as they are labelled."""
    widest = {2: 5, 3: 4, 4: 3}[kind.hidden]
    maps = [_picture(rng)] if kind.picture else []
    inputs = maps[0].outputs if maps else int(rng.integers(2, 5))
    hidden = rng.integers(2, widest + 1, size=kind.hidden - len(maps)).tolist()
    widths = [inputs, *hidden, kind.outputs]
    weights = [1.5 * rng.normal(size=(b, a)) / a**0.5 for a, b in pairwise(widths)]
    biases = [0.3 * rng.normal(size=b) for b in widths[1:]]
    X = rng.normal(size=(POINTS, maps[0].inputs if maps else inputs))
    _degenerate(kind.degenerate, weights, biases, X)
    if kind.far:
        for W, b in zip(weights, biases, strict=True):
            k, j = rng.integers(-FAR, FAR + 1, size=2)
            W *= 2.0**k
            b *= 2.0**j
    layers: list[Affine] = [*maps, *(Dense(*map(torch.from_numpy, each)) for each in zip(weights, biases, strict=True))]
    network, points = Deep(tuple(layers)), torch.from_numpy(np.clip(X, -1, 1) if kind.box else X)
    logits = network.logits(points)
    y = torch.where(logits > 0, 1.0, -1.0).double() if kind.outputs == 1 else logits.argmax(1)
    return network, Data(points, y), (-1.0, 1.0) if kind.box else None


def _picture(rng: np.random.Generator) -> Convolution:
    """On pictures of 2 x 3 pixels, with or without padding, to at most 4 numbers."""
    if rng.random() < 0.5:
        kernel, options = rng.normal(size=(2, 1, 2, 2)), {}
    else:
        kernel, options = rng.normal(size=(1, 1, 2, 3)), {"padding": (1, 1), "stride": (1, 2)}
    numbers = torch.from_numpy(kernel), torch.from_numpy(0.3 * rng.normal(size=len(kernel)))
    return Convolution(*numbers, (1, 2, 3), **options)  # type: ignore[arg-type]


def _degenerate(shape: str, weights: list[Array], biases: list[Array], X: Array) -> None:
    if shape == "whole numbers":
        for each in (*weights, *biases, X):
            each[:] = each.round()
    elif shape == "zero weights":
        weights[0][0], weights[1][-1], biases[1][-1] = 0, 0, 0
    elif shape == "dead layer":
        biases[1][:] = -np.abs(biases[1]) - 10
    elif shape:
        slightly = 1e-9 if shape == "nearly parallel" else 0.0
        for W, b in zip(weights[:-1], biases[:-1], strict=True):
            W[-1], b[-1] = W[0] * (1 + slightly) + 0.1 * slightly, b[0]


def examine(seed: int) -> LayeredTally:
    """One network by one method; kinds and methods take turns."""
    name = list(KINDS)[seed % len(KINDS)]
    kind, rng, method = KINDS[name], np.random.default_rng(seed), METHODS[seed // len(KINDS) % len(METHODS)]
    network, data, box = draw(rng, kind)
    tally = LayeredTally(Counter({name: len(data)}))
    boxed = Dual(boxed=True) if box is not None and isinstance(method, Dual) else method
    try:
        found = boxed.bound(network, data, cap=CAP, bounds=box)
    except Contradiction as contradiction:
        tally.violations.append(f"seed {seed}, {name}: {contradiction}")
        return tally
    judge: Callable[..., float | None] = _along_rays if kind.far else _enumerated
    for row in range(len(data)):
        tally.outcomes[f"{boxed.name}: {found.status[row]}"] += 1
        _judge(
            tally,
            f"seed {seed}, {name}, {boxed.name}, example {row}",
            found,
            row,
            judge(network, data, row, found, box),
        )
    return tally


def _judge(tally: LayeredTally, case: str, found: RadiusBounds, row: int, radius: float | None) -> None:
    lower, upper = float(found.lower[row]), float(found.upper[row])
    if radius is None:
        return
    if lower > min(radius, CAP) * (1 + SLACK) or upper < radius * (1 - SLACK):
        tally.violations.append(f"{case}: [{lower!r}, {upper!r}], and the radius is {radius!r}")
    elif found.exact[row] and 0 < radius <= CAP:
        tally.closed, tally.lost = tally.closed + 1, tally.lost + max(0.0, 1 - lower / radius)


def _enumerated(network: Deep, data: Data, row: int, found: RadiusBounds, box: Box | None) -> float:
    """The radius itself. Lower bounds without a box hold in it too; flips are those inside it."""
    x, y = data.X[row].numpy(), data.y[row].item()
    if box is not None:
        right = float(network.margins(data.X[row][None], data.y[row][None])) > 0
        return brute_force_deep_radius(network, x, y, box) if right else 0.0
    weights, biases = ([each.numpy() for each in part] for part in (network.weights, network.biases))
    return brute_force_strict_radius(weights, biases, x, float(y), limit=CAP)


def _along_rays(network: Deep, data: Data, row: int, found: RadiusBounds, box: Box | None) -> float | None:
    """The length of a flip below the claim that is one in rational arithmetic; None where there is none."""
    x, y, claim = data.X[row].numpy(), data.y[row].item(), float(found.lower[row])
    if claim == 0:
        return None
    for direction in _rays(network, data, row):
        for share in SHELLS:
            step = [share * claim * float(each) for each in direction]
            if math.hypot(*step) < claim and exact_margin(network, _sum(x, step), y) < 0:
                return math.hypot(*step)
    return None


def _sum(x: Array, step: Sequence[float]) -> list[Any]:
    return [Fraction(float(start)) + Fraction(each) for start, each in zip(x, step, strict=True)]


def _rays(network: Deep, data: Data, row: int) -> Array:
    """Unit vectors: the way against the gradient, the way of random numbers."""
    rng = np.random.default_rng(row)
    ways = rng.normal(size=(RAYS, data.columns))
    down = -network.margin_gradients(data.X[row][None], data.y[row][None]).numpy()
    ways = np.vstack([down / max(float(np.abs(down).max()), 1e-300), ways])
    lengths = np.linalg.norm(ways, axis=1, keepdims=True)
    return np.asarray(ways / np.where(lengths > 0, lengths, 1.0))
