"""Ours, on vardi2022: the universal perturbation with unequal norms, without biases, and after other optimisers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from brittle.experiments.base import Claim, Experiment
from brittle.experiments.beyond.universal_cells import OPTIMISERS, VariedCell
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

WIDEST = 2.0  # R/r up to which c is claimed to be shorter than every example
ROOT = "$c/\\sqrt{d}$"


@dataclass(frozen=True)
class UniversalGrid:
    """What a preset covers: n = d/4 examples in each dimension."""

    dims: tuple[int, ...]  # d
    width: int  # of the networks
    seeds: int  # how many

    def cells(
        self, ratios: Sequence[float] = (1.0,), biases: Sequence[bool] = (True,), by: Sequence[str] = ("flow",)
    ) -> list[VariedCell]:
        """Every combination."""
        return [
            VariedCell(dim=d, examples=d // 4, width=self.width, ratio=ratio, biases=some, by=name, seed=seed)
            for ratio, some, name, d, seed in product(ratios, biases, by, self.dims, range(self.seeds))
        ]


GRIDS = {
    "smoke": UniversalGrid((64,), 100, seeds=2),
    "quick": UniversalGrid((100, 200), 300, seeds=5),
    "full": UniversalGrid((100, 200, 400, 800), 1000, seeds=10),
}


class Norms(Experiment):
    """The smallest c that flips every example on the margin at once, against R/r: norms between r and R, not all √d.

    In units of the shortest norm, at which the way to the origin lies, and of √d, the geometric mean of the ends.
    Gradient flow to loss 1e-30 on n = d/4 examples. Bars are standard deviations over seeds.
    """

    id = "beyond/norms"
    title = "One direction for examples of unequal norms (ours)"
    kind = VariedCell

    def grid(self, preset: str) -> list[VariedCell]:
        return GRIDS[preset].cells(ratios=(1.0, 2.0) if preset == "smoke" else (1.0, 2.0, 4.0, 8.0))

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        some = [point for point in points if point["ratio"] <= WIDEST]
        text = f"up to R/r = {WIDEST:g}, c stays below the shortest norm (read as: on means over seeds, at every d)"
        return [_universal(points), _below(text, some, "over_shortest", 1.0), _grows(points)]

    def picture(self, points: Sequence[Point]) -> Picture:
        panels = []
        for name, label in (("over_shortest", "$c$ over the shortest norm"), ("over_root", ROOT)):
            curves = [over_seeds(where(points, dim=d), "ratio", name, f"$d = {d}$") for d in distinct(points, "dim")]
            panels.append(Chart("", "$R/r$", label, curves, x_scale="log"))
        return Picture(panels)


class Biases(Experiment):
    """c/√d for networks with hidden biases and for networks without, after gradient flow to loss 1e-30.

    n = d/4 examples of the sphere, the same data and weights for both. Bars are standard deviations over seeds.
    """

    id = "beyond/biases"
    title = "One direction for networks without biases (ours)"
    kind = VariedCell

    def grid(self, preset: str) -> list[VariedCell]:
        return GRIDS[preset].cells(biases=(True, False))

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        text = "biases make no difference to c (read as: on means over seeds, within 10 % at every d)"
        with_, without = (_means(where(points, biases=some), "size") for some in (True, False))
        if not with_ or with_.keys() != without.keys():
            return [_universal(points), make_undecided_claim(text)]
        ratios = {d: without[d] / with_[d] for d in with_}
        measured = "c without over c with: " + ", ".join(f"{ratio:.3f} at d = {d}" for d, ratio in ratios.items())
        return [_universal(points), Claim(text, measured, all(abs(ratio - 1) <= 0.1 for ratio in ratios.values()))]

    def picture(self, points: Sequence[Point]) -> Picture:
        named = ((True, "with biases"), (False, "without"))
        curves = [over_seeds(where(points, biases=some), "dim", "over_root", label) for some, label in named]
        return Picture([Chart("", "input dimension $d$", ROOT, [curve for curve in curves if curve.x])])


class Optimisers(Experiment):
    """c/√d after gradient flow, and along the same direction after other optimisers from the same start.

    Loss 1e-30, n = d/4 examples of the sphere. The others take steps on ln L: constant ones, with momentum .9, Adam's
    with its usual moments, and the signs of the gradient. Bars are standard deviations over seeds.
    """

    id = "beyond/optimisers"
    title = "The direction of gradient flow against other optimisers (ours)"
    kind = VariedCell

    def grid(self, preset: str) -> list[VariedCell]:
        grid = GRIDS[preset] if preset != "smoke" else replace(GRIDS[preset], seeds=1)
        return grid.cells(by=("flow", *OPTIMISERS))

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        return [_universal(points), *(_as_flow(name, where(points, by=name)) for name in OPTIMISERS)]

    def picture(self, points: Sequence[Point]) -> Picture:
        curves: list[PlotCurve] = []
        for name in ("flow", *OPTIMISERS):
            some = where(points, by=name)
            style = "line" if name == "flow" else "dashed"
            curves += [over_seeds(some, "dim", "over_root", name, style=style)] if some else []
        return Picture([Chart("", "input dimension $d$", ROOT, curves)])


def _as_flow(name: str, points: Sequence[Point]) -> Claim:
    text = f"{name}: the c of flow's direction is that of flow (read as: on means over seeds, within 15 % at every d)"
    by_dim = {d: values(where(points, dim=d), "beside_flow") for d in distinct(points, "dim")}
    if not points or not all(by_dim.values()):
        return make_undecided_claim(text)
    measured = ", ".join(f"{mean(each):.3f} ± {deviation(each):.3f} at d = {d}" for d, each in by_dim.items())
    return Claim(text, f"c over flow's: {measured}", all(abs(mean(each) - 1) <= 0.15 for each in by_dim.values()))


def _universal(points: Sequence[Point]) -> Claim:
    text = "one direction flips every example on the margin at once"
    if not points:
        return make_undecided_claim(text)
    flipped = [point.get("size") is not None for point in points]
    return Claim(text, f"in {share(flipped)} networks", all(flipped))


def _below(text: str, points: Sequence[Point], name: str, limit: float) -> Claim:
    places = [(d, ratio) for d in distinct(points, "dim") for ratio in distinct(points, "ratio")]
    means = {place: mean(values(where(points, dim=place[0], ratio=place[1]), name)) for place in places}
    if not means:
        return make_undecided_claim(text)
    (d, ratio), highest = max(means.items(), key=lambda item: item[1])
    return Claim(text, f"at most {highest:.3f} (d = {d}, R/r = {ratio:g})", highest < limit)


def _grows(points: Sequence[Point]) -> Claim:
    text = "c grows no faster with R/r than the largest norm, √(R/r) (read as: on means over seeds, at every d)"
    shares: dict[tuple[int, float], float] = {}
    for d in distinct(points, "dim"):
        means = {r: mean(values(where(points, dim=d, ratio=r), "size")) for r in distinct(points, "ratio")}
        if 1.0 in means:
            shares |= {(d, r): size / means[1.0] / math.sqrt(r) for r, size in means.items() if r > 1}
    if not shares:
        return make_undecided_claim(text)
    (d, r), most = max(shares.items(), key=lambda item: item[1])
    return Claim(text, f"c over c at equal norms is at most {most:.3f} √(R/r) (d = {d}, R/r = {r:g})", most <= 1)


def _means(points: Sequence[Point], name: str) -> dict[int, float]:
    return {d: mean(values(where(points, dim=d), name)) for d in distinct(points, "dim")}


FIGURES = (Norms(), Biases(), Optimisers())
