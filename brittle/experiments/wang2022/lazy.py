"""What wang2022 says about the shortest gradient step, beside what was measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from statistics import median, stdev
from typing import Any, ClassVar

import scipy

from brittle.experiments.base import Claim, Experiment, Seconds
from brittle.experiments.cell import Cell, Point
from brittle.experiments.images import or_missing
from brittle.experiments.picture import Chart, Histogram, Panel, Picture, PlotCurve
from brittle.experiments.summary import (
    CONFIDENCE,
    describe_missing_data,
    deviation,
    distinct,
    exponent,
    make_undecided_claim,
    mean,
    over_seeds,
    restrict_claims,
    share,
    values,
    where,
)
from brittle.experiments.wang2022.lazy_cells import LazyCell
from brittle.theorems.comparison import fit_scaling

FROM = 100  # the smallest d of the fits: d = 25 is not yet on the line
NARROWEST, WIDEST = 1000, 100_000  # of the paper's networks
WIDTH = 0.15  # how far an interval may reach over the claimed exponent and still decide; also what "roughly" allows
MEASURES = {
    "relative_size": (r"$\|\delta\|/\|x\|$", -0.5),
    "gradient": (r"$\|\nabla f\|$", 0.5),
    "step": (r"$\eta$", -1.0),
}
WORDS = {"relative_size": "‖δ‖/‖x‖", "gradient": "‖∇f‖", "step": "η", "relative_step": "η/‖x‖", "output": "|f|"}


def means(points: Sequence[Point], name: str, least: int = 0) -> list[tuple[int, float]]:
    """The mean at each dimension, from the least on."""
    dims = [d for d in distinct(points, "dim") if d >= least]
    return [(d, mean(values(where(points, dim=d), name))) for d in dims]


def describe_exponent(points: Sequence[Point], name: str) -> str:
    """The exponent of d in words, over large dimensions if there are enough of them."""
    found = means(points, name, FROM) if len(means(points, name, FROM)) >= 3 else means(points, name)
    if len(found) < 3:
        return "unknown"
    line = fit_scaling(name, "d", 0.0, *zip(*found, strict=True))
    return f"d^({line.fitted:+.2f} ± {line.standard_error:.2f})"


def _slope_text(name: str) -> str:
    claimed = MEASURES["step" if name == "relative_step" else name][1]
    said = f"roughly Ω(d^{claimed:g})" if name == "gradient" else f"O(d^{claimed:g})"
    wrong = f"below {claimed - WIDTH:g}" if name == "gradient" else f"above {claimed:g}"
    reading = f"refuted where all of the exponent's 95 % interval over d ≥ {FROM} is {wrong}"
    return f"{WORDS[name]} is {said} (read as: {reading})"


def no_slope(name: str) -> Claim:
    """The claim about an exponent, where there are no points."""
    return make_undecided_claim(_slope_text(name))


def slope(points: Sequence[Point], name: str, width: int) -> Claim:
    """The exponent of d at one width over all networks, judged from the side on which the claim has it."""
    text, claimed = f"m = {width}: {_slope_text(name)}", MEASURES["step" if name == "relative_step" else name][1]
    some = [point for point in points if point["dim"] >= FROM and point[name] is not None]
    power = exponent(name, "d", values(some, "dim"), values(some, name))
    if power is None:
        return Claim(text, f"{describe_exponent(points, name)} on smaller dimensions", None)
    if name == "gradient":
        return Claim(text, str(power), power.at_least(claimed - WIDTH, WIDTH))
    return Claim(text, str(power), power.at_most(claimed, WIDTH))


def test_error(points: Sequence[Point], smallest: int) -> Claim:
    """One network that is as wide as the paper's can refute it; only the paper's sizes, from the `smallest` d to its
    largest width, can confirm it."""
    text = "every network has a test error below 1 %"
    if not points:
        return make_undecided_claim(text)
    wide = [point for point in points if point["width"] >= NARROWEST] or points
    errors, widths, dims = (values(wide, name) for name in ("error", "width", "dim"))
    measured = f"at most {max(errors):.2%}, {mean(errors):.2%} on average, m ≥ {min(widths):g}"
    if wide[0]["width"] >= NARROWEST and max(errors) >= 0.01:
        return Claim(text, measured, False)
    if min(dims) <= smallest and max(widths) >= WIDEST:
        return Claim(text, measured, True)
    there = f"d ≥ {min(dims):g} and m ≤ {max(widths):g}, the paper's d ≥ {smallest} and m ≤ {WIDEST}"
    return Claim(text, f"{measured}; not decided at this size: {there}", None)


def grows(points: Sequence[Point], name: str) -> list[Claim]:
    """From each radius to the next, over the places where another network comes out.

    One that never reached the edge of its ball is the same network in every larger ball. Where the networks are
    narrower than the paper's, whose balls are smaller, a fall refutes nothing.
    """
    text = f"{WORDS[name]} grows with C0"
    claims = []
    for small, large in pairwise(distinct(points, "radius")):
        pairs = [
            (before, after)
            for before in where(points, radius=small)
            for after in where(points, radius=large, dim=before["dim"], seed=before["seed"])
        ]
        other = [pair for pair in pairs if pair[0]["left"]]
        step = f"{text}, from {small:g} to {large:g} (read as: the 95 % interval of its mean factor lies above 1)"
        if not other:
            claims.append(Claim(step, f"not decided: the same network in all {len(pairs)} places", None))
            continue
        lower, higher = (mean([pair[i][name] for pair in other]) for i in (0, 1))
        same = f"; the other {len(pairs) - len(other)} are the same network" if len(other) < len(pairs) else ""
        measured = f"{lower:.4g} to {higher:.4g} in {len(other)} of {len(pairs)} places{same}"
        change, verdict = _factor([math.log(after[name] / before[name]) for before, after in other])
        width = max(after["width"] for _, after in other)
        if verdict is False and width < WIDEST:
            change, verdict = f"{change}; not decided at this size: m = {width:g}, the paper's {WIDEST}", None
        claims.append(Claim(step, f"{measured}; {change}", verdict))
    return claims or [make_undecided_claim(text)]


def _factor(logarithms: Sequence[float]) -> tuple[str, bool | None]:
    """The mean factor with its 95 % interval by Student's law, and whether that lies above 1; None where it holds 1."""
    count = len(logarithms)
    if count < 2:
        return "not decided: one network has no interval", None
    half = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * stdev(logarithms) / math.sqrt(count)
    middle = mean(logarithms)
    ends = f"95 % in [{math.exp(middle - half):.3g}, {math.exp(middle + half):.3g}]"
    return f"factor {math.exp(middle):.3g}, {ends}", None if abs(middle) <= half else middle > 0


def as_coded(points: Sequence[Point]) -> list[str]:
    """The same exponents with what the paper's own code does."""
    some = where(points, setting="code")
    if not some:
        return []
    fits = ", ".join(f"{WORDS[name]} ~ {describe_exponent(some, name)}" for name in MEASURES)
    return [
        f"As in the paper's own code (first network outside the ball, misclassified as 0), m = "
        f"{some[0]['width']}: {fits}."
    ]


# wang2022, figures 2, 3, 5, 6 and 7: one short gradient step flips every network near its initialisation.


SIDES = (5, 7, 10, 14, 20, 25, 28)


@dataclass(frozen=True)
class LazyGrid:
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
    "smoke": LazyGrid(
        "digits", (4, 6, 8), (50, 100), (2.0, 4.0), 100, (4, 6, 8), steps=60, points=20, seeds=1, histogram=(8, 100),
    ),
    "quick": LazyGrid(
        "mnist", (7, 10, 14, 20, 28), (300, 1000), (10.0, 20.0, 40.0), 1000, (7, 10, 14, 20), steps=20_000, points=200,
        seeds=2, histogram=(28, 1000),
    ),
    "full": LazyGrid(
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
        said = describe_missing_data("mnist", points, seconds)
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
            f"{describe_exponent(where(some, **{self.varied: value}), 'output')} at {self.varied} {value:g}"
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
        return restrict_claims("mnist", points, claims if self.unit else [*claims, test_error(some, SIDES[0] ** 2)])


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
        return restrict_claims("mnist", points, claims if self.unit else [*claims, test_error(points, SIDES[0] ** 2)])


class WangFigure2(BySize):
    id = "wang2022/fig2"
    title = "Smallest gradient step that flips, against the dimension"
    unit = False


class WangFigure5(BySize):
    id = "wang2022/fig5"
    title = "Smallest gradient step that flips, unit-norm data"
    unit = True


class WangFigure3(ByRadius):
    id = "wang2022/fig3"
    title = "Smallest gradient step that flips, for several radii"
    unit = False


class WangFigure6(ByRadius):
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
            return restrict_claims("mnist", points, [make_undecided_claim(text)])
        middle, spread = median(steps), deviation(steps)
        measured = f"median {middle:.4f}, standard deviation {spread:.4f} over {len(steps)} examples"
        near = 2 / 3 <= middle / 0.045 <= 4 / 3
        as_wide = all(point["width"] == WIDEST for point in points)  # other widths have another η
        measured += f", m = {points[0]['width']:g}" + ("" if as_wide else f" (the paper's has {WIDEST:g})")
        return restrict_claims("mnist", points, [Claim(text, measured, near if as_wide else None)])

    def picture(self, points: Sequence[Point]) -> Picture:
        panels = []
        for name, (label, _) in MEASURES.items():
            sample = [float(value) for point in points for value in point[f"all_{name}"]]
            marks = {"paper: .045": 0.045} if name == "step" else {}
            panels.append(Histogram("", label, {"": sample}, marks=marks))
        return Picture(panels)


FIGURES = (WangFigure2(), WangFigure3(), WangFigure5(), WangFigure6(), Figure7())


def _claimed(points: Sequence[Point], name: str, exponent: float) -> list[PlotCurve]:
    """A line of the claimed exponent through the mean at the largest dimension."""
    found = means(points, name)
    if not found:
        return []
    dims, last = [float(d) for d, _ in found], found[-1]
    return [
        PlotCurve(
            f"$d^{{{exponent:g}}}$", dims, [last[1] * (d / last[0]) ** exponent for d in dims], style="dotted", colour=6
        )
    ]
