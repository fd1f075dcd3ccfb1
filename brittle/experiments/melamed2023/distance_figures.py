"""melamed2023, figure 4: a smaller first layer moves the boundary away off the data, and leaves it where they are."""

from collections.abc import Sequence
from itertools import pairwise, product
from typing import ClassVar

from brittle.experiments.base import Claim, Params, Point, Seconds
from brittle.experiments.images import judged_on, or_missing, told
from brittle.experiments.melamed2023.distance_cells import SIDES, DistanceCells
from brittle.experiments.picture import Chart, Picture
from brittle.experiments.summary import distinct, mean, over_seeds, undecided, values, where

LABELS = {"free": "in all of the input space", "on": "on the data's subspace", "off": "off the data's subspace"}
FACTORS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
FLAT = 0.25


class Distance(DistanceCells):
    """Mean length of the shortest PGD perturbation of 200 training examples, against what divides the first layer.

    Three-layer networks with PyTorch's start; PGD in the whole space, projected on the subspace of the data, or on
    its complement. Bars are standard deviations over seeds. The paper states neither width nor sample size nor stop.
    """

    data: ClassVar[str]
    grids: ClassVar[dict[str, Params]]

    def grid(self, preset: str) -> list[Params]:
        common = dict(self.grids[preset])
        factors, seeds = common.pop("factors"), common.pop("seeds")
        cells: list[Params] = [
            {**common, "factor": factor, "seed": seed} for factor, seed in product(factors, range(seeds))
        ]
        return cells if common["data"] == "sphere" else or_missing(common["data"], cells, self.cost)

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        claims = [
            _rises(points, "off", "the distance off the subspace rises with the factor"),
            _rises(points, "free", "so does the distance in the whole space"),
            _flat(points),
        ]
        if self.data == "sphere":
            enough = len(points) == 0 or max(values(points, "examples")) >= 1000
            return claims if enough else [Claim(each.text, each.measured, None) for each in claims]
        return judged_on(self.data, points, claims)

    def picture(self, points: Sequence[Point]) -> Picture:
        curves = [over_seeds(points, "factor", side, LABELS[side]) for side in SIDES if points]
        return Picture([Chart("", "first layer divided by", "distance to the boundary", curves)])

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        said = [] if self.data == "sphere" else told(self.data, points, seconds)
        missed = [side for side in SIDES if points and min(values(points, f"{side}_rate")) < 1]
        rates = ", ".join(f"{LABELS[side]} {min(values(points, f'{side}_rate')):.1%}" for side in missed)
        return [*said, f"Lowest share of flips: {rates}; distances are those of the flips."] if missed else said


def _by_factor(points: Sequence[Point], side: str) -> list[tuple[float, float]]:
    return [(factor, mean(values(where(points, factor=factor), side))) for factor in distinct(points, "factor")]


def _rises(points: Sequence[Point], side: str, text: str) -> Claim:
    """From the first factor to the last, on means over seeds; a dip of 5 % on the way is noise."""
    found = _by_factor(points, side)
    if len(found) < 2:
        return undecided(text)
    sizes = [size for _, size in found]
    steps = all(after > 0.95 * before for before, after in pairwise(sizes))
    measured = ", ".join(f"{size:.3f} at {factor:g}" for factor, size in found)
    return Claim(
        f"{text} (read as: by over 10 % in all, never back by over 5 %)", measured, steps and sizes[-1] > 1.1 * sizes[0]
    )


def _flat(points: Sequence[Point]) -> Claim:
    text = f"the distance on the subspace stays flat (read as: within {FLAT:.0%} of its mean)"
    found = _by_factor(points, "on")
    if len(found) < 2:
        return undecided(text)
    middle = mean([size for _, size in found])
    spread = max(abs(size / middle - 1) for _, size in found)
    return Claim(text, f"mean {middle:.3f}, at most {spread:.1%} away from it", spread <= FLAT)


SPHERE: Params = {"data": "sphere", "dim": 784, "inside": 28, "examples": 1000, "width": 200, "points": 200}
PICTURES: Params = {**SPHERE, "data": "mnist", "inside": 32}
PACE = {"steps": 20, "rounds": 6}
SMALL = {"width": 20, "points": 10, "steps": 10, "rounds": 3, "factors": (1.0, 8.0), "seeds": 1}


class Figure4a(Distance):
    __doc__ = Distance.__doc__
    id = "melamed2023/fig4a"
    title = "Distance to the boundary on and off a subspace: sphere data"
    data = "sphere"
    grids: ClassVar = {
        "smoke": {**SPHERE, **SMALL, "dim": 60, "inside": 6, "examples": 60},
        "quick": {**SPHERE, **PACE, "factors": (1.0, 2.0, 5.0, 10.0), "seeds": 2},
        "full": {**SPHERE, "steps": 50, "rounds": 8, "factors": FACTORS, "seeds": 5},
    }


class Figure4b(Distance):
    __doc__ = Distance.__doc__
    id = "melamed2023/fig4b"
    title = "Distance to the boundary on and off a subspace: MNIST"
    data = "mnist"
    grids: ClassVar = {
        "smoke": {**PICTURES, **SMALL, "data": "digits", "dim": 64, "inside": 16, "examples": 400},
        "quick": {**PICTURES, "examples": 10_000, **PACE, "factors": (1.0, 2.0, 5.0, 10.0), "seeds": 2},
        "full": {**PICTURES, "examples": 0, "steps": 50, "rounds": 8, "factors": FACTORS, "seeds": 5},
    }


FIGURES = (Figure4a(), Figure4b())
