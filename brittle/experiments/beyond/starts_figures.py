"""Ours: KKT points of many starts on the same data, beside the network of largest margin."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from brittle.experiments.base import Claim, Experiment
from brittle.experiments.beyond.starts_cells import StartCell
from brittle.experiments.cell import Point
from brittle.experiments.picture import Chart, Picture, PlotCurve
from brittle.experiments.summary import distinct, make_undecided_claim, mean, over_seeds, share, values, where

EQUAL = 1e-5
ENOUGH = 4  # KKT points of one data set for a correlation
Place = tuple[int, int]  # d and n


@dataclass(frozen=True)
class StartsGrid:
    """What a preset covers: every kind of start at every place, on every data set."""

    places: tuple[Place, ...]
    widths: tuple[int, ...]
    scales: tuple[float, ...]
    starts: int  # of each kind
    seeds: int  # of the data


GRIDS = {
    "smoke": StartsGrid(((50, 16),), (20, 100), (1.0,), starts=2, seeds=2),
    "quick": StartsGrid(((100, 31), (20, 30)), (50, 200, 1000), (0.1, 1.0), starts=3, seeds=3),
    "full": StartsGrid(
        ((100, 31), (100, 60), (20, 40)), (50, 100, 200, 500, 1000, 3000), (0.01, 0.1, 1.0, 4.0), 10, seeds=5
    ),
}


class ManyStarts(Experiment):
    """Above: γ_KKT/γ* against the width of the start, by the scale of the start. Below: mean exact radius over that of
    the network of largest margin against γ_KKT/γ*, every KKT point of every start; a colour is a data set.

    PyTorch's start with all parameters times the scale, gradient flow until its activation patterns are those that the
    solver takes on. Bars are standard deviations over starts and data sets.
    """

    id = "beyond/starts"
    title = "Margins and radii of many starts on the same data (ours)"
    kind = StartCell

    def grid(self, preset: str) -> list[StartCell]:
        grid = GRIDS[preset]
        kinds = product(grid.places, grid.widths, grid.scales, range(grid.starts), range(grid.seeds))
        return [
            StartCell(dim=d, examples=n, width=width, scale=scale, start=start, seed=seed)
            for (d, n), width, scale, start, seed in kinds
        ]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        fewer = [point for point in points if point["examples"] < point["dim"]]
        return [_none(points), _wider(points), _opposite(fewer)]

    def picture(self, points: Sequence[Point]) -> Picture:
        above, below = [], []
        for d, n in _places(points):
            some, title = where(points, dim=d, examples=n), f"$d = {d}$, $n = {n}$"
            curves = [
                over_seeds(where(some, scale=scale), "width", "kkt_share", f"scale {scale:g}")
                for scale in distinct(some, "scale")
            ]
            above.append(Chart(title, "width of the start", "$\\gamma_{KKT}/\\gamma^*$", curves, x_scale="log"))
            clouds = [_cloud(where(some, seed=seed), seed) for seed in distinct(some, "seed")]
            below.append(Chart(title, "$\\gamma_{KKT}/\\gamma^*$", "mean radius over the largest margin's", clouds))
        return Picture([*above, *below] or [Chart("", "width of the start", "", [])], columns=max(1, len(above)))


def _places(points: Sequence[Point]) -> list[Place]:
    return sorted({(point["dim"], point["examples"]) for point in points})


def _cloud(points: Sequence[Point], seed: int) -> PlotCurve:
    return PlotCurve(
        f"data {seed}", values(points, "kkt_share"), values(points, "kkt_radius"), style="points", colour=seed
    )


def _none(points: Sequence[Point]) -> Claim:
    text = f"no start leads to the largest margin (read as: up to {EQUAL:g})"
    found = values(points, "kkt_share")
    if not found:
        return make_undecided_claim(text)
    missed = [each < 1 - EQUAL for each in found]
    return Claim(text, f"{share(missed)} KKT points have less, at most {max(found):.4f} of it", all(missed))


def _wider(points: Sequence[Point]) -> Claim:
    text = "wider starts lead to larger margins (read as: on means, the widest against the narrowest, at every d and n)"
    ends: dict[Place, tuple[float, float]] = {}
    for d, n in _places(points):
        some = where(points, dim=d, examples=n)
        widths = distinct(some, "width")
        if len(widths) > 1:
            low, high = (mean(values(where(some, width=width), "kkt_share")) for width in (widths[0], widths[-1]))
            ends[d, n] = low, high
    if not ends:
        return make_undecided_claim(text)
    told = ", ".join(f"{low:.4f} → {high:.4f} at {place}" for place, (low, high) in ends.items())
    return Claim(text, told, all(low < high for low, high in ends.values()))


def _opposite(points: Sequence[Point]) -> Claim:
    text = "with n < d, the larger a KKT point's margin, the smaller its mean radius (read as: ρ < 0 on every data set)"
    found = []
    for (d, n), seed in product(_places(points), distinct(points, "seed")):
        some = where(points, dim=d, examples=n, seed=seed)
        if len(some) >= ENOUGH:
            found.append(spearman(values(some, "kkt_share"), values(some, "kkt_radius")))
    if not found:
        return make_undecided_claim(text)
    return Claim(text, "Spearman's ρ = " + ", ".join(f"{each:.2f}" for each in found), max(found) < 0)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """The correlation of ranks; 0 where one of them is constant. Equal numbers share the mean of their ranks."""
    x, y = ([fmean(_ranks(each, numbers)) for each in numbers] for numbers in (first, second))
    a, b = ([each - fmean(ranks) for each in ranks] for ranks in (x, y))
    size = (sum(each * each for each in a) * sum(each * each for each in b)) ** 0.5
    return sum(p * q for p, q in zip(a, b, strict=True)) / size if size > 0 else 0.0


def _ranks(number: float, numbers: Sequence[float]) -> range:
    below, upto = sum(each < number for each in numbers), sum(each <= number for each in numbers)
    return range(below, upto)


FIGURES = (ManyStarts(),)
