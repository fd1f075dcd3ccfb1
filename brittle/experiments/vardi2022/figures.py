"""vardi2022, figures 1 and 2: one direction flips every example on the margin, far below √d, at every width."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from brittle.experiments.base import Claim, Experiment, Seconds
from brittle.experiments.cell import Point
from brittle.experiments.picture import Chart, Curve, Picture
from brittle.experiments.summary import distinct, over_seeds, undecided, values, where
from brittle.experiments.vardi2022.cells import UniversalCell
from brittle.experiments.vardi2022.claims import (
    VARIANTS,
    at_least,
    below_root,
    falls,
    recipe_remark,
    similar,
    spread,
    universal,
)


@dataclass(frozen=True)
class Grid:
    """What a preset covers; cells of more than `most` examples are left out, but for the crowded ones."""

    dims: tuple[int, ...]  # d
    alphas: tuple[float, ...]  # n = d^α
    crowded: tuple[int, ...]  # d at n = d^1.5, beside the others
    width: int  # of figures 1a, 2a and 2b
    widths: tuple[int, ...]  # of figure 1b
    width_dims: tuple[int, ...]  # d of figure 1b
    seeds: int  # how many
    similar: tuple[float, ...]  # α of section 6's other loss and law
    most: int = 10**6  # examples


HUNDREDS = tuple(range(100, 1001, 100))
GRIDS = {
    "smoke": Grid((64, 100), (0.5, 0.8), (9, 16), 150, (100, 150), (49,), seeds=2, similar=(0.5,)),
    "quick": Grid(
        (100, 200, 400), (0.5, 0.8, 1.0, 1.2), (36, 49, 64, 100), 1000, (100, 300, 1000, 3000), (100, 200), seeds=3,
        similar=(0.5, 1.0, 1.2), most=600,
    ),
    "full": Grid(
        HUNDREDS, (0.5, 0.8, 1.0, 1.2, 1.5), (36, 49, 64, 81), 1000, (100, 500, 1000, 2000, 4000, 8000), HUNDREDS,
        seeds=5, similar=(0.5, 0.8, 1.0, 1.2),
    ),
}  # fmt: skip
CROWDED = 1.5
LARGEST = 200  # d of section 6


def by_size(preset: str, *at: Literal["flow", "kkt"]) -> list[UniversalCell]:
    """n = d^α examples for every d and α; KKT points where n ≤ d."""
    grid = GRIDS[preset]
    places = [(alpha, d) for alpha, d in product(grid.alphas, grid.dims) if d**alpha <= grid.most]
    places += [(CROWDED, d) for d in grid.crowded]
    return [
        UniversalCell(dim=d, alpha=alpha, width=grid.width, seed=seed, at=kind)
        for kind, (alpha, d), seed in product(at, places, range(grid.seeds))
        if kind == "flow" or alpha <= 1
    ]


def by_width(preset: str) -> list[UniversalCell]:
    """n = d examples for every d and width."""
    grid = GRIDS[preset]
    return [
        UniversalCell(dim=d, alpha=1.0, width=width, seed=seed, at="flow")
        for width, d, seed in product(grid.widths, grid.width_dims, range(grid.seeds))
    ]


class Figure1a(Experiment):
    """The smallest c at which x - y·c·z/‖z‖ flips every example on the margin, z = Σ y_i x_i over them.

    Sphere data of n = d^α examples. Full lines: networks trained by gradient flow to loss 1e-30; dashed lines: KKT
    points of the max-margin problem; dotted: √d, at which a perturbation is trivial. Bars are standard deviations.
    """

    id = "vardi2022/fig1a"
    title = "Smallest universal perturbation against the dimension"
    kind = UniversalCell

    def grid(self, preset: str) -> list[UniversalCell]:
        return by_size(preset, "flow", "kkt")

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        return [*falls(points), *below_root(points), *universal(points)]

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
        return recipe_remark(points, seconds)


class Figure1b(Experiment):
    """The smallest c that flips every example on the margin, for networks of several widths on n = d examples.

    Gradient flow to loss 1e-30 on sphere data; dotted: √d. Bars are standard deviations over seeds.
    """

    id = "vardi2022/fig1b"
    title = "Smallest universal perturbation at several widths"
    kind = UniversalCell

    def grid(self, preset: str) -> list[UniversalCell]:
        return by_width(preset)

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        text = "the width has no effect on c (read as: the widths' means at each d lie within 25 % of their mean)"
        if len(distinct(points, "width")) < 2:
            return [undecided(text), *below_root(points)]
        spreads = {d: spread(where(points, dim=d)) for d in distinct(points, "dim")}
        d = max(spreads, key=lambda dim: spreads[dim])
        measured = f"largest distance from the mean {spreads[d]:.1%}, at d = {d}"
        return [Claim(text, measured, spreads[d] <= 0.25), *below_root(points)]

    def picture(self, points: Sequence[Point]) -> Picture:
        curves = [
            over_seeds(where(points, width=width), "dim", "size", f"width {width}")
            for width in distinct(points, "width")
        ]
        return Picture([_against_dim("$n = d$", "smallest universal $c$", [*curves, _root(points)])])


class MarginFigure(Experiment):
    """Which examples are on the margin (q ≤ 1.1 min q) after gradient flow to loss 1e-30."""

    kind = UniversalCell

    def grid(self, preset: str) -> list[UniversalCell]:
        return by_size(preset, "flow")


class Figure2a(MarginFigure):
    """The share of the examples that are on the margin (q ≤ 1.1 min q) after gradient flow to loss 1e-30."""

    id = "vardi2022/fig2a"
    title = "Share of the examples on the margin"

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        root, rest = where(points, alpha=0.5), [point for point in points if point["alpha"] != 0.5]
        return [
            at_least("every example is on the margin at n = √d", root, 1.0),
            at_least("at least 92 % are on the margin at the other sample sizes", rest, 0.92),
        ]

    def picture(self, points: Sequence[Point]) -> Picture:
        return Picture([_against_dim("", "share on the margin", _by_alpha(points, "share_on_margin"))])


class Figure2b(MarginFigure):
    """The number of examples that are not on the margin after gradient flow to loss 1e-30."""

    id = "vardi2022/fig2b"
    title = "Number of examples off the margin"

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        text = "no example is off the margin at n = √d"
        root = where(points, alpha=0.5)
        if not root:
            return [undecided(text)]
        most = max(values(root, "off_margin"))
        return [Claim(text, f"at most {most:.0f} in each of {len(root)} networks", most == 0)]

    def picture(self, points: Sequence[Point]) -> Picture:
        return Picture([_against_dim("", "examples off the margin", _by_alpha(points, "off_margin"))])


class Section6(Experiment):
    """The settings that section 6 tried and calls similar: the logistic loss, and Gaussian examples N(0, I/d).

    Left: the smallest c that flips every example on the margin, in units of the examples' norm; right: the share of
    the examples on the margin. Full lines: exponential loss on the sphere, as in figures 1 and 2; dashed: logistic
    loss; single points: Gaussian examples. Bars are standard deviations over seeds.
    """

    id = "vardi2022/sec6"
    title = "Other losses and laws of the examples"
    kind = UniversalCell

    def grid(self, preset: str) -> list[UniversalCell]:
        grid = GRIDS[preset]
        usual = [c for c in by_size(preset, "flow") if c.alpha in grid.similar and c.dim <= LARGEST]
        others = [replace(cell, law=law, loss=loss) for law, loss in VARIANTS.values() for cell in usual]
        return [*usual, *others]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        return [claim for name in VARIANTS for claim in similar(points, name)]

    def picture(self, points: Sequence[Point]) -> Picture:
        kinds = {"sphere": ("sphere", "exponential"), **VARIANTS}
        charts = []
        for measure, label in (("ratio", r"$c/\|x\|$"), ("share_on_margin", "share on the margin")):
            curves = [
                over_seeds(some, "dim", measure, rf"$n = d^{{{alpha:g}}}$, {name}", style=style, colour=colour)
                for colour, alpha in enumerate(distinct(points, "alpha"))
                for (name, (law, loss)), style in zip(kinds.items(), ("line", "dashed", "points"), strict=True)
                if (some := where(points, alpha=alpha, law=law, loss=loss))
            ]
            charts.append(_against_dim("", label, curves))
        return Picture(charts, columns=2)


FIGURES = (Figure1a(), Figure1b(), Figure2a(), Figure2b(), Section6())


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
