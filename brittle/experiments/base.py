"""An experiment is one figure of one paper: a grid of independent cells, and what the figure claims."""

import hashlib
import inspect
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from brittle import __version__
from brittle.common.errors import require
from brittle.common.result import Result

PRESETS = ("smoke", "quick", "full")
Params = Mapping[str, Any]  # plain JSON values: one point of the grid
Point = dict[str, Any]  # plain JSON values: what was measured there


@dataclass(frozen=True)
class Claim(Result):
    """What the paper says, what was measured, and whether it holds (None: not decided by this run)."""

    text: str
    measured: str
    holds: bool | None


@dataclass(frozen=True)
class FigureResult(Result):
    """Everything that a figure shows: one point per finished cell, and its claims."""

    id: str
    title: str
    preset: str
    points: tuple[Point, ...]
    claims: tuple[Claim, ...]
    seconds: float  # of computing, summed over cells

    @property
    def holds(self) -> bool:
        return all(claim.holds is not False for claim in self.claims)


class Experiment(ABC):
    """A figure. `grid` says which cells a preset has, `measure` runs one of them, `judge` states the claims."""

    id: ClassVar[str]  # paper/figure
    title: ClassVar[str]

    @abstractmethod
    def grid(self, preset: str) -> list[Params]:
        """The parameters of every cell, seeds included."""

    @abstractmethod
    def measure(self, params: Params) -> Point:
        """One cell, by itself: all randomness comes from the seed in its parameters."""

    @abstractmethod
    def judge(self, points: Sequence[Point]) -> list[Claim]:
        """The paper's claims beside what was measured."""

    def cost(self, params: Params) -> float:
        """Seconds that a cell takes on one ordinary core, roughly."""
        return 1.0

    def cells(self, preset: str) -> list["Cell"]:
        require(preset in PRESETS, f"preset is {preset!r}; it must be one of {', '.join(PRESETS)}")
        return [Cell(self.id, dict(params), source_hash(self)) for params in self.grid(preset)]


@dataclass(frozen=True)
class Cell:
    """One point of a grid, named by a hash of its parameters and of the code that measures it."""

    experiment: str
    params: Params
    code: str

    @property
    def key(self) -> str:
        text = json.dumps([self.experiment, self.params, self.code], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def source_hash(experiment: Experiment) -> str:
    """Changes when the experiment's file or brittle's version does."""
    source = inspect.getsource(sys.modules[type(experiment).__module__])
    return hashlib.sha256(f"{__version__}\n{source}".encode()).hexdigest()[:16]
