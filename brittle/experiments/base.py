"""An experiment is one figure of one paper: a grid of independent cells, and what the figure claims."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from brittle.common.errors import require
from brittle.common.result import Result
from brittle.experiments.cell import Cell, Point
from brittle.experiments.picture import Picture

PRESETS = ("smoke", "quick", "full")
Seconds = Mapping[str, float]  # by what they were spent on; "cells" is all of it


@dataclass(frozen=True)
class Claim(Result):
    """What the paper says, what was measured, and whether it holds.

    Examples:
        >>> from brittle.experiments import Claim
        >>> Claim("every example flips", "300 of 300", holds=True).holds
        True
    """

    text: str  # the paper's words, and how they are read where they leave room
    measured: str  # in a few words
    holds: bool | None  # None: not decided by this run


@dataclass(frozen=True)
class FigureResult(Result):
    """Everything that a figure shows: one point per finished cell, and its claims.

    Two runs of the same code differ in `seconds` and in the `remarks` made of them, in nothing else.

    Examples:
        >>> import brittle as bt
        >>> figure = bt.experiments.find("melamed2023/fig1a")[0]
        >>> result = bt.experiments.reproduce(figure, "smoke", "out")
        >>> result.id, result.holds
        ('melamed2023/fig1a', True)
    """

    id: str  # paper/figure
    title: str  # what the figure is about
    preset: str  # smoke, quick or full
    grid: Mapping[str, Sequence[Any]]  # the values of every parameter of the cells; not all of their combinations occur
    points: tuple[Point, ...]  # in the order of the grid
    unreached: tuple[Point, ...]  # those whose training did not reach its stop: they carry no claim
    claims: tuple[Claim, ...]  # the paper's, with what was measured
    remarks: tuple[str, ...]  # what a reader should know beside the claims
    seconds: Seconds  # of computing, summed over cells

    @property
    def holds(self) -> bool:
        """Whether no claim was found wrong."""
        return all(claim.holds is not False for claim in self.claims)


class Experiment(ABC):
    """A figure. `grid` says which cells a preset has, `judge` states the claims, `picture` says what is drawn.

    The class's docstring tells a reader what the picture shows.

    Examples:
        >>> import brittle as bt
        >>> figure = bt.experiments.find("vardi2022/fig1a")[0]
        >>> figure.title, len(figure.cells("smoke"))
        ('Smallest universal perturbation against the dimension', 20)
    """

    id: ClassVar[str]  # paper/figure
    title: ClassVar[str]  # what the figure is about
    kind: ClassVar[type[Cell]]  # of its cells

    def __init_subclass__(cls) -> None:
        """A figure without words of its own has those of the class that it varies."""
        super().__init_subclass__()
        cls.__doc__ = cls.__doc__ or cls.__base__.__doc__

    @abstractmethod
    def grid(self, preset: str) -> Sequence[Cell]:
        """Every cell of a preset."""

    @abstractmethod
    def judge(self, points: Sequence[Point]) -> list[Claim]:
        """The paper's claims beside what was measured, from the points that reached their stop (perhaps none)."""

    @abstractmethod
    def picture(self, points: Sequence[Point]) -> Picture:
        """What is drawn, from the points that reached their stop (perhaps none)."""

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        """What a reader should know beside the claims."""
        return []

    def cells(self, preset: str, only: Mapping[str, Sequence[Any]] | None = None, first_seed: int = 0) -> list[Cell]:
        """The cells of a preset, those alone whose parameters have the values in `only`; seeds count from the first."""
        require(preset in PRESETS, f"preset is {preset!r}; it must be one of {', '.join(PRESETS)}")
        grid = [(cell, cell.to_json()) for cell in self.grid(preset)]
        for name, values in (only or {}).items():
            known = sorted({params[name] for _, params in grid if name in params}, key=str)
            message = f"--only {name}: {self.id} has {', '.join(map(str, known)) or 'no such parameter'} at {preset}"
            require(len(known) > 0 and all(value in known for value in values), message)
            grid = [(cell, params) for cell, params in grid if params.get(name) in values]
        return [replace(cell, seed=cell.seed + first_seed) for cell, _ in grid]
