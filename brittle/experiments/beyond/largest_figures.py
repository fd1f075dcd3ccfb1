"""Ours: how much of the largest margin gradient flow leaves, and whether the largest margin is the most robust."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from brittle.experiments.base import Claim, Experiment
from brittle.experiments.beyond.largest_cells import LOSSES, LargestCell
from brittle.experiments.cell import Point
from brittle.experiments.picture import Chart, Picture, PlotCurve
from brittle.experiments.summary import (
    deviation,
    distinct,
    make_undecided_claim,
    mean,
    over_seeds,
    share,
    values,
    where,
)

EQUAL = 1e-5  # a margin that is less below the largest is counted as the largest
FEW, MANY = 0.1, 0.3  # n/d up to which and from which on something is claimed
HIGH = 100  # dimensions from which on something is claimed
LESS = 0.99
LAWS = ("sphere", "clusters")
NAMES = {"kkt": "KKT points", **{name: f"at loss {loss:g}" for name, loss in LOSSES.items()}}


@dataclass(frozen=True)
class LargestMarginGrid:
    """What a preset covers: numbers of examples n by dimension d."""

    sphere: dict[int, tuple[int, ...]]
    clusters: dict[int, tuple[int, ...]]
    width: int  # of the starts
    seeds: int  # how many


GRIDS = {
    "smoke": LargestMarginGrid({20: (6, 20)}, {200: (12,)}, 60, seeds=2),
    "quick": LargestMarginGrid(
        {20: (10, 20, 40), 50: (10, 25, 50), 100: (10, 31, 60)}, {200: (20, 40, 80)}, 200, seeds=3
    ),
    "full": LargestMarginGrid(
        {20: (10, 20, 40, 60), 50: (10, 16, 25, 50, 100), 100: (10, 31, 60, 100), 200: (20, 63, 100)},
        {200: (20, 40, 80), 1000: (50, 100, 200)},
        1000,
        seeds=10,
    ),
}


class OfTheLargest(Experiment):
    """Cells that both figures have in common."""

    kind = LargestCell

    def grid(self, preset: str) -> list[LargestCell]:
        grid = GRIDS[preset]
        return [
            LargestCell(law=law, dim=d, examples=n, width=grid.width, seed=seed)
            for law, places in zip(LAWS, (grid.sphere, grid.clusters), strict=True)
            for d, numbers in places.items()
            for n, seed in product(numbers, range(grid.seeds))
        ]


class LargestMargins(OfTheLargest):
    """Left: γ of the KKT points that gradient flow leads to, over γ*, the largest of all networks of any width (proved
    up to 1e-6), against the number of examples. Right: neurons of the networks of largest margin that were found (full
    lines; fewer may do) and of the KKT points (dashed).

    Gradient flow to loss 1e-30 from PyTorch's start; examples of the sphere of radius √d with random labels, or of
    clusters. Bars are standard deviations over seeds.
    """

    id = "beyond/largest"
    title = "What gradient flow leaves of the largest margin (ours)"

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        sphere = where(points, law="sphere")
        few = [point for point in sphere if point["examples"] <= FEW * point["dim"]]
        many = [point for point in sphere if point["dim"] >= HIGH and point["examples"] >= MANY * point["dim"]]
        crowded = [point for point in sphere if point["examples"] >= 2 * point["dim"]]
        less = f"on the sphere with d ≥ {HIGH} and n ≥ {MANY:g} d it has less than {LESS:.0%} of it"
        return [
            _largest(f"on the sphere with n ≤ {FEW:g} d the KKT point has the largest margin", few),
            _largest("on clusters the KKT point has the largest margin", where(points, law="clusters")),
            _means(less, many, "kkt_share", high=LESS),
            _more_neurons(crowded),
        ]

    def picture(self, points: Sequence[Point]) -> Picture:
        shares, neurons = [], []
        for colour, (label, some) in enumerate(_kinds(points)):
            shares.append(over_seeds(some, "examples", "kkt_share", label, colour=colour))
            neurons.append(over_seeds(some, "examples", "neurons", label, colour=colour))
            neurons.append(over_seeds(some, "examples", "kkt_neurons", "", style="dashed", colour=colour))
        return Picture(
            [
                Chart("", "examples $n$", "$\\gamma_{KKT}/\\gamma^*$", shares, x_scale="log"),
                Chart("", "examples $n$", "neurons", neurons, x_scale="log"),
            ]
        )


class RobustMargins(OfTheLargest):
    """Mean exact radius (above) and universal direction (below) of KKT points and of the networks that gradient flow
    passes at loss 1e-2 and 1e-30, over those of the network of largest margin, against n/d: above 1 the network of
    largest margin is the less robust one.

    The universal direction is the smallest c at which x - y c z/‖z‖ flips every example on the margin, z = Σ y_i x_i
    over those. Bars are standard deviations over seeds.
    """

    id = "beyond/robust-margin"
    title = "Is the largest margin the most robust? (ours)"

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        sphere = where(points, law="sphere")
        middle = [point for point in sphere if point["dim"] >= HIGH and MANY <= point["examples"] / point["dim"] < 1]
        there = f"on the sphere with d ≥ {HIGH} and {MANY:g} d ≤ n < d"
        late, early = (
            f"on the sphere networks at loss {loss:g} withstand more than it"
            for loss in (LOSSES["late"], LOSSES["early"])
        )
        other = f"on clusters networks at loss {LOSSES['early']:g} withstand less"
        return [
            _means(f"{there} KKT points withstand more than the largest margin", middle, "kkt_radius", low=1),
            _means(late, sphere, "late_radius", low=1),
            _means(early, sphere, "early_radius", low=1),
            _means(other, where(points, law="clusters"), "early_radius", high=1),
        ]

    def picture(self, points: Sequence[Point]) -> Picture:
        placed = [{**point, "density": point["examples"] / point["dim"]} for point in points]
        panels = []
        for what, label in (("radius", "mean radius over the largest margin's"), ("direction", "direction over its")):
            for name, title in NAMES.items():
                panels.append(Chart(title, "$n/d$", label, _curves(placed, f"{name}_{what}"), x_scale="log"))
        return Picture(panels)


def _kinds(points: Sequence[Point]) -> list[tuple[str, list[Point]]]:
    """Points by law and dimension, with a label for the legend."""
    kinds = [(law, d) for law in LAWS for d in distinct(where(points, law=law), "dim")]
    return [(f"{law}, $d = {d}$", where(points, law=law, dim=d)) for law, d in kinds]


def _curves(points: Sequence[Point], name: str) -> list[PlotCurve]:
    return [
        over_seeds(some, "density", name, label, colour=colour) for colour, (label, some) in enumerate(_kinds(points))
    ]


def _largest(text: str, points: Sequence[Point]) -> Claim:
    text += f" (read as: up to {EQUAL:g}, in every network)"
    found = values(points, "kkt_share")
    if not found:
        return make_undecided_claim(text)
    enough = [each >= 1 - EQUAL for each in found]
    return Claim(text, f"in {share(enough)}; the least share is {min(found):.6f}", all(enough))


def _means(text: str, points: Sequence[Point], name: str, low: float = 0.0, high: float = math.inf) -> Claim:
    """Whether the means lie between both ends."""
    text += " (read as: on means over seeds, at every d and n)"
    places = sorted({(point["dim"], point["examples"]) for point in points})
    found = {(d, n): values(where(points, dim=d, examples=n), name) for d, n in places}
    found = {place: numbers for place, numbers in found.items() if numbers}
    if not found:
        return make_undecided_claim(text)
    told = [f"{mean(some):.3f} ± {deviation(some):.3f} at ({d}, {n})" for (d, n), some in found.items()]
    return Claim(text, ", ".join(told), all(low < mean(some) < high for some in found.values()))


def _more_neurons(points: Sequence[Point]) -> Claim:
    text = "on the sphere with n ≥ 2d the network of largest margin that is found has more neurons than the KKT point"
    if not points:
        return make_undecided_claim(text)
    more = [point["neurons"] > point["kkt_neurons"] for point in points]
    told = ", ".join(f"{point['kkt_neurons']} → {point['neurons']}" for point in points)
    return Claim(text, f"in {share(more)}: {told}", all(more))


FIGURES = (LargestMargins(), RobustMargins())
