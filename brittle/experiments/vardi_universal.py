"""vardi2022, figures 1 and 2: one direction flips every example on the margin, far below √d, at every width."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from brittle.common.progress import duration
from brittle.experiments.base import Claim, Params, Point, Seconds
from brittle.experiments.picture import Chart, Curve, Picture
from brittle.experiments.summary import distinct, mean, over_seeds, share, undecided, values, where
from brittle.experiments.vardi_cells import UniversalCells, examples


@dataclass(frozen=True)
class Grid:
    """What a preset covers; cells of more than `most` examples are left out."""

    dims: tuple[int, ...]
    alphas: tuple[float, ...]
    width: int
    widths: tuple[int, ...]  # of figure 1b
    width_dims: tuple[int, ...]
    seeds: int
    most: int = 10**6


HUNDREDS = tuple(range(100, 1001, 100))
GRIDS = {
    "smoke": Grid((64, 100), (0.5, 0.8), 150, (100, 150), (49,), seeds=2),
    "quick": Grid((100, 200, 400), (0.5, 0.8, 1.0, 1.2), 1000, (100, 300, 1000, 3000), (100, 200), seeds=3, most=600),
    "full": Grid(HUNDREDS, (0.5, 0.8, 1.0, 1.2, 1.5), 1000, (100, 500, 1000, 2000, 4000, 8000), HUNDREDS, seeds=5),
}


def by_size(preset: str, *at: str) -> list[Params]:
    """n = d^α examples for every d and α; KKT points where n ≤ d."""
    grid = GRIDS[preset]
    cells: list[Params] = [
        {"dim": d, "alpha": alpha, "width": grid.width, "seed": seed, "at": kind}
        for kind, alpha, d, seed in product(at, grid.alphas, grid.dims, range(grid.seeds))
        if kind == "flow" or alpha <= 1
    ]
    return [cell for cell in cells if examples(cell) <= grid.most]


def by_width(preset: str) -> list[Params]:
    grid = GRIDS[preset]
    return [
        {"dim": d, "alpha": 1.0, "width": width, "seed": seed, "at": "flow"}
        for width, d, seed in product(grid.widths, grid.width_dims, range(grid.seeds))
    ]


class Figure1a(UniversalCells):
    """The smallest c at which x - y·c·z/‖z‖ flips every example on the margin, z = Σ y_i x_i over them.

    Sphere data of n = d^α examples. Full lines: networks trained by gradient flow to loss 1e-30; dashed lines: KKT
    points of the max-margin problem; dotted: √d, at which a perturbation is trivial. Bars are standard deviations.
    """

    id = "vardi2022/fig1a"
    title = "Smallest universal perturbation against the dimension"

    def grid(self, preset: str) -> list[Params]:
        return by_size(preset, "flow", "kkt")

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        return [*_far_below(points), *_universal(points)]

    def picture(self, points: Sequence[Point]) -> Picture:
        curves = []
        for colour, alpha in enumerate(distinct(points, "alpha")):
            for at, style, name in (("flow", "line", "loss $10^{-30}$"), ("kkt", "dashed", "KKT")):
                some = where(points, alpha=alpha, at=at)
                label = rf"$n = d^{{{alpha:g}}}$, {name}"
                if some:
                    curves.append(over_seeds(some, "dim", "size", label, style=style, colour=colour))
        return Picture([_against_dim("", "smallest universal $c$", [*curves, _root(points)])])

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        return _recipe(points, seconds)


class Figure1b(UniversalCells):
    """The smallest c that flips every example on the margin, for networks of several widths on n = d examples.

    Gradient flow to loss 1e-30 on sphere data; dotted: √d. Bars are standard deviations over seeds.
    """

    id = "vardi2022/fig1b"
    title = "Smallest universal perturbation at several widths"

    def grid(self, preset: str) -> list[Params]:
        return by_width(preset)

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        text = "the width has no effect on c (read as: the widths' means at each d lie within 25 % of their mean)"
        if len(distinct(points, "width")) < 2:
            return [undecided(text), *_far_below(points)]
        spreads = {d: _spread(where(points, dim=d)) for d in distinct(points, "dim")}
        d = max(spreads, key=lambda dim: spreads[dim])
        measured = f"largest distance from the mean {spreads[d]:.1%}, at d = {d}"
        return [Claim(text, measured, spreads[d] <= 0.25), *_far_below(points)]

    def picture(self, points: Sequence[Point]) -> Picture:
        curves = [
            over_seeds(where(points, width=width), "dim", "size", f"width {width}")
            for width in distinct(points, "width")
        ]
        return Picture([_against_dim("$n = d$", "smallest universal $c$", [*curves, _root(points)])])


class Figure2a(UniversalCells):
    """The share of the examples that are on the margin (q ≤ 1.1 min q) after gradient flow to loss 1e-30."""

    id = "vardi2022/fig2a"
    title = "Share of the examples on the margin"

    def grid(self, preset: str) -> list[Params]:
        return by_size(preset, "flow")

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        root, rest = where(points, alpha=0.5), [point for point in points if point["alpha"] != 0.5]
        return [
            _at_least("every example is on the margin at n = √d", root, 1.0),
            _at_least("at least 92 % are on the margin at the other sample sizes", rest, 0.92),
        ]

    def picture(self, points: Sequence[Point]) -> Picture:
        return Picture([_against_dim("", "share on the margin", _by_alpha(points, "share_on_margin"))])


class Figure2b(UniversalCells):
    """The number of examples that are not on the margin after gradient flow to loss 1e-30."""

    id = "vardi2022/fig2b"
    title = "Number of examples off the margin"

    def grid(self, preset: str) -> list[Params]:
        return by_size(preset, "flow")

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        text = "no example is off the margin at n = √d"
        root = where(points, alpha=0.5)
        if not root:
            return [undecided(text)]
        most = max(values(root, "off_margin"))
        return [Claim(text, f"at most {most:.0f} in each of {len(root)} networks", most == 0)]

    def picture(self, points: Sequence[Point]) -> Picture:
        return Picture([_against_dim("", "examples off the margin", _by_alpha(points, "off_margin"))])


FIGURES = (Figure1a(), Figure1b(), Figure2a(), Figure2b())


def _groups(points: Sequence[Point]) -> list[list[Point]]:
    """The seeds of each cell together."""
    names = ("at", "alpha", "width", "dim")
    keys = dict.fromkeys(tuple(point[name] for name in names) for point in points)
    return [where(points, **dict(zip(names, key, strict=True))) for key in keys]


def _far_below(points: Sequence[Point]) -> list[Claim]:
    text = "c is far below √d (read as: over seeds at most ¾√d in every place, at most ½√d on average over places)"
    claims = []
    for at, name in (("flow", "at loss 1e-30"), ("kkt", "at KKT points")):
        groups = [group for group in _groups(where(points, at=at)) if values(group, "ratio")]
        if not groups:
            continue
        ratios = [mean(values(group, "ratio")) for group in groups]
        highest, one = max(zip(ratios, (group[0] for group in groups), strict=True), key=lambda pair: pair[0])
        place = f"d = {one['dim']}, α = {one['alpha']:g}, width {one['width']}"
        measured = f"c/√d at most {highest:.3f} ({place}), {mean(ratios):.3f} on average"
        claims.append(Claim(f"{name}, {text}", measured, highest <= 0.75 and mean(ratios) <= 0.5))
    return claims or [undecided(text)]


def _universal(points: Sequence[Point]) -> list[Claim]:
    text = "one direction flips every example on the margin at once"
    if not points:
        return [undecided(text)]
    flipped = [point.get("size") is not None for point in points]
    return [Claim(text, f"in {share(flipped)} networks", all(flipped))]


def _at_least(text: str, points: Sequence[Point], threshold: float) -> Claim:
    """Judged on means over seeds, as the paper's plot shows them."""
    if not points:
        return undecided(text)
    groups = _groups(points)
    means = [mean(values(group, "share_on_margin")) for group in groups]
    lowest = min(range(len(means)), key=means.__getitem__)
    one, single = groups[lowest][0], min(values(points, "share_on_margin"))
    place = f"d = {one['dim']}, α = {one['alpha']:g}"
    return Claim(
        text, f"lowest mean {means[lowest]:.1%} ({place}), lowest network {single:.1%}", min(means) >= threshold - 1e-9
    )


def _spread(points: Sequence[Point]) -> float:
    """How far the mean of some width is from the mean of all, relatively."""
    means = [mean(values(where(points, width=width), "size")) for width in distinct(points, "width")]
    return max(abs(each / mean(means) - 1) for each in means)


def _by_alpha(points: Sequence[Point], name: str) -> list[Curve]:
    return [
        over_seeds(where(points, alpha=alpha), "dim", name, rf"$n = d^{{{alpha:g}}}$", colour=colour)
        for colour, alpha in enumerate(distinct(points, "alpha"))
    ]


def _root(points: Sequence[Point]) -> Curve:
    dims = [float(d) for d in distinct(points, "dim")]
    return Curve(r"$\sqrt{d}$", dims, [math.sqrt(d) for d in dims], style="dotted", colour=6)


def _against_dim(title: str, y_label: str, curves: Sequence[Curve]) -> Chart:
    return Chart(title, "input dimension $d$", y_label, curves)


def _recipe(points: Sequence[Point], seconds: Seconds) -> list[str]:
    trained = where(points, at="flow")
    if not trained:
        return []
    iterations = mean(values(trained, "recipe_iterations"))
    evaluations = mean(values(trained, "gradient_evaluations"))
    return [
        f"The paper's own schedule would take about {iterations:,.0f} iterations for each network, where flow took "
        f"{evaluations:,.0f} gradient evaluations: {duration(seconds['recipe'])} for these {len(trained)} networks on "
        f"one core, timed on a few of its iterations in each cell. All cells here took {duration(seconds['cells'])}."
    ]
