"""Networks at scales from 2^-1000 to 2^1000: no claim may pass a flip that is one in rational arithmetic."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from brittle.attacks import Ray
from brittle.certificates import Certificate, Contradiction, Dual, Exact, LinearRelaxation, Lipschitz
from brittle.common.errors import InputError
from brittle.data import Data
from brittle.networks import Deep, TwoLayer
from tests.certificates.rational import exact_margin, first_flip_along

Array = NDArray[np.float64]

NETWORKS = 10  # in a batch
POINTS = 4  # examples per network
ERRORS = (Contradiction, ArithmeticError, AssertionError, ValueError, RuntimeError)  # none may reach a user
LARGEST = 1.7e308  # of a drawn number
DIRECTIONS = 3  # at random, beside the neurons' own and the axes
SHELLS = (1 - 2.0**-30, 0.9, 0.5, 0.1, 1e-3, 1e-9)  # shares of a deep network's claim at which it is evaluated
DEEP: dict[str, Certificate] = {
    "lipschitz, spectral": Lipschitz("spectral"),
    "relaxation": LinearRelaxation(),
    "dual": Dual(),
    "dual, refined": Dual(refined=True),
    "exact": Exact(gap=1e-3, seconds=0.2),
}
TWO: dict[str, Certificate] = DEEP | {
    "lipschitz, sum": Lipschitz("sum"),
    "lipschitz, local": Lipschitz("local"),
    "exact": Exact(gap=1e-6, seconds=0.2),
}


@dataclass
class FarTally:
    """What became of the examples; a network that must be refused counts as one."""

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, other: "FarTally") -> None:
        self.cases += other.cases
        self.outcomes += other.outcomes
        self.violations += other.violations


Parts = dict[str, Array]


def _powers(rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Any:
    return rng.integers(-1000, 1001, size=shape)


def _times(values: Array, exponents: Any) -> Array:
    """values·2^exponents, held within the finite floats."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.clip(np.ldexp(values, exponents), -LARGEST, LARGEST))


def everything(parts: Parts, rng: np.random.Generator) -> None:
    """W, b, v, c and x by a power each."""
    for name in parts:
        parts[name] = _times(parts[name], _powers(rng))


def one_part(parts: Parts, rng: np.random.Generator) -> None:
    name = rng.choice(list(parts))
    parts[name] = _times(parts[name], _powers(rng))


def one_entry(parts: Parts, rng: np.random.Generator) -> None:
    flat = parts[rng.choice(list(parts))].reshape(-1)
    place = rng.integers(len(flat))
    flat[place] = _times(flat[place], _powers(rng))


def neurons(parts: Parts, rng: np.random.Generator) -> None:
    """Each neuron in a unit of its own, which changes no margin but for underflow."""
    k = rng.integers(-700, 701, size=len(parts["b"]))
    parts["W"], parts["b"], parts["v"] = _times(parts["W"], k[:, None]), _times(parts["b"], k), _times(parts["v"], -k)


def inputs(parts: Parts, rng: np.random.Generator) -> None:
    """Another unit of length, with or without the weights to match: radii grow in proportion."""
    k = _powers(rng)
    for name in ("X", "b", "c"):
        parts[name] = _times(parts[name], k)
    if rng.random() < 0.5:
        share = rng.integers(-1000, 1001)
        parts["W"], parts["b"], parts["c"] = (_times(parts[name], share) for name in ("W", "b", "c"))


def outputs(parts: Parts, rng: np.random.Generator) -> None:
    k = _powers(rng)
    parts["v"], parts["c"] = _times(parts["v"], k), _times(parts["c"], k)


def hardly_different_classes(parts: Parts, rng: np.random.Generator) -> None:
    """The first rows of the output differ by a tiny share of the last."""
    k = int(rng.integers(-1060, -20))
    parts["v"][:-1], parts["c"][:-1] = _times(parts["v"][:-1], k), _times(parts["c"][:-1], k)
    if rng.random() < 0.3:
        for name in ("v", "c"):
            parts[name][0] += np.clip(parts[name][-1], -LARGEST / 1e3, LARGEST / 1e3) - parts[name][0] / 2


def nearly_repeated(parts: Parts, rng: np.random.Generator) -> None:
    """Two neurons that cancel but for a bit, or for a bias that is lost beside the weights."""
    W, b, v = parts["W"], parts["b"], parts["v"]
    W[-1], v[:, -1] = W[0], -v[:, 0]
    b[-1] = rng.choice([b[0], np.nextafter(b[0], np.inf), 0.0])
    if rng.random() < 0.5:
        W[[0, -1]] = _times(W[[0, -1]], rng.integers(0, 700))
        b[0], b[-1] = _times(np.array([1.0, 2.0]), -rng.integers(0, 1000))


def denormal(parts: Parts, rng: np.random.Generator) -> None:
    name = rng.choice(list(parts))
    parts[name] = _times(parts[name], -1065)


def zeros(parts: Parts, rng: np.random.Generator) -> None:
    for name in parts:
        parts[name] = parts[name] * (rng.random(parts[name].shape) < 0.6)


def unseen(parts: Parts, rng: np.random.Generator) -> None:
    """A feature that no neuron sees, and which is far larger than everything that they do see."""
    inputs(parts, rng)
    parts["W"][:, -1], parts["X"][:, -1] = 0.0, _times(np.array(1.0), rng.integers(-100, 101))


CHANGES: tuple[Callable[[Parts, np.random.Generator], None], ...] = (
    everything,
    one_part,
    one_entry,
    neurons,
    inputs,
    outputs,
    hardly_different_classes,
    nearly_repeated,
    denormal,
    zeros,
    unseen,
)


def draw(rng: np.random.Generator) -> tuple[TwoLayer | Deep, Array]:
    """A network of at most 5 neurons in at most 3 dimensions after one to three changes of scale, and points."""
    width, dim, classes = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))
    shapes = {"W": (width, dim), "b": (width,), "v": (classes, width), "c": (classes,), "X": (POINTS, dim)}
    parts = {name: (rng.normal(size=shape) * 64).round() / 64 for name, shape in shapes.items()}
    parts["c"] = parts["c"] * rng.choice([0.0, 1.0])
    for change in rng.choice(len(CHANGES), size=rng.integers(1, 4), replace=False):
        CHANGES[change](parts, rng)
    W, b, v, c = (torch.from_numpy(parts[name]) for name in ("W", "b", "v", "c"))
    if rng.random() < 0.15:
        return _deeper(W, b, v, c, rng), parts["X"]
    return (TwoLayer(W, b, v[0], c[0]) if classes == 1 else Deep.dense((W, v), (b, c))), parts["X"]


def _deeper(W: torch.Tensor, b: torch.Tensor, v: torch.Tensor, c: torch.Tensor, rng: np.random.Generator) -> Deep:
    """With one or two layers in between, each at a scale of its own, and with neurons at theirs."""
    weights, biases = [W], [b]
    for _ in range(int(rng.integers(1, 3))):
        width, k = len(weights[-1]), rng.integers(-300, 301)
        own = rng.integers(-200, 201, size=width) * rng.integers(0, 2)
        middle = _times((rng.normal(size=(width, width)) * 16).round() / 16, k + own[:, None])
        weights.append(torch.from_numpy(middle))
        biases.append(torch.from_numpy(_times(rng.normal(size=width).round(), own)))
    return Deep.dense((*weights, v), (*biases, c))


def examine(seed: int) -> FarTally:
    """Some networks: two methods each against exact flips, and the refusal of weights that are not finite."""
    rng, tally = np.random.default_rng([seed, 7]), FarTally()
    for turn in range(NETWORKS):
        network, points = draw(rng)
        if rng.random() < 0.05:
            _must_be_refused(network, points, rng, tally, f"seed {seed}.{turn}")
        else:
            _certify(network, points, rng, tally, f"seed {seed}.{turn}")
    return tally


def _must_be_refused(
    network: TwoLayer | Deep, points: Array, rng: np.random.Generator, tally: FarTally, name: str
) -> None:
    tally.cases += POINTS
    parts = [network.W, network.b, network.v] if isinstance(network, TwoLayer) else [*network.weights, *network.biases]
    parts[rng.integers(len(parts))].view(-1)[0] = rng.choice([np.nan, np.inf, -np.inf])
    y = torch.ones(POINTS, dtype=torch.float64) if network.classes == 1 else torch.zeros(POINTS, dtype=torch.int64)
    for method in (TWO if _is_two_layer(network) else DEEP).values():
        try:
            method.bound(network, Data(torch.from_numpy(points), y))
            tally.violations.append(f"{name}: weights that are not finite are certified by {method}")
        except InputError:
            tally.outcomes["refused, not finite"] += 1
        except ERRORS as error:
            tally.violations.append(f"{name}: weights that are not finite raise {type(error).__name__}")


def _certify(network: TwoLayer | Deep, points: Array, rng: np.random.Generator, tally: FarTally, name: str) -> None:
    labels = [_label(network, x) for x in points]
    y = torch.tensor(labels, dtype=torch.float64 if network.classes == 1 else torch.int64)
    methods = TWO if _is_two_layer(network) else DEEP
    lower = np.zeros(len(points))
    attack, cap = Ray(), _cap(points, rng)
    for method in rng.choice(list(methods), size=2, replace=False):
        try:
            bounds = methods[method].bound(network, Data(torch.from_numpy(points), y), attack=attack, cap=cap)
        except ERRORS as error:
            tally.violations.append(f"{name}, {method}: {type(error).__name__}: {error}")
            continue
        lower = np.maximum(lower, bounds.lower.numpy())
        tally.outcomes.update("claimed" if claim > 0 else "claimed 0" for claim in bounds.lower.tolist())
    for row, (x, label) in enumerate(zip(points, labels, strict=True)):
        tally.cases += 1
        undercut = lower[row] > 0 and _undercut(network, x, label, float(lower[row]), rng)
        if undercut:
            tally.violations.append(f"{name}, example {row}: certified to {lower[row]!r}, {undercut}")


def _cap(points: Array, rng: np.random.Generator) -> float | None:
    """None, or some times the size of the points."""
    size = float(np.abs(points).max())
    return size * 50 if rng.random() < 0.5 and 1e-290 < size < 1e300 else None


def _label(network: TwoLayer | Deep, x: Array) -> int:
    """The label that is right in rational arithmetic."""
    if network.classes == 1:
        return 1 if exact_margin(network, x, 1) > 0 else -1
    return max(range(network.classes), key=lambda label: exact_margin(network, x, label))


def _undercut(network: TwoLayer | Deep, x: Array, y: int, radius: float, rng: np.random.Generator) -> str:
    """A flip below the radius, in words, or nothing."""
    if exact_margin(network, x, y) <= 0:
        return "and is no right answer"
    for u in _directions(network, len(x), rng):
        square = sum(Fraction(value) ** 2 for value in u)
        if _is_two_layer(network):
            t = first_flip_along(network, x, y, u)
            if t is not None and t**2 * square < Fraction(radius) ** 2:
                return f"flips at {float(t**2 * square / Fraction(radius) ** 2) ** 0.5!r} times that"
            continue
        for share in SHELLS:  # the length of u is rational only by luck: stay below
            t = Fraction(radius) * Fraction(share) / Fraction(float(np.linalg.norm(u)) * (1 + 1e-12))
            moved = [Fraction(float(start)) + t * Fraction(step) for start, step in zip(x, u, strict=True)]
            if exact_margin(network, moved, y) < 0:
                return f"flips at {share} times that"
    return ""


def _directions(network: TwoLayer | Deep, dim: int, rng: np.random.Generator) -> Iterator[list[float]]:
    """The axes, the neurons of the first layer, sums of them, and some at random, all of length about 1."""
    W = (network.W if isinstance(network, TwoLayer) else network.weights[0]).numpy()
    rows = W / np.maximum(np.abs(W).max(1, keepdims=True), 1e-300)
    sums = rng.integers(-1, 2, size=(DIRECTIONS, len(rows))) @ rows
    for u in np.concatenate([np.eye(dim), rows, sums, rng.normal(size=(DIRECTIONS, dim))]):
        short = (u * 2**20).round() / 2**20  # few digits: the fractions stay small
        if short.any():
            yield short.tolist()
            yield (-short).tolist()


def _is_two_layer(network: TwoLayer | Deep) -> bool:
    return isinstance(network, TwoLayer) or network.depth == 2
