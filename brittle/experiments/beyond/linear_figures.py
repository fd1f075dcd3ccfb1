"""Ours: does a network that gradient flow is biased to withstand more than a linear classifier?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from brittle.experiments.base import Claim, Experiment
from brittle.experiments.beyond.linear_cells import LinearCell
from brittle.experiments.cell import Point
from brittle.experiments.picture import Chart, Picture
from brittle.experiments.summary import deviation, distinct, make_undecided_claim, mean, over_seeds, values, where

GAIN = 1.5
Place = tuple[int, int]  # d and n


@dataclass(frozen=True)
class LinearGrid:
    """What a preset covers: every share of examples in every dimension."""

    dims: tuple[int, ...]  # d
    shares: tuple[float, ...]  # n/d
    width: int  # of the starts
    seeds: int  # how many


GRIDS = {
    "smoke": LinearGrid((40,), (0.1, 0.3), 80, seeds=2),
    "quick": LinearGrid((50, 100), (0.1, 0.2, 0.3, 0.5), 200, seeds=3),
    "full": LinearGrid((50, 100, 200), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 500, seeds=10),
}


class AgainstLinear(Experiment):
    """The smallest radius over all examples: KKT points (full lines) and the linear classifier of largest margin
    (dashed), against n/d; examples of the sphere of radius √d with random labels, which n ≤ d separates.

    Radii are exact, by branch and bound for the network. Bars are standard deviations over seeds.
    """

    id = "beyond/linear"
    title = "KKT points against the linear classifier of largest margin (ours)"
    kind = LinearCell

    def grid(self, preset: str) -> list[LinearCell]:
        grid = GRIDS[preset]
        return [
            LinearCell(dim=d, examples=round(share * d), width=grid.width, seed=seed)
            for share, d, seed in product(grid.shares, grid.dims, range(grid.seeds))
        ]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        text = "the smallest radius of a KKT point is {} times the linear one (on means over seeds, every n and d)"
        more, less = text.format(f"at most {GAIN:g}"), text.format(f"at least {1 / GAIN:.2f}")
        gains = _gains(points)
        if not gains:
            return [make_undecided_claim(more), make_undecided_claim(less)]
        most, least = (pick(gains, key=lambda place: mean(gains[place])) for pick in (max, min))
        return [
            Claim(more, f"most {_told(most, gains)}", mean(gains[most]) <= GAIN),
            Claim(less, f"least {_told(least, gains)}", mean(gains[least]) >= 1 / GAIN),
        ]

    def picture(self, points: Sequence[Point]) -> Picture:
        placed = [{**point, "share": point["examples"] / point["dim"]} for point in points]
        radii, gains = [], []
        for colour, d in enumerate(distinct(placed, "dim")):
            some = where(placed, dim=d)
            radii.append(over_seeds(some, "share", "network", f"KKT, $d = {d}$", colour=colour))
            radii.append(over_seeds(some, "share", "linear", f"linear, $d = {d}$", style="dashed", colour=colour))
            gains.append(over_seeds(some, "share", "gain", f"smallest, $d = {d}$", colour=colour))
            gains.append(over_seeds(some, "share", "median_gain", f"median, $d = {d}$", style="dashed", colour=colour))
        return Picture([Chart("", "$n/d$", "smallest radius", radii), Chart("", "$n/d$", "KKT over linear", gains)])


def _gains(points: Sequence[Point]) -> dict[Place, list[float]]:
    """Of all seeds, by d and n."""
    places = sorted({(point["dim"], point["examples"]) for point in points})
    return {(d, n): values(where(points, dim=d, examples=n), "gain") for d, n in places}


def _told(place: Place, gains: Mapping[Place, Sequence[float]]) -> str:
    return f"{mean(gains[place]):.3f} ± {deviation(gains[place]):.3f}, at d = {place[0]}, n = {place[1]}"


FIGURES = (AgainstLinear(),)
