"""vardi2022, figures 1 and 2: one direction flips every example on the margin, far below √d, at every width."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, NamedTuple

from brittle.common.progress import duration
from brittle.experiments.base import Claim, Experiment, Seconds
from brittle.experiments.cell import Point
from brittle.experiments.picture import Chart, Picture, PlotCurve
from brittle.experiments.summary import (
    distinct,
    exponent,
    make_undecided_claim,
    mean,
    over_seeds,
    relative_spread,
    share,
    values,
    where,
)
from brittle.experiments.vardi2022.cells import UniversalCell

ENDS = {"flow": "at loss 1e-30", "kkt": "at KKT points"}
SMALLEST = 100  # the paper's smallest d


def falls(points: Sequence[Point]) -> list[Claim]:
    """c/√d by d at every sample size, with its exponent over all networks."""
    claims = []
    for at, alpha in product(ENDS, distinct(points, "alpha")):
        some = [point for point in where(points, at=at, alpha=alpha) if point["ratio"] is not None]
        if not some:
            continue
        text = f"{ENDS[at]}, n = d^{alpha:g}: c/√d falls with d (read as: so does its fitted power of d)"
        by_dim = ", ".join(f"{mean(values(where(some, dim=d), 'ratio')):.3f} at {d}" for d in distinct(some, "dim"))
        power = exponent("c/√d", "d", values(some, "dim"), values(some, "ratio"))
        if power is None:
            claims.append(Claim(text, by_dim, None))
        else:
            claims.append(Claim(text, f"{by_dim}: {power}", power.below(0)))
    return claims or [make_undecided_claim("c/√d falls with d")]


def below_root(points: Sequence[Point]) -> list[Claim]:
    """c against √d, and from which dimension on it is below at every sample size."""
    claims = []
    for at, name in ENDS.items():
        text = f"{name}, c is below √d (read as: in the mean over seeds, at every d ≥ {SMALLEST} and sample size)"
        found = {alpha: _ratios(where(points, at=at, alpha=alpha)) for alpha in distinct(points, "alpha")}
        told = [f"{_from(ratios)} at n = d^{alpha:g}" for alpha, ratios in found.items() if ratios]
        judged = [ratio for ratios in found.values() for d, ratio in ratios.items() if d >= SMALLEST]
        if told:
            highest = f", at most {max(judged):.3f}√d there" if judged else ""
            holds = max(judged) < 1 if judged else None
            claims.append(Claim(text, f"below from {', '.join(told)}{highest}", holds))
    return claims or [make_undecided_claim("c is below √d")]


def _ratios(points: Sequence[Point]) -> dict[int, float]:
    """The mean of c/√d at each d; infinite where some network is flipped at no size."""
    dims = distinct(points, "dim")
    return {d: mean([math.inf if p["ratio"] is None else p["ratio"] for p in where(points, dim=d)]) for d in dims}


def _from(ratios: Mapping[int, float]) -> str:
    """The first of the measured dimensions from which on the ratio is below one."""
    above = [d for d, ratio in ratios.items() if ratio >= 1]
    after = [d for d in ratios if d > max(above, default=0)]
    return f"d = {min(after)}" if after else f"no d ≤ {max(ratios)}"


def universal(points: Sequence[Point]) -> list[Claim]:
    """Whether some size flips all examples on the margin, in every network."""
    text = "one direction flips every example on the margin at once"
    if not points:
        return [make_undecided_claim(text)]
    flipped = [point.get("size") is not None for point in points]
    return [Claim(text, f"in {share(flipped)} networks", all(flipped))]


def at_least(text: str, points: Sequence[Point], threshold: float) -> Claim:
    """Judged on means over seeds at the paper's dimensions, as its plot shows them; smaller ones are told of."""
    if not points:
        return make_undecided_claim(text)
    shares = {key: mean(values(group, "share_on_margin")) for key, group in _groups(points).items()}
    judged = {key: share for key, share in shares.items() if key.dim >= SMALLEST}
    told = [f"lowest mean {_lowest(judged)}" if judged else f"no d ≥ {SMALLEST}"]
    if len(judged) < len(shares):
        told.append(f"below d = {SMALLEST} {_lowest({key: shares[key] for key in shares.keys() - judged.keys()})}")
    told.append(f"lowest network {min(values(points, 'share_on_margin')):.1%}")
    return Claim(text, ", ".join(told), min(judged.values()) >= threshold - 1e-9 if judged else None)


def _lowest(shares: "Mapping[GridCell, float]") -> str:
    place = min(shares, key=lambda key: shares[key])
    return f"{shares[place]:.1%} (d = {place.dim}, α = {place.alpha:g})"


def spread(points: Sequence[Point]) -> float:
    """How far the mean of some width is from the mean of all, relatively."""
    return relative_spread([mean(values(where(points, width=width), "size")) for width in distinct(points, "width")])


def recipe_remark(points: Sequence[Point], seconds: Seconds) -> list[str]:
    """What the paper's schedule would have taken."""
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


class GridCell(NamedTuple):
    """What the seeds of one place have in common."""

    at: str
    alpha: float
    width: int
    dim: int


def _groups(points: Sequence[Point]) -> dict[GridCell, list[Point]]:
    """The seeds of each place together."""
    places = dict.fromkeys(GridCell(*(point[name] for name in GridCell._fields)) for point in points)
    return {place: where(points, **place._asdict()) for place in places}


def similar(points: Sequence[Point], name: str) -> list[Claim]:
    """One variant of section 6 beside the setting of the figures, on means over seeds at the same places."""
    usual = where(points, law="sphere", loss="exponential")
    law, loss = VARIANTS[name]
    other = where(points, law=law, loss=loss)
    texts = (
        f"{name}: similar c/‖x‖ (read as: means over seeds within 10 %)",
        f"{name}: a similar share on the margin (read as: means over seeds within 5 points)",
    )
    pairs = [(place, group, _groups(other).get(place, [])) for place, group in _groups(usual).items()]
    pairs = [pair for pair in pairs if pair[2]]
    if not pairs:
        return [make_undecided_claim(text) for text in texts]
    sizes = [(place, mean(values(a, "ratio")), mean(values(b, "ratio"))) for place, a, b in pairs]
    shares = [(p, mean(values(a, "share_on_margin")), mean(values(b, "share_on_margin"))) for p, a, b in pairs]
    place, before, after = max(sizes, key=lambda each: abs(each[2] / each[1] - 1))
    here, first, second = max(shares, key=lambda each: abs(each[2] - each[1]))
    return [
        Claim(
            texts[0],
            f"farthest {after:.4f} against {before:.4f} ({_words(place)})",
            abs(after / before - 1) <= 0.1,
        ),
        Claim(texts[1], f"farthest {second:.1%} against {first:.1%} ({_words(here)})", abs(second - first) <= 0.05),
    ]


def _words(place: GridCell) -> str:
    return f"d = {place.dim}, α = {place.alpha:g}"


Law = Literal["sphere", "gaussian"]
LossName = Literal["exponential", "logistic"]
VARIANTS: dict[str, tuple[Law, LossName]] = {
    "logistic loss": ("sphere", "logistic"),
    "Gaussian examples N(0, I/d)": ("gaussian", "exponential"),
}


@dataclass(frozen=True)
class SphereGrid:
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
    "smoke": SphereGrid((64, 100), (0.5, 0.8), (9, 16), 150, (100, 150), (49,), seeds=2, similar=(0.5,)),
    "quick": SphereGrid(
        (100, 200, 400), (0.5, 0.8, 1.0, 1.2), (36, 49, 64, 100), 1000, (100, 300, 1000, 3000), (100, 200), seeds=3,
        similar=(0.5, 1.0, 1.2), most=600,
    ),
    "full": SphereGrid(
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


class VardiFigure1a(Experiment):
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


class VardiFigure1b(Experiment):
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
            return [make_undecided_claim(text), *below_root(points)]
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
            return [make_undecided_claim(text)]
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


FIGURES = (VardiFigure1a(), VardiFigure1b(), Figure2a(), Figure2b(), Section6())


def _by_alpha(points: Sequence[Point], name: str) -> list[PlotCurve]:
    return [
        over_seeds(where(points, alpha=alpha), "dim", name, rf"$n = d^{{{alpha:g}}}$", colour=colour)
        for colour, alpha in enumerate(distinct(points, "alpha"))
    ]


def _root(points: Sequence[Point]) -> PlotCurve:
    dims = [float(d) for d in distinct(points, "dim")]
    return PlotCurve(r"$\sqrt{d}$", dims, [math.sqrt(d) for d in dims], style="dotted", colour=6)


def _against_dim(title: str, y_label: str, curves: Sequence[PlotCurve]) -> Chart:
    return Chart(title, "input dimension $d$", y_label, curves)
