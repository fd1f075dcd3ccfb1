"""melamed2023, figures 2, 3, 5, 6: off the data the boundary is near, unless the start is small or decays."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any, ClassVar, Literal

from brittle.experiments.base import Claim, Experiment, Seconds
from brittle.experiments.cell import Point
from brittle.experiments.melamed2023.boundary_cells import FARTHEST, BoundaryCell, axes
from brittle.experiments.picture import Boundary, Panel, Picture, Surface
from brittle.experiments.summary import values, where
from brittle.settings import Grid25, Line7

PANELS = {"a": "default", "b": "smaller start", "c": "regularised"}
SETTINGS = {
    "text": "as printed",
    "nearest": "nearest that reaches the margin",
    "scripts": "as in its scripts",
    "small": "small, for a first look",
}
LINE = BoundaryCell(points="line7", layers=2, width=100, margin=0.3, rate=0.02, steps=40_000)
PLANE = BoundaryCell(points="grid25", layers=2, width=400, margin=0.1, rate=0.05, steps=40_000)
SIGNS = BoundaryCell(points="grid25", layers=2, width=4000, margin=0.3, rate=0.002, steps=20_000, start="signs")
DEEP = replace(LINE, layers=5)
Panels = dict[str, BoundaryCell]  # by their letters, without a seed of their own


def three(
    base: BoundaryCell,
    rates: tuple[float, float, float],
    factor: float,
    decay: float,
    on: Literal["all", "weights"] = "all",
) -> Panels:
    """Default, smaller start, regularised."""
    a, b, c = (replace(base, rate=rate) for rate in rates)
    return {"a": a, "b": replace(b, factor=factor), "c": replace(c, decay=decay, decay_on=on)}


def scripted(panels: Panels, **changes: Any) -> Panels:
    """The same by the paper's own scripts: the mean loss, and only weights are divided."""
    common = {"loss": "mean", "divided": "weights", **changes}
    return {name: replace(panel, **common) for name, panel in panels.items()}


class BoundaryFigure(Experiment):
    """The zero set of a network trained on seven points of a line or 25 of a plane, for the first seed.

    (a) default start, (b) a smaller start, (c) L2 regularisation. First row: as printed; below it the settings of the
    paper's scripts, and the nearest that reach the margin where the printed ones do not.
    """

    kind = BoundaryCell
    text: ClassVar[Panels]  # as printed
    scripts: ClassVar[Panels]  # as in the paper's scripts
    nearest: ClassVar[Panels] = {}  # where the printed ones do not reach the margin

    def grid(self, preset: str) -> list[BoundaryCell]:
        seeds, resolution = {"smoke": (1, 12), "quick": (3, 32), "full": (5, 48)}[preset]
        recipes = [("text", self.text), ("nearest", self.nearest), ("scripts", self.scripts)]
        if preset == "smoke":
            recipes = [("small", {name: _small(panel) for name, panel in self.text.items()})]
        return [
            replace(panel, setting=setting, panel=name, resolution=resolution, seed=seed)
            for setting, panels in recipes
            for name, panel in panels.items()
            for seed in range(seeds if setting != "scripts" or preset == "full" else 1)
        ]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        claims = []
        for setting in SETTINGS:
            some = where(points, setting=setting)
            if some or (setting == "text" and not where(points, setting="small")):
                claims += [self._farther(some, points, setting, panel) for panel in ("b", "c")]
        return [claim for claim in claims if claim is not None]

    def _farther(self, some: Sequence[Point], points: Sequence[Point], setting: str, panel: str) -> Claim | None:
        """Panel against panel a of the same setting, or of the text where the setting has none of its own."""
        if setting == "nearest" and panel not in self.nearest:
            return None
        reading = f"({SETTINGS[setting]}; read as: by over 5 %)"
        text = f"off the data the boundary is farther for the {PANELS[panel]} network {reading}"
        usual = values(where(some, panel="a") or where(points, setting="text", panel="a"), "off")
        changed = values(where(some, panel=panel), "off")
        if not usual or not changed:
            lacking = PANELS["a" if not usual else panel]
            return Claim(text, f"not decided: no network with the {lacking} setting reached its margin", None)
        far, near = median(changed), median(usual)
        measured = f"median distance {_size(far)} against {_size(near)} ({len(changed)} and {len(usual)} networks)"
        return Claim(text, measured, far > 1.05 * near if setting != "small" else None)

    def picture(self, points: Sequence[Point]) -> Picture:
        panels = [
            self._panel(where(points, setting=setting, panel=panel)[0])
            for setting in SETTINGS
            for panel in PANELS
            if where(points, setting=setting, panel=panel)
        ]
        return Picture(panels or [self._empty()])

    def _panel(self, point: Point) -> Panel:
        title = f"({point['panel']}) {PANELS[point['panel']]}, {SETTINGS[point['setting']]}"
        grid = [axis.tolist() for axis in axes(point["points"], point["resolution"])]
        if point["points"] == "line7":
            data = Line7().load()
            return Boundary(title, grid[0], grid[1], point["values"], data.X.tolist(), data.y.tolist())
        data = Grid25().load()
        return Surface(title, grid[0], grid[1], grid[2], point["values"], data.X.tolist(), data.y.tolist())

    def _empty(self) -> Panel:
        data = Line7().load()
        ends, flat = [-1.2, 1.2], [[1.0, 1.0], [1.0, 1.0]]
        return Boundary("no network reached its margin", ends, ends, flat, data.X.tolist(), data.y.tolist())

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        """How many networks reached their margin, for each panel of each setting; those that did not are not here."""
        tables = {"text": self.text, "nearest": self.nearest, "scripts": self.scripts}
        if where(points, setting="small"):
            tables = {"small": self.text}
        said = []
        for setting, panels in tables.items():
            some = where(points, setting=setting)
            counts = ", ".join(f"({panel}) {len(where(some, panel=panel))}" for panel in panels)
            if panels:
                said.append(f"Networks that reached the margin, {SETTINGS[setting]}: {counts}.")
        return said


def _small(panel: BoundaryCell) -> BoundaryCell:
    """For smoke runs: a network and a margin that a second is enough for."""
    rate = panel.rate if panel.points == "line7" else 0.05
    return replace(panel, width=min(panel.width, 100), layers=min(panel.layers, 3), rate=rate, margin=0.02, steps=2500)


def _size(distance: float) -> str:
    return f"over {FARTHEST:g}" if distance >= FARTHEST else f"{distance:.3f}"


class Figure2(BoundaryFigure):
    id = "melamed2023/fig2"
    title = "Boundary of two-layer networks round points of a line"
    text = three(LINE, (0.02, 0.04, 0.02), factor=3, decay=0.005)
    scripts = scripted(text, start="normal")


class Figure3(BoundaryFigure):
    id = "melamed2023/fig3"
    title = "Boundary round points of a plane, smaller effect"
    text = three(SIGNS, (0.002, 0.002, 0.002), factor=12**0.5, decay=0.8, on="weights")
    scripts = scripted(text)
    scripts["c"] = replace(scripts["c"], decay_on="first", squared=False)
    nearest: ClassVar = {"c": replace(text["c"], decay=0.1)}


class Figure5(BoundaryFigure):
    id = "melamed2023/fig5"
    title = "Boundary of two-layer networks round points of a plane"
    text = three(PLANE, (0.005, 0.05, 0.05), factor=3, decay=0.005)
    scripts = scripted(text)
    nearest: ClassVar = {"b": replace(text["b"], rate=0.02)}


class Figure6(BoundaryFigure):
    id = "melamed2023/fig6"
    title = "Boundary of five-layer networks round points of a line"
    text = three(DEEP, (0.02, 0.06, 0.02), factor=3, decay=0.01)
    scripts = scripted(text)


FIGURES = (Figure2(), Figure3(), Figure5(), Figure6())
