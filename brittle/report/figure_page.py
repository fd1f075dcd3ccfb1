"""One page per figure, and one page for all of them."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from brittle import __version__
from brittle.common.errors import InputError
from brittle.common.progress import duration
from brittle.experiments.base import FigureResult
from brittle.experiments.cell import Point
from brittle.experiments.run import EXPERIMENTS
from brittle.report.figures import figure_folder

VERDICTS = {True: "holds", False: "does not hold", None: "not decided"}
SHOWN = 60  # points; the others are in the CSV

_environment = Environment(
    loader=PackageLoader("brittle.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def page(result: FigureResult, svg: str) -> str:
    """A self-contained HTML page: picture, claims, points."""
    columns, rows = _table(result.points[:SHOWN])
    return _environment.get_template("figure.html").render(
        result=result,
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
    text = _environment.get_template("reproduction.md").render(figures=contents, verdicts=VERDICTS, duration=duration)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def contents(folder: str | Path) -> list[dict[str, Any]]:
    """What `figure.json` of every figure in the folder says, in the order of the papers."""
    found = []
    for figure_id in EXPERIMENTS:
        path = figure_folder(folder, figure_id) / "figure.json"
        if not path.exists():
            continue
        try:
            found.append(json.loads(path.read_text()))
        except (OSError, ValueError):
            raise InputError(f"{path}: is not a figure's JSON file; reproduce it again") from None
    return found


def _embedded(svg: str) -> str:
    """The picture without the XML header, which has no place inside HTML."""
    return svg[svg.index("<svg") :]


def _table(points: Sequence[Point]) -> tuple[list[str], list[list[str]]]:
    plain = [{name: value for name, value in point.items() if not isinstance(value, list | dict)} for point in points]
    names = list(dict.fromkeys(name for point in plain for name in point))
    return names, [[_word(point.get(name)) for name in names] for point in plain]


def _word(value: Any) -> str:
    return (
        {None: "–", True: "yes", False: "no"}.get(value)
        if value is None or isinstance(value, bool)
        # type: ignore[return-value]
        else (f"{value:.5g}" if isinstance(value, float) else str(value))
    )


def _words(point: Point) -> str:
    return ", ".join(f"{name} {_word(value)}" for name, value in point.items() if not isinstance(value, list | dict))
