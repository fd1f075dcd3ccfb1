"""Draws what an experiment says, and writes everything that belongs to a figure into one folder."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brittle.common.errors import InputError
from brittle.common.files import replacing, write_json
from brittle.common.kinds import kinds_checked
from brittle.experiments.base import FigureResult
from brittle.experiments.cell import Point
from brittle.experiments.picture import Boundary, Chart, Curve, Heat, Histogram, Panel, Picture, Surface
from brittle.experiments.run import EXPERIMENTS
from brittle.report.boundary import draw_boundary, draw_surface
from brittle.report.style import COLOURS, house_style, save

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
    elif isinstance(panel, Boundary):
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


def _curves(axes: Axes, curves: Sequence[Curve]) -> None:
    for number, curve in enumerate(curves):
        colour = COLOURS[(number if curve.colour is None else curve.colour) % len(COLOURS)]
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


@kinds_checked
def write_figure(result: FigureResult, folder: str | Path) -> Path:
    """figure.png, figure.svg, points.csv, figure.json and index.html; the folder they are in.

    Examples:
        >>> import brittle as bt
        >>> figure = bt.experiments.find("melamed2023/fig1a")[0]
        >>> folder = bt.report.write_figure(bt.experiments.reproduce(figure, "smoke", "out"), "out")
        >>> sorted(path.name for path in folder.iterdir())
        ['figure.json', 'figure.png', 'figure.svg', 'index.html', 'points.csv']
    """
    from brittle.report.figure_page import page

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
