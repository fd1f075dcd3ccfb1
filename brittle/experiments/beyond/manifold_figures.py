"""Ours, on Open Problem 7.1 of melamed2023: perturbations orthogonal to the tangent space of a curved manifold."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from brittle.experiments.base import Claim, Experiment
from brittle.experiments.beyond.manifold_cells import MANIFOLDS, ManifoldCell
from brittle.experiments.cell import Point
from brittle.experiments.picture import Chart, Picture, PlotCurve
from brittle.experiments.summary import deviation, distinct, make_undecided_claim, mean, over_seeds, values, where

SHORT = 0.75  # of ‖x‖
PARTS = {"along": "along $T$", "across_in_span": "across $T$, in the span", "off_span": "off the span"}


@dataclass(frozen=True)
class ManifoldGrid:
    """What a preset covers; the last span is everything."""

    dim: int  # d
    spans: tuple[int, ...]  # s
    examples: int  # n
    seeds: int  # how many


GRIDS = {
    "smoke": ManifoldGrid(40, (20, 40), 30, seeds=2),
    "quick": ManifoldGrid(100, (10, 20, 40, 70, 100), 60, seeds=5),
    "full": ManifoldGrid(400, (20, 40, 80, 160, 280, 400), 200, seeds=10),
}


class OffTheTangents(Experiment):
    """Gradients at the training examples by direction, and the median flip across the tangent space T, in units of ‖x‖.

    A curve (1 dimension), a torus (half of its span) and a sphere (its span but one), against the dimension s of their
    span in R^d. At s = d there is no subspace to leave, and Theorem 4.1 says nothing. The networks have no biases, so
    that the way to the origin, which is normal to all three, flips at ‖x‖ already (dotted). Two layers, the first one
    trained until every margin is 1. Bars are standard deviations over seeds.
    """

    id = "beyond/manifold"
    title = "The gradient off the tangent space of a curved manifold (ours)"
    kind = ManifoldCell

    def grid(self, preset: str) -> list[ManifoldCell]:
        grid = GRIDS[preset]
        return [
            ManifoldCell(manifold=name, dim=grid.dim, span=s, examples=grid.examples, width=2 * grid.dim, seed=seed)
            for name, s, seed in product(MANIFOLDS, grid.spans, range(grid.seeds))
        ]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        return [*(_short(name, points) for name in ("curve", "torus")), _radial(points), _promised(points)]

    def picture(self, points: Sequence[Point]) -> Picture:
        panels = []
        for name in MANIFOLDS:
            some = where(points, manifold=name)
            curves = [over_seeds(some, "span", part, label) for part, label in PARTS.items()]
            panels.append(Chart(name, "dimension of the span", "mean gradient", curves if some else []))
        flips = [over_seeds(where(points, manifold=name), "span", "flip", name) for name in MANIFOLDS]
        spans = [float(s) for s in distinct(points, "span")]
        trivial = PlotCurve("the way to the origin", spans, [1.0] * len(spans), style="dotted")
        return Picture([*panels, Chart("", "dimension of the span", "median flip across $T$", [*flips, trivial])], 2)


def _full(points: Sequence[Point], name: str) -> list[Point]:
    return [point for point in where(points, manifold=name) if point["span"] == point["dim"]]


def _short(name: str, points: Sequence[Point]) -> Claim:
    text = f"{name} that spans everything: half of the examples flip across T within {SHORT:g}‖x‖ (mean over seeds)"
    flips = values(_full(points, name), "flip")
    if not flips:
        return make_undecided_claim(text)
    return Claim(text, f"median flip {mean(flips):.3f} ± {deviation(flips):.3f} of ‖x‖", mean(flips) <= SHORT)


def _radial(points: Sequence[Point]) -> Claim:
    text = "sphere that spans everything: only the way to the origin is left across T (read as: the flip is 1 to 1e-6)"
    flips = values(_full(points, "sphere"), "flip")
    if not flips:
        return make_undecided_claim(text)
    worst = max(abs(flip - 1) for flip in flips)
    return Claim(text, f"farthest from 1 by {worst:.1e}", worst <= 1e-6)


def _promised(points: Sequence[Point]) -> Claim:
    """The theorem speaks of one x0, with probability 1 - e^(-ℓ/16): its bound is compared with a mean."""
    text = "off a span that is not everything the gradient is at least √(kℓ/(2md)), Theorem 4.1's bound for the span"
    ratios = values(points, "over_promised")
    if not ratios:
        return make_undecided_claim(text)
    measured = f"least mean over the examples {min(ratios):.3f} times that, over {len(ratios)} networks"
    return Claim(f"{text} (read as: on the mean over the examples of each network)", measured, min(ratios) >= 1)


FIGURES = (OffTheTangents(),)
