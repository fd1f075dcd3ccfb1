"""Draws what an experiment says, and writes everything that belongs to a figure into one folder."""

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brittle import __version__
from brittle.common.errors import InputError
from brittle.common.files import replacing, write_json
from brittle.common.kinds import check_kinds
from brittle.common.progress import duration
from brittle.experiments.base import Experiment, FigureResult
from brittle.experiments.cell import Cell, Point
from brittle.experiments.cells import conclude_figure, load_cells
from brittle.experiments.images import MissingData
from brittle.experiments.picture import BoundaryPicture, Chart, Heat, Histogram, Panel, Picture, PlotCurve, Surface
from brittle.experiments.run import EXPERIMENTS, cells_folder
from brittle.report.style import COLOURS, draw_boundary, draw_surface, house_style, save
from brittle.report.svg import ENVIRONMENT, number, source

MOST_TICKS = 8
STYLES: dict[str, dict[str, Any]] = {
    "line": {"linestyle": "-", "marker": "o"},
    "dashed": {"linestyle": "--", "marker": "o", "markerfacecolor": "white"},
    "dotted": {"linestyle": ":"},
    "plain": {"linestyle": "-", "linewidth": 1.0},
    "points": {"linestyle": "", "marker": "o"},
}


def draw(picture: Picture) -> Figure:
    """A matplotlib figure, made without any global state."""
    columns = min(picture.columns, len(picture.panels))
    rows = math.ceil(len(picture.panels) / columns)
    with house_style():
        figure = Figure(figsize=((4.6 if columns > 1 else 6.2) * columns, (3.6 if columns > 1 else 4.4) * rows))
        for number, panel in enumerate(picture.panels, 1):
            kind = {"projection": "3d"} if isinstance(panel, Surface) else {}
            axes = figure.add_subplot(rows, columns, number, **kind)
            _draw_panel(axes, panel)
            axes.set_title(panel.title)
    return figure


def _draw_panel(axes: Any, panel: Panel) -> None:
    if isinstance(panel, Chart):
        _chart(axes, panel)
    elif isinstance(panel, Heat):
        _heat(axes, panel)
    elif isinstance(panel, Histogram):
        _histogram(axes, panel)
    elif isinstance(panel, BoundaryPicture):
        draw_boundary(axes, panel.x, panel.y, panel.values, panel.examples, panel.labels)
        axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    else:
        draw_surface(axes, panel.x, panel.y, panel.z, panel.values, panel.examples, panel.labels)
        axes.view_init(panel.elevation, panel.azimuth)


def _chart(axes: Axes, chart: Chart) -> None:
    _curves(axes, chart.curves)
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label, xscale=chart.x_scale, yscale=chart.y_scale)
    if chart.x_scale == "log":
        _ticks_at(axes, sorted({x for curve in chart.curves for x in curve.x if x is not None}))
    if chart.y_range is not None:
        axes.set_ylim(*chart.y_range)


def _ticks_at(axes: Axes, places: Sequence[float]) -> None:
    """A logarithmic axis of a few places is read best by their own numbers."""
    if 1 < len(places) <= MOST_TICKS and places[-1] < 1e5:
        axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.set_xticks([], minor=True)


def _curves(axes: Axes, curves: Sequence[PlotCurve]) -> None:
    for index, curve in enumerate(curves):
        colour = COLOURS[(index if curve.colour is None else curve.colour) % len(COLOURS)]
        look: dict[str, Any] = {"label": curve.label, "color": colour, **STYLES[curve.style]}
        x, y = _floats(curve.x), _floats(curve.y)
        if curve.deviation is None:
            axes.plot(x, y, **look)
        else:
            axes.errorbar(x, y, _floats(curve.deviation), capsize=2, elinewidth=0.8, **look)
    if any(curve.label for curve in curves):
        axes.legend(fontsize="small")


def _heat(axes: Axes, heat: Heat) -> None:
    mesh = axes.pcolormesh(
        _floats(heat.x),
        _floats(heat.y),
        np.array([_floats(row) for row in heat.values]),
        vmin=heat.low,
        vmax=heat.high,
        cmap="cividis",
        shading="nearest",
        rasterized=True,
    )
    axes.set(xlabel=heat.x_label, ylabel=heat.y_label, xscale=heat.x_scale, yscale=heat.y_scale)
    axes.grid(False)
    axes.figure.colorbar(mesh, ax=axes, label=heat.value_label)
    if heat.curves:
        limits = axes.get_xlim(), axes.get_ylim()
        _curves(axes, heat.curves)
        axes.set(xlim=limits[0], ylim=limits[1])


def _histogram(axes: Axes, histogram: Histogram) -> None:
    for colour, (label, values) in zip(COLOURS, histogram.samples.items(), strict=False):
        axes.hist(values, bins=histogram.bins, color=colour, alpha=0.6, label=label or None)
    for name, at in histogram.marks.items():
        axes.axvline(at, color="black", linestyle=":", label=name)
    axes.set(xlabel=histogram.x_label, ylabel="examples")
    if any(histogram.samples) or histogram.marks:
        axes.legend(fontsize="small")


def _floats(row: Sequence[float | None]) -> np.ndarray:
    """Gaps where nothing was measured."""
    return np.array([math.nan if value is None else value for value in row], dtype=float)


def figure_folder(folder: str | Path, figure_id: str) -> Path:
    return Path(folder) / figure_id.replace("/", "-")


@check_kinds
def write_figure(result: FigureResult, folder: str | Path) -> Path:
    """figure.png, figure.svg, points.csv, figure.json and index.html; the folder they are in.

    Examples:
        >>> import brittle as bt
        >>> figure = bt.experiments.find("melamed2023/fig1a")[0]
        >>> folder = bt.report.write_figure(bt.experiments.reproduce(figure, "smoke", "out"), "out")
        >>> sorted(path.name for path in folder.iterdir())
        ['figure.json', 'figure.png', 'figure.svg', 'index.html', 'points.csv']
    """
    from brittle.report.figures import page

    place = figure_folder(folder, result.id)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{place}: cannot be made a folder ({error.strerror or error})") from None
    write_json(place / "figure.json", {**result.to_json(), "holds": result.holds})
    _write(place / "points.csv", table(result.points))
    picture = draw(EXPERIMENTS[result.id].picture(result.points))
    for name in ("figure.png", "figure.svg"):
        save(picture, place / name)
    _write(place / "index.html", page(result, (place / "figure.svg").read_text()))
    return place


def table(points: Sequence[Point]) -> str:
    """Every number and word of the points as CSV; arrays are in the JSON alone."""
    plain = [{name: value for name, value in point.items() if not isinstance(value, list | dict)} for point in points]
    names = list(dict.fromkeys(name for point in plain for name in point))
    stream = io.StringIO()
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain)
    return stream.getvalue()


def _write(path: Path, text: str) -> None:
    with replacing(path) as stream:
        stream.write(text.encode())


# One page per figure, and one page for all of them.


CLAIM_WORDS = {True: "holds", False: "does not hold", None: "not decided"}
SHOWN = 60  # points; the others are in the CSV
DIGITS = 5
PAGE_STYLES = ("css/base.css", "css/figure.css")


def page(result: FigureResult, svg: str) -> str:
    """A self-contained HTML page: picture, claims, points."""
    columns, rows = _table(result.points[:SHOWN])
    return ENVIRONMENT.get_template("figure.html").render(
        result=result,
        style=source(*PAGE_STYLES),
        about=about(result.id),
        svg=_embedded(svg),
        verdicts=CLAIM_WORDS,
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
    words = {"verdicts": CLAIM_WORDS, "duration": duration, "grid_words": grid_words}
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
    done = load_cells(cells_folder(folder), cells)
    if len(done) < len(cells):
        return False
    anew = conclude_figure(experiment, content["preset"], cells, [done[cell.key] for cell in cells])
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
