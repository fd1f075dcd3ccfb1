"""Ours, on melamed2023: its data lie on a subspace exactly, those of the world only nearly."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from brittle.experiments.base import Claim, Experiment
from brittle.experiments.beyond.noise_cells import NoiseCell
from brittle.experiments.cell import Point
from brittle.experiments.picture import Chart, Picture
from brittle.experiments.summary import deviation, distinct, make_undecided_claim, mean, over_seeds, values, where

LITTLE, SAME, LEAST = 0.1, 0.15, 0.9


@dataclass(frozen=True)
class NoiseGrid:
    """What a preset covers: P of d/5 dimensions, 3d/10 examples, as many neurons as dimensions."""

    dims: tuple[int, ...]  # d
    noises: tuple[float, ...]  # beside the length on P
    seeds: int  # how many


GRIDS = {
    "smoke": NoiseGrid((50,), (0.0, 0.1, 1.0), seeds=2),
    "quick": NoiseGrid((100, 200), (0.0, 0.01, 0.03, 0.1, 0.3, 1.0), seeds=10),
    "full": NoiseGrid((100, 200, 400), (0.0, 0.01, 0.03, 0.1, 0.3, 1.0), seeds=20),
}


class Ratio(NamedTuple):
    """The gradient off P at one d and noise, beside that without noise."""

    dim: int
    noise: float
    ratio: float
    spread: float


class NearASubspace(Experiment):
    """The mean gradient off the subspace P and on it, and the movement of the weights off P, against the noise.

    Every example has a part off P of `noise` times its length on P, in a random direction. Two layers, the first one
    trained as in melamed2023 until every margin is 1; P has d/5 dimensions. Bars are standard deviations over seeds.
    """

    id = "beyond/noise"
    title = "The gradient off a subspace that the data only approximate (ours)"
    kind = NoiseCell

    def grid(self, preset: str) -> list[NoiseCell]:
        grid = GRIDS[preset]
        return [
            NoiseCell(dim=d, inside=d // 5, examples=3 * d // 10, width=d, noise=noise, seed=seed)
            for d, noise, seed in product(grid.dims, grid.noises, range(grid.seeds))
        ]

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        little = [point for point in points if point["noise"] <= LITTLE]
        same = f"noise up to {LITTLE:g} leaves the gradient off the subspace within {SAME:.0%} of that without noise"
        least = f"no noise takes it below {LEAST:g} times that without"
        return [
            _beside_none(same, little, lambda ratios: all(abs(ratio - 1) <= SAME for ratio in ratios)),
            _beside_none(least, points, lambda ratios: min(ratios) >= LEAST),
        ]

    def picture(self, points: Sequence[Point]) -> Picture:
        panels = []
        for d in distinct(points, "dim"):
            some = where(points, dim=d)
            named = (("off", "gradient off $P$"), ("on", "gradient on $P$"), ("moved", "weights off $P$ moved by"))
            curves = [over_seeds(some, "noise", name, label) for name, label in named]
            panels.append(Chart(f"$d = {d}$", "noise beside the signal", "", curves))
        return Picture(panels or [Chart("", "noise beside the signal", "", [])])


def _beside_none(text: str, points: Sequence[Point], good: Callable[[list[float]], bool]) -> Claim:
    text += " (read as: on means over seeds, at every d)"
    found = [each for d in distinct(points, "dim") for each in _ratios(where(points, dim=d))]
    if not found:
        return make_undecided_claim(text)
    far = max(found, key=lambda each: abs(each.ratio - 1))
    measured = f"farthest from 1: {far.ratio:.3f} ± {far.spread:.3f} at noise {far.noise:g}, d = {far.dim}"
    return Claim(text, f"{measured}; {len(found)} places", good([each.ratio for each in found]))


def _ratios(points: Sequence[Point]) -> list[Ratio]:
    """Means over seeds beside the mean without noise, in one dimension."""
    clean = mean(values(where(points, noise=0.0), "off"))
    by_noise = {noise: values(where(points, noise=noise), "off") for noise in distinct(points, "noise") if noise > 0}
    return [
        Ratio(points[0]["dim"], noise, mean(some) / clean, deviation(some) / clean)
        for noise, some in by_noise.items()
        if clean > 0  # NaN where no cell is without noise
    ]


FIGURES = (NearASubspace(),)
