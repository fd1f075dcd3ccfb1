"""Pictures for figures: MNIST and CIFAR-10 where their files are, scikit-learn's digits for smoke runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from brittle.data import Cifar10, Data, Digits, ImageSet, Mnist, downsample, holding, unit_norm
from brittle.experiments.cell import Cell, Point

KINDS: dict[str, type[ImageSet]] = {"digits": Digits, "mnist": Mnist, "cifar10": Cifar10}
NAMES = {"digits": "scikit-learn's digits", "mnist": "MNIST", "cifar10": "CIFAR-10"}
HELD = 60  # digits have no test set of their own


@lru_cache(maxsize=4)
def zeros_and_ones(name: str, side: int, unit: bool) -> Data:
    """The digits 0 and 1 as -1 and +1, side × side pixels, divided by their norms where `unit`; with test examples."""
    given = KINDS[name](classes=(0, 1))
    rng = torch.Generator().manual_seed(0)
    data = given.sample(None, rng, test=HELD if name == "digits" else None)
    image = data.truth.image
    assert image is not None
    data = data if image[-1] == side else downsample(data, side)
    return unit_norm(data) if unit else data


def present(name: str) -> bool:
    """Whether the data set's files are there, whole or in part."""
    if name == "digits":
        return True
    held = holding(name)
    return held.complete or bool(held.forms)


def or_missing(name: str, grid: Sequence[Cell]) -> Sequence[Cell]:
    """The grid, or one cell that says that the data are not there and what the grid would take with them."""
    if present(name):
        return grid
    return [MissingData(name, True, round(sum(cell.cost() for cell in grid), 2), 0)]


@dataclass(frozen=True)
class MissingData(Cell):
    """In place of cells whose data are not there. It measures nothing; once they have come nobody asks for it."""

    family = "data/missing"
    data: str  # the name of the data set
    missing: bool  # always True: the point of a table says so too
    would_take: float  # seconds of the cells that it stands for
    seed: int  # of no meaning here

    def measure(self) -> Point:
        return {"reached": False, "why": advice(self.data)}

    def cost(self) -> float:
        return self.would_take


def advice(name: str) -> str:
    """What to do where a data set is missing."""
    return f"{NAMES[name]} is not there; run: brittle data fetch {name}"
