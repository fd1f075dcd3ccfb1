"""An audit to walk through: one network on its data, one example at a time."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Generator, Tensor

from brittle.attacks import DIRECTIONS, GradientStep, MinimumNorm, Restriction, Universal, first_flip
from brittle.attacks.pieces import is_piecewise_linear, pieces
from brittle.auditing import certifiable
from brittle.certificates import Certificate, Dual, Exact
from brittle.common.errors import InputError, require
from brittle.data import Data
from brittle.explorer import requests
from brittle.explorer.plane import describe_flips
from brittle.explorer.requests import Clock, JsonQuery
from brittle.geometry import Basis, nearest_rivals, unit_rows
from brittle.networks import Network

SAMPLES = 400
MOST_KINKS = 20_000


@dataclass(frozen=True)
class Profile:
    """The margin at `sizes` t, `values`; linear between them where `exact`. `kinks` counts the bends."""

    sizes: list[float]
    values: list[float]
    exact: bool
    kinks: int


def profile(network: Network, x: Tensor, y: Tensor, direction: Tensor, limit: float) -> Profile:
    """From x along the unit vector `direction`, up to the length `limit`."""
    if not is_piecewise_linear(network):
        return _sampled(network, x, y, direction, limit)
    far = torch.tensor([limit], dtype=torch.float64)
    found = pieces(network, x[None], y[None], direction[None], far)
    if found.start.shape[1] > MOST_KINKS:
        return _sampled(network, x, y, direction, limit)
    sizes, values = [0.0], [float(found.value[0, 0].min())]
    for start, stop, value, slope in zip(
        found.start[0].tolist(), found.stop[0].tolist(), found.value[0].tolist(), found.slope[0].tolist(), strict=True
    ):
        for t, height in _lowest(stop - start, value, slope):
            sizes.append(start + t)
            values.append(height)
    kept = _bends(sizes, values)
    return Profile([sizes[k] for k in kept], [values[k] for k in kept], True, max(0, len(kept) - 2))


def _lowest(length: float, value: list[float], slope: list[float]) -> list[tuple[float, float]]:
    """The corners of the least of some lines on (0, length], its right end included."""
    corners: list[tuple[float, float]] = []
    t, lines = 0.0, list(zip(value, slope, strict=True))
    if length <= 0:
        return []
    here = min(lines, key=lambda line: (line[0], line[1]))
    while True:
        crossings = [((v - here[0]) / (here[1] - s), v, s) for v, s in lines if s < here[1]]
        later = [each for each in crossings if t < each[0] < length]
        if not later:
            return [*corners, (length, here[0] + here[1] * length)]
        t, *line = min(later, key=lambda each: (each[0], each[2]))
        here = (line[0], line[1])
        corners.append((t, here[0] + here[1] * t))


def _bends(sizes: list[float], values: list[float]) -> list[int]:
    """The first and last point, and those between where the slope changes."""
    kept = [0]
    for place in range(1, len(sizes) - 1):
        before, after = sizes[place] - sizes[kept[-1]], sizes[place + 1] - sizes[place]
        if before <= 0 or after <= 0:
            continue
        bend = (values[place + 1] - values[place]) / after - (values[place] - values[kept[-1]]) / before
        if abs(bend) * min(before, after) > 1e-12 * max(1e-300, max(map(abs, values[place - 1 : place + 2]))):
            kept.append(place)
    return [*kept, len(sizes) - 1]


def _sampled(network: Network, x: Tensor, y: Tensor, direction: Tensor, limit: float) -> Profile:
    steps = torch.linspace(0, limit, SAMPLES, dtype=torch.float64)
    margins = network.margins(x + steps[:, None] * direction, y.expand(SAMPLES)).double()
    return Profile(steps.tolist(), [value if math.isfinite(value) else 0.0 for value in margins.tolist()], False, 0)


LISTED = 200  # examples
SMALL, MEDIUM = 5_000_000, 50_000_000  # products of a pass: the finer picture, the coarser one
GRIDS = {SMALL: 61, MEDIUM: 41}
COARSEST = 25
REMEMBERED = 32  # examples
SPANNED = 2**24  # entries of the examples from which their span is not looked for
WAYS = ("flip", "on", "off", "gradient", "rival", "example", "universal", "random")
MOVED = 8  # features
WALK = """\
import torch

import brittle as bt

{source}
one = data.take(torch.tensor([{row}]))
rng = torch.Generator().manual_seed(0)
{proof}
"""


@dataclass(frozen=True, eq=False)
class NetworkWalk:
    """The `network` and `data` that were named, called `title`; `source` are the Python lines that load both.

    What was `found` of the last few examples is remembered.
    """

    network: Network
    data: Data
    title: str
    source: str = ""
    found: dict[tuple[int, str], Any] = field(default_factory=dict)

    @cached_property
    def listed(self) -> Data:
        """The examples that may be chosen: the first ones."""
        return self.data.take(torch.arange(min(LISTED, len(self.data))))

    @cached_property
    def basis(self) -> Tensor | None:
        """Of the subspace of the data; None where they fill the space, or are too many to find out."""
        known = self.data.truth.basis
        if known is None and self.data.X.numel() <= SPANNED:
            known = Basis.spanning(self.data.X).vectors
        return known if known is not None and known.shape[1] < self.data.columns else None

    @cached_property
    def proof(self) -> Certificate | None:
        """Branch and bound where it is quick, the dual bound in larger networks; None for foreign modules."""
        if not certifiable(self.network):
            return None
        quick = sum(self.network.widths) <= 1500
        return Exact(seconds=4.0, nodes=200) if quick else Dual()

    def about(self) -> dict[str, Any]:
        """What the walk is about, with the examples in a list: margins, and how far one gradient step goes."""
        step = GradientStep().run(self.network, self.listed)
        predicted = self.network.predict(self.listed.X)
        truth = self.data.truth
        return {
            "title": self.title,
            "network": self.network.description,
            "examples": len(self.data),
            "columns": self.data.columns,
            "binary": self.data.binary,
            "image": truth.image,
            "names": truth.names,
            "codimension": None if self.basis is None else self.data.columns - self.basis.shape[1],
            "certificate": None if self.proof is None else self.proof.name,
            "labels": self.listed.y,
            "predicted": predicted,
            "margins": self.network.margins(self.listed.X, self.listed.y),
            "steps": torch.where(step.success, step.norms, torch.inf),
            "pixels": requests.pack_float32(self.listed.X) if self.data.columns <= 3072 else None,
            "directions": self._directions(),
        }

    def example(self, asked: JsonQuery) -> dict[str, Any]:
        """Everything about one example: enclosure, shortest flips anywhere, on and off the subspace, and its rival."""
        row = self._row(asked)
        x, y = self._one(row)
        flips = {way: self._flip(row, way) for way in ("flip", *(("on", "off") if self.basis is not None else ()))}
        rival, distance = self._rival(row)
        bounds = self._bounds(row)
        return {
            "row": row,
            "label": y[0],
            "logits": self.network.logits(x).reshape(-1),
            "margin": self.network.margins(x, y)[0],
            "norm": x.norm(),
            "lower": None if bounds is None else bounds.lower[0],
            "upper": flips["flip"].norm() if bool(flips["flip"].any()) else None,
            "status": None if bounds is None else bounds.status[0].value,
            "lengths": {way: flip.norm() if bool(flip.any()) else None for way, flip in flips.items()},
            "flips": {way: requests.pack_float32(flip) for way, flip in flips.items()},
            "becomes": self.network.predict(x + flips["flip"])[0],
            "rival": rival,
            "rival_distance": distance,
            "moved": self._moved(x[0], flips["flip"]),
        }

    def ray(self, asked: JsonQuery) -> dict[str, Any]:
        """The margin along a ray from one example, with its kinks and its first flip."""
        row = self._row(asked)
        x, y = self._one(row)
        direction = self._direction(row, asked, "way")
        first = float(first_flip(self.network, x, y, direction)[0])
        limit = asked.number("limit", 0.0, 0, 1e6) or 2 * self._reach(row, first)
        found = profile(self.network.to(torch.float64), x[0], y[0], direction, limit)
        return {"row": row, "limit": limit, "first_flip": first, **vars(found)}

    def slice(self, asked: JsonQuery) -> dict[str, Any]:
        """Margins in the plane of two ways through one example, and where both lead to a flip."""
        row = self._row(asked)
        x, y = self._one(row)
        first = self._direction(row, asked, "way")
        second = self._direction(row, asked, "across", "rival")
        second = second - (second @ first) * first
        if float(second.norm()) < 1e-9:  # the same way twice: any other will do
            second = _random(self.data.columns, 1)
            second = second - (second @ first) * first
        second = second / second.norm()
        half = asked.number("half", 0.0, 0, 1e6) or self._reach(row)
        count = next((grid for most, grid in GRIDS.items() if self.network.products <= most), COARSEST)
        steps = torch.linspace(-half, half, count, dtype=torch.float64)
        across, along = (each.reshape(-1, 1) for each in torch.meshgrid(steps, steps, indexing="ij"))
        margins = self.network.margins(x + along * first + across * second, y.expand(count * count)).double()
        others = self.listed.X - x
        return {
            "row": row,
            "half": half,
            "margins": requests.pack_float32(margins.view(count, count)),
            "flip": [float(self._flip(row, "flip") @ way) for way in (first, second)],
            "others": requests.pack_float32(torch.stack([others @ first, others @ second], 1)),
        }

    def universal(self, asked: JsonQuery) -> dict[str, Any]:
        """One direction for all listed examples, and where along it each is flipped."""
        found = self._universal(asked.word("direction", self._directions(), self._directions()[0]))
        return {
            "smallest": found.smallest,
            "z": requests.pack_float32(found.z),
            "count": int(found.considered.sum()),
            **describe_flips(found.considered, found.intervals),
        }

    def python(self, asked: JsonQuery) -> dict[str, Any]:
        """The Python lines for one example."""
        return {"lines": WALK.format(source=self.source, row=self._row(asked), proof=self._proof_text())}

    def _proof_text(self) -> str:
        if self.proof is None:
            return "found = bt.attacks.MinimumNorm().run(network, one, rng=rng)\nprint(found.norms)"
        proof = "Exact(seconds=4.0, nodes=200)" if isinstance(self.proof, Exact) else "Dual()"
        return f"bounds = bt.certificates.{proof}.bound(network, one, rng=rng)\nprint(bounds.lower, bounds.upper)"

    def _directions(self) -> tuple[str, ...]:
        return ("examples", "gradients") if self.data.binary else ("falling",)

    def _universal(self, name: str) -> Any:
        attack = Universal(direction=DIRECTIONS[name], signed=self.data.binary)
        return self._remember(-1, name, lambda: attack.run(self.network, self.listed))

    def _row(self, asked: JsonQuery) -> int:
        return asked.whole("row", 0, 0, len(self.listed) - 1)

    def _one(self, row: int) -> tuple[Tensor, Tensor]:
        return self.listed.X[row : row + 1], self.listed.y[row : row + 1]

    def _remember(self, row: int, what: str, work: Any) -> Any:
        """What was found of the last few examples is not looked for again."""
        key = (row, what)
        if key not in self.found:
            value = work()
            while len(self.found) >= 8 * REMEMBERED:
                self.found.pop(next(iter(self.found)))
            self.found[key] = value
        return self.found[key]

    def _bounds(self, row: int) -> Any:
        proof = self.proof
        if proof is None:
            return None
        one = self.listed.take(torch.tensor([row]))
        return self._remember(
            row, "bounds", lambda: proof.bound(self.network, one, rng=Generator().manual_seed(0), watch=Clock())
        )

    def _flip(self, row: int, way: str) -> Tensor:
        """The shortest flip that is known, anywhere or on or off the subspace; zero where there is none."""
        bounds = self._bounds(row) if way == "flip" else None
        if bounds is not None:
            known: Tensor = bounds.flips[0]
            return known
        side = Restriction(self.basis, off=way == "off") if way in ("on", "off") else Restriction()
        one, rng = self.listed.take(torch.tensor([row])), Generator().manual_seed(0)
        attack = MinimumNorm(subspace=side)
        found = self._remember(row, way, lambda: attack.run(self.network, one, rng=rng))
        return torch.where(found.success[0], found.perturbations[0], 0.0)

    def _rival(self, row: int) -> tuple[int | None, float | None]:
        """The nearest listed example of another label, and how far it is."""
        x, y = self._one(row)
        try:
            distance, index = nearest_rivals(x, y, self.listed.X, self.listed.y)
        except InputError:
            return None, None
        return int(index[0]), float(distance[0])

    def _direction(self, row: int, asked: JsonQuery, name: str, default: str = "flip") -> Tensor:
        """A unit vector: along a flip, a gradient, to another example, or at random."""
        way = asked.word(name, WAYS, default)
        x, y = self._one(row)
        if way in ("flip", "on", "off"):
            require(way == "flip" or self.basis is not None, f"{name} is {way!r}, and these data fill their space")
            vector = self._flip(row, way)
        elif way == "gradient":
            vector = -self.network.margin_gradients(x, y)[0].double()
        elif way == "universal":
            z = self._universal(self._directions()[0]).z
            vector = -y[0] * z if self.data.binary else z
        elif way == "random":
            vector = _random(self.data.columns, asked.whole("seed", 0, 0, 2**31))
        else:
            rival = self._rival(row)[0]
            other = asked.whole("example", 0, 0, len(self.listed) - 1) if way == "example" else rival
            vector = _random(self.data.columns, 1) if other is None else self.listed.X[other] - x[0]
        if not bool(vector.any()):
            vector = -self.network.margin_gradients(x, y)[0].double()
        require(bool(vector.any()), f"there is no direction {way!r} from this example")
        return unit_rows(vector[None])[0]

    def _reach(self, row: int, first: float = 0.0) -> float:
        """How far a picture goes: twice as far as the flips, else as far as the rival."""
        known = [float(self._flip(row, "flip").norm()), first]
        known = [each for each in known if 0 < each < float("inf")]
        return 2 * max(known) if known else float(self._rival(row)[1] or 1.0)

    def _moved(self, x: Tensor, flip: Tensor) -> list[dict[str, float]]:
        """The features that the flip moves most."""
        order = flip.abs().argsort(descending=True)[:MOVED].tolist()
        return [{"feature": k, "from": float(x[k]), "by": float(flip[k])} for k in order if float(flip[k]) != 0]


def _random(columns: int, seed: int) -> Tensor:
    vector = torch.randn(columns, generator=Generator().manual_seed(seed), dtype=torch.float64)
    unit: Tensor = vector / vector.norm()
    return unit
