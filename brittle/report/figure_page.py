"""One page per figure, and one page for all of them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from brittle import __version__
from brittle.common.errors import InputError
from brittle.common.progress import duration
from brittle.experiments.base import Experiment, FigureResult
from brittle.experiments.cell import Cell, Point
from brittle.experiments.cells import concluded, saved
from brittle.experiments.images import MissingData
from brittle.experiments.run import EXPERIMENTS, cells_folder
from brittle.report.environment import ENVIRONMENT, source
from brittle.report.figures import figure_folder
from brittle.report.numbers import number

VERDICTS = {True: "holds", False: "does not hold", None: "not decided"}
SHOWN = 60  # points; the others are in the CSV
DIGITS = 5
STYLES = ("css/base.css", "css/figure.css")


def page(result: FigureResult, svg: str) -> str:
    """A self-contained HTML page: picture, claims, points."""
    columns, rows = _table(result.points[:SHOWN])
    return ENVIRONMENT.get_template("figure.html").render(
        result=result,
        style=source(*STYLES),
        about=about(result.id),
        svg=_embedded(svg),
        verdicts=VERDICTS,
        columns=columns,
        rows=rows,
        version=__version__,
        unreached=[_words(point) for point in result.unreached],
        cells=len(result.points) + len(result.unreached),
    )


def about(figure_id: str) -> str:
    """What the figure draws: the docstring of its experiment."""
    return " ".join((type(EXPERIMENTS[figure_id]).__doc__ or "").split())


def reproduction(contents: Sequence[dict[str, Any]]) -> str:
    """The page of all figures, in Markdown, from their JSON files."""
    words = {"verdicts": VERDICTS, "duration": duration, "grid_words": grid_words}
    text = ENVIRONMENT.get_template("reproduction.md").render(figures=contents, **words)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def grid_words(grid: Mapping[str, Sequence[Any]]) -> str:
    """What was varied, with all values, and then what was not; a file of older code may not have it."""
    told = [f"{name} {', '.join(_short(value) for value in values)}" for name, values in grid.items()]
    varied = [words for words, values in zip(told, grid.values(), strict=True) if len(values) > 1]
    return "; ".join([*varied, *(words for words in told if words not in varied)]) or "unknown"


def contents(folder: str | Path) -> list[dict[str, Any]]:
    """What `figure.json` of every figure in the folder says, in the order of the papers.

    `current` tells whether it is what the cells in the folder hold: those of other code have other names.
    """
    found = []
    for figure_id in EXPERIMENTS:
        path = figure_folder(folder, figure_id) / "figure.json"
        if not path.exists():
            continue
        try:
            content = json.loads(path.read_text())
            found.append({"grid": {}, **content, "current": holds_its_cells(content, folder)})
        except (OSError, ValueError, KeyError):
            raise InputError(f"{path}: is not a figure's JSON file; reproduce it again") from None
    return found


def holds_its_cells(content: Mapping[str, Any], folder: str | Path) -> bool:
    """Whether the claims are those that the folder's cells give, judged anew."""
    experiment = EXPERIMENTS[content["id"]]
    try:
        cells = [_cell(experiment, point) for point in (*content["points"], *content["unreached"])]
    except KeyError:  # its cells had other parameters
        return False
    done = saved(cells_folder(folder), cells)
    if len(done) < len(cells):
        return False
    anew = concluded(experiment, content["preset"], cells, [done[cell.key] for cell in cells])
    return bool([claim.to_json() for claim in anew.claims] == content["claims"])


def _cell(experiment: Experiment, point: Point) -> Cell:
    kind = MissingData if point.get("missing") else experiment.kind
    return kind(**{field.name: point[field.name] for field in fields(kind)})


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _embedded(svg: str) -> str:
    """The picture without the XML header, which has no place inside HTML."""
    return svg[svg.index("<svg") :]


def _table(points: Sequence[Point]) -> tuple[list[str], list[list[str]]]:
    plain = [{name: value for name, value in point.items() if not isinstance(value, list | dict)} for point in points]
    names = list(dict.fromkeys(name for point in plain for name in point))
    return names, [[_word(point.get(name)) for name in names] for point in plain]


def _word(value: Any) -> str:
    return number(value, DIGITS)


def _words(point: Point) -> str:
    return ", ".join(f"{name} {_word(value)}" for name, value in point.items() if not isinstance(value, list | dict))
