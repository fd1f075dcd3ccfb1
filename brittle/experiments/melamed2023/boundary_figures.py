"""melamed2023, figures 2, 3, 5, 6: off the data the boundary is near, unless the start is small or decays."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from statistics import median
from typing import Any, ClassVar, Literal

from brittle.data import Line7
from brittle.experiments.base import Claim, Experiment, Seconds
from brittle.experiments.cell import Point
from brittle.experiments.melamed2023.boundary_cells import BoundaryCell, axes, examples
from brittle.experiments.picture import BoundaryPicture, Panel, Picture, Surface
from brittle.experiments.summary import make_undecided_claim, where

PANELS = {"a": "default", "b": "smaller start", "c": "regularised"}
SETTINGS = {
    "mean": "as printed",
    "sum": "as printed, losses summed",
    "nearest": "nearest that reaches the margin",
    "scripts": "as in its scripts",
    "small": "small, for a first look",
}
LINE = BoundaryCell(points="line7", layers=2, width=100, margin=0.3, rate=0.02, steps=40_000)
PLANE = BoundaryCell(points="grid25", layers=2, width=400, margin=0.1, rate=0.05, steps=40_000)
SIGNS = BoundaryCell(
    points="grid25", height=0.5, layers=2, width=4000, margin=0.3, rate=0.002, steps=20_000, start="signs"
)
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


def replace_values(panels: Panels, **changes: Any) -> Panels:
    """The same with other values."""
    return {name: replace(panel, **changes) for name, panel in panels.items()}


class BoundaryFigure(Experiment):
    """The zero set of a network trained on seven points of a line or 25 of a plane, for the first seed.

    (a) default start, (b) a smaller start, (c) L2 regularisation. First row: as printed, with the mean of the losses;
    below it with their sum, the settings of the paper's scripts, and the nearest that reach the margin where the
    printed ones do not. Over each panel: the length of the weights normal to the data beside those of a default start,
    and what the theory predicts: 1/factor, and (1 - ηλ)^T after T steps.
    """

    kind = BoundaryCell
    text: ClassVar[Panels]  # as printed; the loss is the mean
    scripts: ClassVar[Panels]  # as in the paper's scripts
    nearest: ClassVar[Panels] = {}  # where the printed ones do not reach the margin

    @property
    def recipes(self) -> dict[str, Panels]:
        """The panels of every setting but the small one."""
        summed = replace_values(self.text, loss="sum")
        return {"mean": self.text, "sum": summed, "nearest": self.nearest, "scripts": self.scripts}

    def grid(self, preset: str) -> list[BoundaryCell]:
        seeds, resolution = {"smoke": (1, 12), "quick": (3, 32), "full": (5, 48)}[preset]
        recipes = {"small": {k: _small(panel) for k, panel in self.text.items()}} if preset == "smoke" else self.recipes
        return [
            replace(panel, setting=setting, panel=name, resolution=resolution, seed=seed)
            for setting, panels in recipes.items()
            for name, panel in panels.items()
            for seed in range(seeds if setting != "scripts" or preset == "full" else 1)
        ]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        if not points:
            return [
                make_undecided_claim(_farther_text("mean", panel, each))
                for panel in ("b", "c")
                for each in ("point", "class")
            ]
        claims = []
        for setting, panel in product(SETTINGS, ("b", "c")):
            some = where(points, setting=setting)
            if some and (setting != "nearest" or panel in self.nearest):
                claims += self._farther(some, points, setting, panel)
        return claims

    def _farther(self, some: Sequence[Point], points: Sequence[Point], setting: str, panel: str) -> list[Claim]:
        """Panel against panel a of the same setting, or as printed with the same loss where it has none of its own."""
        other = where(some, panel=panel)
        usual = where(some, panel="a") or where(points, setting=other[0]["loss"] if other else "mean", panel="a")
        texts = [_farther_text(setting, panel, each) for each in ("point", "class")]
        if not usual or not other:
            lacking = PANELS["a" if not usual else panel]
            open_ = f"not decided: no network with the {lacking} setting reached its margin"
            return [Claim(text, open_, None) for text in texts]
        counts = f"{len(other)} and {len(usual)} networks"
        nearest, *classes = (
            (_middle(other, name), _middle(usual, name)) for name in ("off_nearest", "off_positive", "off_negative")
        )
        median_point = f"median point {_against(_middle(other, 'off_median'), _middle(usual, 'off_median'))}"
        measured = f"{_against(*nearest)} ({counts}; {median_point}); normal weights {_factors(other)}"
        by_class = "; ".join(f"{sign} {_against(*pair)}" for sign, pair in zip("+-", classes, strict=True))
        verdicts = _is_farther(*nearest), all(_is_farther(*pair) for pair in classes)
        return [
            Claim(text, words, None if setting == "small" else holds)
            for text, words, holds in zip(texts, (measured, by_class), verdicts, strict=True)
        ]

    def picture(self, points: Sequence[Point]) -> Picture:
        panels = [
            self._panel(where(points, setting=setting, panel=panel))
            for setting in SETTINGS
            for panel in PANELS
            if where(points, setting=setting, panel=panel)
        ]
        return Picture(panels or [self._empty()])

    def _panel(self, points: Sequence[Point]) -> Panel:
        point = points[0]
        title = f"({point['panel']}) {PANELS[point['panel']]}, {SETTINGS[point['setting']]}\n"
        title += f"normal weights {_factors(points[:1])}"
        grid = [axis.tolist() for axis in axes(point["points"], point["height"], point["resolution"])]
        data = examples(point["points"], point["height"])
        X, y = data.X.tolist(), data.y.tolist()
        if len(grid) == 2:
            return BoundaryPicture(title, grid[0], grid[1], point["values"], X, y)
        return Surface(title, grid[0], grid[1], grid[2], point["values"], X, y)

    def _empty(self) -> Panel:
        data = Line7().load()
        ends, flat = [-1.2, 1.2], [[1.0, 1.0], [1.0, 1.0]]
        return BoundaryPicture("no network reached its margin", ends, ends, flat, data.X.tolist(), data.y.tolist())

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        """How many networks reached their margin, for each panel of each setting, and their normal weights."""
        tables = {"small": self.text} if where(points, setting="small") else self.recipes
        said = []
        for setting, panels in tables.items():
            by_panel = {panel: where(points, setting=setting, panel=panel) for panel in panels}
            counts = ", ".join(
                f"({panel}) {len(some)}" + (f" with normal weights {_factors(some)}" if some else "")
                for panel, some in by_panel.items()
            )
            if panels:
                said.append(f"Networks that reached the margin, {SETTINGS[setting]}: {counts}.")
        return [*said, AFFINE] if any(panel.height for panel in self.text.values()) else said


AFFINE = (
    "The plane of these points misses the origin, as printed: it is affine, the theory speaks of linear subspaces, and "
    "gradients move the normal weights too."
)


def _small(panel: BoundaryCell) -> BoundaryCell:
    """For smoke runs: a network and a margin that a second is enough for."""
    rate = panel.rate if panel.points == "line7" else 0.05
    margin = 0.02 if panel.points == "line7" else -0.2  # 25 points take longer to be told apart
    layers, width = min(panel.layers, 3), min(panel.width, 100)
    return replace(panel, width=width, layers=layers, rate=rate, margin=margin, steps=2500, loss="sum")


def _farther_text(setting: str, panel: str, each: str) -> str:
    reading = f"({SETTINGS[setting]}; read as: by over 5 %, in the median over seeds)"
    place = "at the nearest point" if each == "point" else "and so it is at the nearest point of each class"
    return f"off the data the boundary is farther for the {PANELS[panel]} network, {place} {reading}"


def _middle(points: Sequence[Point], name: str) -> float:
    """The median over seeds; what is missing is infinitely far."""
    return median(math.inf if point[name] is None else point[name] for point in points)


def _is_farther(far: float, near: float) -> bool:
    return far > 1.05 * near


def _against(far: float, near: float) -> str:
    return f"{far:.3f} against {near:.3f}"


def _factors(points: Sequence[Point]) -> str:
    """What the normal weights were multiplied by, beside what the theory predicts: medians over seeds."""
    predicted = [point["predicted"] for point in points]
    foretold = "no closed form" if None in predicted else f"predicted {median(predicted):.3g}"
    return f"×{_middle(points, 'normal'):.3g} ({foretold})"


class MelamedFigure2(BoundaryFigure):
    id = "melamed2023/fig2"
    title = "Boundary of two-layer networks round points of a line"
    text = three(LINE, (0.02, 0.04, 0.02), factor=3, decay=0.005)
    scripts = replace_values(text, divided="weights", start="normal")


class MelamedFigure3(BoundaryFigure):
    id = "melamed2023/fig3"
    title = "Boundary round points of a plane, smaller effect"
    text = three(SIGNS, (0.002, 0.002, 0.002), factor=12**0.5, decay=0.8, on="weights")
    scripts = replace_values(text, divided="weights", start="spread")
    scripts["b"] = replace(scripts["b"], factor=2)  # the printed deviation of 1/6, from their 1/3
    scripts["c"] = replace(scripts["c"], decay_on="first", squared=False)
    nearest: ClassVar = {"c": replace(text["c"], loss="sum", decay=0.1)}


class MelamedFigure5(BoundaryFigure):
    id = "melamed2023/fig5"
    title = "Boundary of two-layer networks round points of a plane"
    text = three(PLANE, (0.005, 0.05, 0.05), factor=3, decay=0.005)
    scripts = replace_values(text, divided="weights", height=0.5)
    nearest: ClassVar = {"b": replace(text["b"], loss="sum", rate=0.02)}


class MelamedFigure6(BoundaryFigure):
    id = "melamed2023/fig6"
    title = "Boundary of five-layer networks round points of a line"
    text = three(DEEP, (0.02, 0.06, 0.02), factor=3, decay=0.01)
    scripts = replace_values(text, divided="weights")


FIGURES = (MelamedFigure2(), MelamedFigure3(), MelamedFigure5(), MelamedFigure6())
