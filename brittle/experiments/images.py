"""Pictures for figures: MNIST and CIFAR-10 where their files are, scikit-learn's digits for smoke runs."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import torch

from brittle.experiments.base import Claim, Params, Point
from brittle.settings import Cifar10, Data, Digits, ImageSet, Mnist, downsample, holding, unit_norm

KINDS: dict[str, type[ImageSet]] = {"digits": Digits, "mnist": Mnist, "cifar10": Cifar10}
NAMES = {"digits": "scikit-learn's digits", "mnist": "MNIST", "cifar10": "CIFAR-10"}
HELD = 60  # digits have no test set of their own


@lru_cache(maxsize=4)
def zeros_and_ones(name: str, side: int, unit: bool) -> Data:
    """The digits 0 and 1 as -1 and +1, side × side pixels, divided by their norms where `unit`; with test examples."""
    given = KINDS[name](classes=(0, 1))
    rng = torch.Generator().manual_seed(0)
    data = given.sample(None, rng, test=HELD if name == "digits" else None)
    image = data.truth.image
    assert image is not None
    data = data if image[-1] == side else downsample(data, side)
    return unit_norm(data) if unit else data


def present(name: str) -> bool:
    if name == "digits":
        return True
    held = holding(name)
    return held.complete or bool(held.forms)


def or_missing(name: str, grid: list[Params], cost: Callable[[Params], float]) -> list[Params]:
    """The grid, or one cell that says that the data are not there and what the grid would take with them.

    Its key is another than that of any cell of the grid, so nothing of it is left once the data have come.
    """
    if present(name):
        return grid
    return [{"data": name, "missing": True, "would_take": round(sum(map(cost, grid)), 2), "seed": 0}]


def missing(params: Params) -> Point | None:
    """What the one cell of missing data measures: nothing."""
    return {"reached": False, "why": advice(params["data"])} if params.get("missing") else None


def advice(name: str) -> str:
    return f"{NAMES[name]} is not there; run: brittle data fetch {name}"


def judged_on(name: str, points: Sequence[Point], claims: Sequence[Claim]) -> list[Claim]:
    """Claims about a data set are decided by points of that data set alone."""
    if points and all(point["data"] == name for point in points):
        return list(claims)
    why = f"not decided: {advice(name)}" if not points and not present(name) else "not decided by this run"
    return [Claim(claim.text, f"{claim.measured} ({why})" if points else why, None) for claim in claims]


def told(name: str, points: Sequence[Point], seconds: Mapping[str, float]) -> list[str]:
    """The remark of a figure whose data are missing, or are not the paper's."""
    if not points:
        return [] if present(name) else [advice(name)]
    others = sorted({point["data"] for point in points} - {name})
    return [f"Measured on {NAMES[other]}, in place of {NAMES[name]}." for other in others]
