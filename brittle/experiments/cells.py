"""Each finished cell is one file: what is in the folder is skipped, what crashed is run again."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from brittle.common.errors import InputError
from brittle.common.files import write_json
from brittle.common.result import jsonable
from brittle.experiments.base import Experiment, FigureResult, Seconds
from brittle.experiments.cell import Cell, Point, Task
from brittle.experiments.engines import Engine, Local, Measured, Work


class Kept(Protocol):
    """A piece of work whose outcome is kept in a file of its own."""

    @property
    def task(self) -> Task: ...

    @property
    def key(self) -> str: ...


Piece = TypeVar("Piece", bound=Kept)


def run_cells(
    cells: Sequence[Piece], folder: Path, work: Work, engine: Engine | None = None
) -> Iterator[tuple[Piece, Measured | Exception]]:
    """Every cell once, in whatever order: those in the folder first, the others as they are measured and written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made a folder ({error.strerror or error})") from None
    by_key = {cell.key: cell for cell in cells}
    done = load_cells(folder, cells)
    yield from ((cell, done[key]) for key, cell in by_key.items() if key in done)
    missing = [cell.task for key, cell in by_key.items() if key not in done]
    for task, outcome in (engine or Local()).run(work, missing):
        if not isinstance(outcome, Exception):
            write_json(_file(folder, task.key), {"family": task.family, "params": task.params, **outcome})
        yield by_key[task.key], outcome


def conclude_figure(experiment: Experiment, preset: str, cells: list[Cell], measured: list[Measured]) -> FigureResult:
    """The figure: its points, its claims, and the cells that missed their stop."""
    points = [{**cell.to_json(), **each["measured"]} for cell, each in zip(cells, measured, strict=True)]
    good = [point for point in points if point.get("reached") is not False]
    seconds = _summed([each["seconds"] for each in measured])
    return FigureResult(
        id=experiment.id,
        title=experiment.title,
        preset=preset,
        grid=_values(cells),
        points=tuple(good),
        unreached=tuple(point for point in points if point.get("reached") is False),
        claims=tuple(experiment.judge(good)),
        remarks=tuple(experiment.remarks(good, seconds)),
        seconds=seconds,
    )


def time_cell(cell: Cell) -> Measured:
    """What was measured, apart from how long it took: seconds of computing, which other processes do not lengthen."""
    begun = time.thread_time()
    measured: Point = jsonable(cell.measure())
    seconds = measured.pop("seconds", {})
    return {"measured": measured, "seconds": {"cells": time.thread_time() - begun, **seconds}}


def load_cells(folder: Path, cells: Sequence[Kept]) -> dict[str, Measured]:
    """The cells that are in the folder, by their key; a damaged file counts as absent."""
    found = {}
    for key in (cell.key for cell in cells):
        try:
            content = json.loads(_file(folder, key).read_text())
            found[key] = {"measured": dict(content["measured"]), "seconds": dict(content["seconds"])}
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _file(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"


def _values(cells: list[Cell]) -> dict[str, list[Any]]:
    """Of every parameter, in the order in which they first occur."""
    found: dict[str, dict[Any, None]] = {}
    for cell in cells:
        for name, value in cell.to_json().items():
            found.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in found.items()}


def _summed(all_seconds: list[Seconds]) -> Seconds:
    names = dict.fromkeys(name for seconds in all_seconds for name in seconds)
    return {name: sum(seconds.get(name, 0.0) for seconds in all_seconds) for name in names}
