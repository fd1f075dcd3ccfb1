"""An experiment is one figure of one paper: a grid of independent cells, and what the figure claims."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from brittle.common.errors import require
from brittle.common.result import Result
from brittle.experiments.code import code_hash
from brittle.experiments.picture import Picture

PRESETS = ("smoke", "quick", "full")
Params = Mapping[str, Any]  # plain JSON values: one point of the grid
Point = dict[str, Any]  # plain JSON values: the parameters of a cell and what was measured there
Seconds = Mapping[str, float]  # by what they were spent on; "cells" is all of it


@dataclass(frozen=True)
class Claim(Result):
    """What the paper says, what was measured, and whether it holds (None: not decided by this run)."""

    text: str
    measured: str
    holds: bool | None


@dataclass(frozen=True)
class FigureResult(Result):
    """Everything that a figure shows: one point per finished cell, and its claims.

    `unreached` holds the points whose training did not reach its stop: they are counted, and carry no claim. Two runs
    of the same code differ in `seconds` and in the `remarks` made of them, in nothing else.
    """

    id: str
    title: str
    preset: str
    points: tuple[Point, ...]
    unreached: tuple[Point, ...]
    claims: tuple[Claim, ...]
    remarks: tuple[str, ...]
    seconds: Seconds  # of computing, summed over cells

    @property
    def holds(self) -> bool:
        return all(claim.holds is not False for claim in self.claims)


class Experiment(ABC):
    """A figure. `grid` says which cells a preset has, `measure` runs one of them, `judge` states the claims.

    The class's docstring says what is drawn. Figures of one `family` have the same `measure`, written in one module,
    and share the cells that they have in common.
    """

    id: ClassVar[str]  # paper/figure
    title: ClassVar[str]
    family: ClassVar[str]

    @property
    def code(self) -> str:
        """The hash of all code that `measure` uses."""
        return code_hash(type(self).measure.__module__)

    @abstractmethod
    def grid(self, preset: str) -> list[Params]:
        """The parameters of every cell; `seed` is one of them."""

    @abstractmethod
    def measure(self, params: Params) -> Point:
        """One cell, by itself: all randomness comes from its seed.

        `reached: False` marks a cell whose training missed its stop. Timings go into a dictionary `seconds`.
        """

    @abstractmethod
    def judge(self, points: Sequence[Point]) -> list[Claim]:
        """The paper's claims beside what was measured, from the points that reached their stop (perhaps none)."""

    @abstractmethod
    def picture(self, points: Sequence[Point]) -> Picture:
        """What is drawn, from the points that reached their stop (perhaps none)."""

    def cost(self, params: Params) -> float:
        """Seconds that a cell takes on one core of `machine.REFERENCE`, roughly."""
        return 1.0

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        """What a reader should know beside the claims."""
        return []

    def cells(self, preset: str, only: Mapping[str, Sequence[Any]] | None = None, first_seed: int = 0) -> list["Cell"]:
        """The cells of a preset, those alone whose parameters have the values in `only`; seeds count from the first."""
        require(preset in PRESETS, f"preset is {preset!r}; it must be one of {', '.join(PRESETS)}")
        grid = self.grid(preset)
        for name, values in (only or {}).items():
            known = sorted({params[name] for params in grid if name in params}, key=str)
            message = f"--only {name}: {self.id} has {', '.join(map(str, known)) or 'no such parameter'} at {preset}"
            require(len(known) > 0 and all(value in known for value in values), message)
            grid = [params for params in grid if params.get(name) in values]
        return [Cell(self.family, {**params, "seed": params["seed"] + first_seed}, self.code) for params in grid]


@dataclass(frozen=True)
class Cell:
    """One point of a grid, named by a hash of its parameters and of the code that measures it."""

    family: str
    params: Params
    code: str

    @property
    def key(self) -> str:
        text = json.dumps([self.family, self.params, self.code], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]
