"""melamed2023, figure 4: a smaller first layer moves the boundary away off the data, and leaves it where they are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import ClassVar

from brittle.experiments.base import Claim, Experiment, Seconds
from brittle.experiments.cell import Cell, Point
from brittle.experiments.images import or_missing
from brittle.experiments.melamed2023.distance_cells import SIDES, DistanceCell
from brittle.experiments.picture import Chart, Picture
from brittle.experiments.summary import (
    describe_missing_data,
    distinct,
    make_undecided_claim,
    mean,
    over_seeds,
    relative_spread,
    restrict_claims,
    values,
    where,
)

LABELS = {"free": "in all of the input space", "on": "on the data's subspace", "off": "off the data's subspace"}
FACTORS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
FLAT = 0.25
AFFINE = (
    "PCA is centred here: the pictures lie on an affine subspace of 32 dimensions through their mean, which spans one "
    "more, and the paper's theorems speak of linear ones. Off the subspace means normal to its 32 directions."
)


@dataclass(frozen=True)
class DistanceGrid:
    """What a preset covers: one cell for every factor and seed."""

    cell: DistanceCell  # what they have in common
    factors: tuple[float, ...]  # that divide the first layer
    seeds: int  # how many


class Distance(Experiment):
    """Mean length of the shortest PGD perturbation of 200 training examples, against what divides the first layer.

    Three-layer networks with PyTorch's start; PGD in the whole space, projected on the subspace of the data, or on
    its complement. Bars are standard deviations over seeds. The paper states neither width nor sample size nor stop.
    """

    kind = DistanceCell
    data: ClassVar[str]  # what the figure is about
    grids: ClassVar[dict[str, DistanceGrid]]  # by preset

    def grid(self, preset: str) -> Sequence[Cell]:
        grid = self.grids[preset]
        places = product(grid.factors, range(grid.seeds))
        cells = [replace(grid.cell, factor=factor, seed=seed) for factor, seed in places]
        return cells if grid.cell.data == "sphere" else or_missing(grid.cell.data, cells)

    def judge(self, points: Sequence[Point]) -> list[Claim]:
        claims = [
            _rises(points, "off", "the distance off the subspace rises with the factor"),
            _rises(points, "free", "so does the distance in the whole space"),
            _flat(points),
        ]
        if self.data == "sphere":
            enough = len(points) == 0 or max(values(points, "examples")) >= 1000
            return claims if enough else [Claim(each.text, each.measured, None) for each in claims]
        return restrict_claims(self.data, points, claims)

    def picture(self, points: Sequence[Point]) -> Picture:
        curves = [over_seeds(points, "factor", side, LABELS[side]) for side in SIDES if points]
        proved = [point for point in points if "on_proved" in point]
        curves += [over_seeds(proved, "factor", f"{side}_proved", f"proved {LABELS[side]}") for side in SIDES if proved]
        return Picture([Chart("", "first layer divided by", "distance to the boundary", curves)])

    def remarks(self, points: Sequence[Point], seconds: Seconds) -> list[str]:
        said = [] if self.data == "sphere" else [*describe_missing_data(self.data, points, seconds), AFFINE]
        missed = [side for side in SIDES if points and min(values(points, f"{side}_rate")) < 1]
        rates = ", ".join(f"{LABELS[side]} {min(values(points, f'{side}_rate')):.1%}" for side in missed)
        said += [f"Lowest share of flips: {rates}; distances are those of the flips."] if missed else []
        return [*said, *_proofs(points)]


def _proofs(points: Sequence[Point]) -> list[str]:
    """How PGD compares with the radii of the same examples."""
    proved = [point for point in points if "on_proved" in point]
    if not proved:
        return []
    found = {side: [point[f"{side}_same"] / point[f"{side}_proved"] for point in proved] for side in SIDES}
    ratios = ", ".join(f"{mean(each):.3f} {LABELS[side]}" for side, each in found.items())
    closed, count = (sum(sum(values(proved, f"{side}_{name}")) for side in SIDES) for name in ("exact", "enclosed"))
    return [
        f"Radii are proved as well, {closed:.0f} of {count:.0f} to within 1 %. PGD's perturbations of the same "
        f"examples over what is proved, on average: {ratios}."
    ]


def _by_factor(points: Sequence[Point], side: str) -> list[tuple[float, float]]:
    return [(factor, mean(values(where(points, factor=factor), side))) for factor in distinct(points, "factor")]


def _rises(points: Sequence[Point], side: str, text: str) -> Claim:
    """From the first factor to the last, on means over seeds; a dip of 5 % on the way is noise."""
    found = _by_factor(points, side)
    if len(found) < 2:
        return make_undecided_claim(text)
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
        return make_undecided_claim(text)
    sizes = [size for _, size in found]
    spread = relative_spread(sizes)
    return Claim(text, f"mean {mean(sizes):.3f}, at most {spread:.1%} away from it", spread <= FLAT)


SPHERE = DistanceCell(
    data="sphere",
    dim=784,
    inside=28,
    examples=1000,
    width=200,
    points=200,
    steps=50,
    rounds=8,
    proved=5,
    factor=1.0,
    seed=0,
)
PICTURES = replace(SPHERE, data="mnist", inside=32, proved=2)


def small(cell: DistanceCell) -> DistanceGrid:
    """For smoke runs: a network that a second is enough for."""
    return DistanceGrid(replace(cell, width=20, points=10, steps=10, rounds=3, proved=2), (1.0, 8.0), seeds=1)


def quick(cell: DistanceCell) -> DistanceGrid:
    """Fewer factors, and a shorter search for each perturbation."""
    return DistanceGrid(replace(cell, steps=20, rounds=6), (1.0, 2.0, 5.0, 10.0), seeds=2)


def full(cell: DistanceCell) -> DistanceGrid:
    """Everything that the figure shows."""
    return DistanceGrid(cell, FACTORS, seeds=5)


class Figure4a(Distance):
    id = "melamed2023/fig4a"
    title = "Distance to the boundary on and off a subspace: sphere data"
    data = "sphere"
    grids: ClassVar = {
        "smoke": small(replace(SPHERE, dim=60, inside=6, examples=60)),
        "quick": quick(SPHERE),
        "full": full(SPHERE),
    }


class Figure4b(Distance):
    id = "melamed2023/fig4b"
    title = "Distance to the boundary on and off a subspace: MNIST"
    data = "mnist"
    grids: ClassVar = {
        "smoke": small(replace(PICTURES, data="digits", dim=64, inside=16, examples=400)),
        "quick": quick(replace(PICTURES, examples=10_000)),
        "full": full(replace(PICTURES, examples=0)),
    }


FIGURES = (Figure4a(), Figure4b())
