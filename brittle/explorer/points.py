"""Points in the plane to play with: the presets of the laboratory, and points that somebody drew."""

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor

from brittle.common.errors import InputError, require
from brittle.data import Data, Line7, Sphere
from brittle.explorer.requests import JsonQuery

MOST = 60  # points in the plane
CROWDED = 12  # points of a circle with random labels: more are hardly to be told apart
FARTHEST = 100.0
DIGITS = 4  # of a coordinate: what is shown, sent and put into an address is the same number
Points = list[list[float]]  # rows x, y, label
Preset = Callable[[int, float, Generator], tuple[Tensor, Tensor]]


def moons(count: int, noise: float, rng: Generator) -> tuple[Tensor, Tensor]:
    """Two half circles, one inside the arms of the other."""
    y = signs(count)
    turn = math.pi * _ranks(y)
    upper = torch.stack([turn.cos(), turn.sin()], 1)
    lower = torch.stack([1 - turn.cos(), 0.5 - turn.sin()], 1)
    X = torch.where((y > 0)[:, None], upper, lower) - torch.tensor([0.5, 0.25], dtype=torch.float64)
    return 1.4 * X + _noise(count, noise, rng), y


def rings(count: int, noise: float, rng: Generator) -> tuple[Tensor, Tensor]:
    """One label round the other."""
    y = signs(count)
    turn = 2 * math.pi * _ranks(y, closed=True)
    length = torch.where(y > 0, 0.7, 1.9)
    return length[:, None] * torch.stack([turn.cos(), turn.sin()], 1) + _noise(count, noise, rng), y


def line(count: int, noise: float, rng: Generator) -> tuple[Tensor, Tensor]:
    """Seven points on a line, labels in turn (melamed2023 figure 2)."""
    data = Line7().sample()
    return 1.6 * data.X + _noise(len(data), noise, rng), data.y


def xor(count: int, noise: float, rng: Generator) -> tuple[Tensor, Tensor]:
    """Four corners, opposite ones alike."""
    corner = torch.arange(count) % 4
    first = torch.where((corner == 0) | (corner == 1), 1.2, -1.2)
    second = torch.where((corner == 0) | (corner == 2), 1.2, -1.2)
    X = torch.stack([first, second], 1).double() + _noise(count, max(noise, 0.02) * 2.5, rng)
    return X, torch.where((corner == 0) | (corner == 3), 1.0, -1.0).double()


def sphere(count: int, noise: float, rng: Generator) -> tuple[Tensor, Tensor]:
    """A slice of the sphere: random points of the circle of radius √2, random labels (vardi2022 6)."""
    data = Sphere(2).sample(min(count, CROWDED), rng)
    return data.X, data.y


def clusters(count: int, noise: float, rng: Generator) -> tuple[Tensor, Tensor]:
    """Noise round six means on a circle, labels in turn (frei2023)."""
    which = torch.arange(count) % 6
    turn = which.double() * math.pi / 3
    X = 1.7 * torch.stack([turn.cos(), turn.sin()], 1) + _noise(count, max(noise, 0.02) * 2, rng)
    return X, 1.0 - 2.0 * (which % 2).double()


PRESETS: dict[str, Preset] = {
    "moons": moons,
    "rings": rings,
    "line": line,
    "xor": xor,
    "sphere": sphere,
    "clusters": clusters,
}


def signs(count: int) -> Tensor:
    """+1 and -1 in turn."""
    return 1.0 - 2.0 * (torch.arange(count) % 2).double()


def _ranks(y: Tensor, closed: bool = False) -> Tensor:
    """How far each point is among those of its label, from 0 to 1; 1 is 0 again where `closed`."""
    rank = torch.zeros_like(y)
    for label in (1.0, -1.0):
        own = int((y == label).sum())
        rank[y == label] = torch.arange(own, dtype=torch.float64) / max(1, own - (not closed))
    return rank


def _noise(count: int, size: float, rng: Generator) -> Tensor:
    return size * torch.randn(count, 2, generator=rng, dtype=torch.float64)


def preset(asked: JsonQuery, own: Data | None = None) -> Points:
    """The points of a preset, or one's own."""
    name = asked.word("preset", (*PRESETS, *(("own",) if own is not None else ())), "moons")
    if name == "own" and own is not None:
        return rows(own)
    count = asked.whole("count", 20, 2, MOST)
    noise = asked.number("noise", 0.08, 0, 1)
    rng = Generator().manual_seed(asked.whole("seed", 0, 0, 2**31))
    return rows(Data(*PRESETS[name](count, noise, rng)))


def rows(data: Data) -> Points:
    """What is sent: rounded, so that an address can hold it."""
    pairs = zip(data.X.tolist(), data.y.tolist(), strict=True)
    return [[*(round(each, DIGITS) for each in x), y] for x, y in pairs]


def read_points(asked: JsonQuery) -> Data:
    """The points of a request."""
    found = asked.rows("points", 3, MOST, FARTHEST)
    require(len(found) >= 2, f"at least two points are needed; there {'is one' if len(found) == 1 else 'are none'}")
    labels = {row[2] for row in found}
    require(labels <= {-1.0, 1.0}, "the label of every point must be 1 or -1")
    require(len(labels) == 2, "all points have one label; a network has something to learn from two")
    places: dict[tuple[float, ...], float] = {}
    for x, y, label in found:
        if places.setdefault((x, y), label) != label:
            raise InputError(f"two points at ({x:g}, {y:g}) have different labels; move one of them")
    table = torch.tensor(found, dtype=torch.float64)
    return Data(table[:, :2].contiguous(), table[:, 2].contiguous())


def own_points(data: Data, path: object) -> Data:
    """Data of a file, as points that the laboratory takes."""
    require(data.columns == 2, f"{path}: has {data.columns} features; points in the plane have two")
    require(data.classes == 2, f"{path}: has {data.classes} classes; the laboratory takes two")
    require(len(data) <= MOST, f"{path}: has {len(data)} rows; the laboratory takes up to {MOST}")
    data = data.labelled_for(1)
    largest = float(data.X.abs().max())
    require(largest <= FARTHEST, f"{path}: has a feature of {largest:g}; the laboratory reaches to {FARTHEST:g}")
    return data
