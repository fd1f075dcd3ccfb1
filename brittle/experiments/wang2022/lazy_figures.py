"""wang2022, figures 2, 3, 5, 6 and 7: one short gradient step flips every network near its initialisation."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any, ClassVar

from brittle.experiments.base import Claim, Experiment, Seconds
from brittle.experiments.cell import Cell, Point
from brittle.experiments.image_claims import judged_on, told
from brittle.experiments.images import or_missing
from brittle.experiments.picture import Chart, Curve, Histogram, Panel, Picture
from brittle.experiments.summary import deviation, distinct, over_seeds, share, undecided, values, where
from brittle.experiments.wang2022.lazy_cells import LazyCell
from brittle.experiments.wang2022.lazy_claims import (
    MEASURES,
    WIDEST,
    as_coded,
    fitted_exponent,
    grows,
    means,
    no_slope,
    slope,
    test_error,
)

SIDES = (5, 7, 10, 14, 20, 25, 28)


@dataclass(frozen=True)
class Grid:
    """What a preset covers. Figures 2 and 5 vary the width, figures 3 and 6 the radius C0 at one width."""

    data: str  # the name of the data set
    sides: tuple[int, ...]  # of the pictures
    widths: tuple[int, ...]  # of figures 2 and 5
    radii: tuple[float, ...]  # C0 of figures 3 and 6, whose first the others have too
    radius_width: int  # of figures 3 and 6
    radius_sides: tuple[int, ...]  # of their pictures
    steps: int  # at most
    points: int  # test examples that are attacked
    seeds: int  # how many
    histogram: tuple[int, int]  # side and width of figure 7


GRIDS = {
    "smoke": Grid(
        "digits", (4, 6, 8), (50, 100), (2.0, 4.0), 100, (4, 6, 8), steps=60, points=20, seeds=1, histogram=(8, 100),
    ),
    "quick": Grid(
        "mnist", (7, 10, 14, 20, 28), (300, 1000), (10.0, 20.0, 40.0), 1000, (7, 10, 14, 20), steps=20_000, points=200,
        seeds=2, histogram=(28, 1000),
    ),
    "full": Grid(
        "mnist", SIDES, (1000, 10_000, 100_000), (10.0, 20.0, 30.0, 40.0), 100_000, SIDES, steps=100_000, points=500,
        seeds=5, histogram=(28, 100_000),
    ),
}  # fmt: skip


def cells(
    preset: str, sides: Sequence[int], widths: Sequence[int], radii: Sequence[float], **more: Any
) -> list[LazyCell]:
    """Every seed of the preset at every place; `more` are further fields, which may replace those of the preset."""
    grid = GRIDS[preset]
    common = {"data": grid.data, "steps": grid.steps, "points": grid.points, **more}
    return [
        LazyCell(side=side, width=width, radius=radius, seed=seed, **common)
        for radius, width, side, seed in product(radii, widths, sides, range(grid.seeds))
    ]


class LazyFigure(Experiment):
    """What the figures of the lazy regime have in common."""

    kind = LazyCell
    unit: ClassVar[bool]  # examples of unit norm
    varied: ClassVar[str]  # the parameter that tells the curves apart
    symbol: ClassVar[str]  # its name on the picture

    def picture(self, points: Sequence[Point]) -> Picture:
        return Picture([self._chart(points, name) for name in MEASURES])

    def _chart(self, points: Sequence[Point], name: str) -> Panel:
        label, exponent = MEASURES[name]
        some = where(points, setting="text")
        curves = [
            over_seeds(where(some, **{self.varied: value}), "dim", name, f"{self.symbol} = {value:g}")
            for value in distinct(some, self.varied)
        ]
        return Chart("", "input dimension $d$", label, [*curves, *_claimed(some, name, exponent)], "log", "log")

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        said = told("mnist", points, seconds)
        some = where(points, setting="text")
        if not some:
            return said
        stayed = [not point["left"] for point in some]
        if any(stayed):
            inside = where(some, left=False)
            converged, farthest = [point["converged"] for point in inside], max(values(inside, "moved"))
            said.append(
                f"{share(stayed)} networks never reached the edge of their ball: the loss of {sum(converged)} "
                f"converged, {len(inside) - sum(converged)} ended after {some[0]['steps']} steps, at most "
                f"{farthest:.1f}/√m away."
            )
        drift = [
            f"{fitted_exponent(where(some, **{self.varied: value}), 'output')} at {self.varied} {value:g}"
            for value in distinct(some, self.varied)
        ]
        said.append(f"‖δ‖ ≈ |f|/‖∇f‖ inherits the drift of |f|, which is {'; '.join(drift)}.")
        return [*said, *as_coded(points)]


class BySize(LazyFigure):
    """The smallest δ = η∇f(x) that flips a prediction, ‖∇f‖ and η, against the dimension, for several widths.

    Digits 0 and 1 resized to d pixels; SGD (rate 0.1, logistic loss) on the first layer until a neuron has moved by
    C0/√m, C0 = 10, or the loss has converged. Means over test examples; bars are standard deviations over seeds;
    dotted: the claimed exponent.
    """

    varied = "width"
    symbol = "$m$"

    def grid(self, preset: str) -> Sequence[Cell]:
        grid, radius = GRIDS[preset], GRIDS[preset].radii[:1]
        found = cells(preset, grid.sides, grid.widths, radius, unit=self.unit)
        if not self.unit:
            found += cells(preset, grid.sides, grid.widths[:1], radius, unit=self.unit, setting="code")
        return or_missing(grid.data, found)

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        names = (
            ("relative_size", "gradient", "step")
            if self.unit
            else ("relative_size", "gradient", "step", "relative_step")
        )
        some = where(points, setting="text")
        claims = [slope(where(some, width=width), name, width) for width in distinct(some, "width") for name in names]
        claims = claims or [no_slope(name) for name in names]
        return judged_on("mnist", points, claims if self.unit else [*claims, test_error(some, SIDES[0] ** 2)])


class ByRadius(LazyFigure):
    """The same as figure 2, for several radii C0 of the ball at one width."""

    varied = "radius"
    symbol = "$C_0$"

    def grid(self, preset: str) -> Sequence[Cell]:
        grid = GRIDS[preset]
        found = cells(preset, grid.radius_sides, (grid.radius_width,), grid.radii, unit=self.unit)
        return or_missing(grid.data, found)

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        claims = [claim for name in MEASURES for claim in grows(points, name)]
        return judged_on("mnist", points, claims if self.unit else [*claims, test_error(points, SIDES[0] ** 2)])


class Figure2(BySize):
    id = "wang2022/fig2"
    title = "Smallest gradient step that flips, against the dimension"
    unit = False


class Figure5(BySize):
    id = "wang2022/fig5"
    title = "Smallest gradient step that flips, unit-norm data"
    unit = True


class Figure3(ByRadius):
    id = "wang2022/fig3"
    title = "Smallest gradient step that flips, for several radii"
    unit = False


class Figure6(ByRadius):
    id = "wang2022/fig6"
    title = "Smallest gradient step that flips, for several radii, unit-norm data"
    unit = True


class Figure7(LazyFigure):
    """Histograms over test examples of ‖δ‖/‖x‖, ‖∇f‖ and η for networks of figure 2 at the largest size."""

    id = "wang2022/fig7"
    title = "Histograms of the smallest gradient step that flips"
    unit = False
    varied = "width"
    symbol = "$m$"

    def grid(self, preset: str) -> Sequence[Cell]:
        side, width = GRIDS[preset].histogram
        points = {"smoke": 20, "quick": 500, "full": 2115}[preset]
        more = {"unit": False, "histogram": True, "points": points}
        found = cells(preset, (side,), (width,), GRIDS[preset].radii[:1], **more)
        return or_missing(GRIDS[preset].data, found)

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        text = "η concentrates near .045 (read as: its median is within a third of that)"
        steps = [step for point in points for step in point["all_step"]] if points else []
        if not steps:
            return judged_on("mnist", points, [undecided(text)])
        middle, spread = median(steps), deviation(steps)
        measured = f"median {middle:.4f}, standard deviation {spread:.4f} over {len(steps)} examples"
        near = 2 / 3 <= middle / 0.045 <= 4 / 3
        as_wide = all(point["width"] == WIDEST for point in points)  # other widths have another η
        measured += f", m = {points[0]['width']:g}" + ("" if as_wide else f" (the paper's has {WIDEST:g})")
        return judged_on("mnist", points, [Claim(text, measured, near if as_wide else None)])

    def picture(self, points: Sequence[Point]) -> Picture:
        panels = []
        for name, (label, _) in MEASURES.items():
            sample = [float(value) for point in points for value in point[f"all_{name}"]]
            marks = {"paper: .045": 0.045} if name == "step" else {}
            panels.append(Histogram("", label, {"": sample}, marks=marks))
        return Picture(panels)


FIGURES = (Figure2(), Figure3(), Figure5(), Figure6(), Figure7())


def _claimed(points: Sequence[Point], name: str, exponent: float) -> list[Curve]:
    """A line of the claimed exponent through the mean at the largest dimension."""
    found = means(points, name)
    if not found:
        return []
    dims, last = [float(d) for d, _ in found], found[-1]
    return [
        Curve(
            f"$d^{{{exponent:g}}}$", dims, [last[1] * (d / last[0]) ** exponent for d in dims], style="dotted", colour=6
        )
    ]
