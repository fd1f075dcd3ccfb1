"""Mean and deviation over seeds, and the text of a claim that nothing decides."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from brittle.experiments.base import Claim
from brittle.experiments.cell import Point
from brittle.experiments.picture import Curve

UNDECIDED = "no cell of this run measures it"


def where(points: Sequence[Point], **values: Any) -> list[Point]:
    """The points whose parameters have these values."""
    return [point for point in points if all(point.get(name) == value for name, value in values.items())]


def values(points: Sequence[Point], name: str) -> list[float]:
    """What was measured under this name, without the points where it is missing or infinite."""
    return [float(point[name]) for point in points if point.get(name) is not None]


def distinct(points: Sequence[Point], name: str) -> list[Any]:
    """The values that occur under this name, in order."""
    return sorted({point[name] for point in points if point.get(name) is not None})


def mean(numbers: Sequence[float]) -> float:
    """NaN of nothing."""
    return fmean(numbers) if numbers else math.nan


def deviation(numbers: Sequence[float]) -> float:
    """The standard deviation of a sample; 0 of a single number."""
    return stdev(numbers) if len(numbers) > 1 else 0.0


def relative_spread(numbers: Sequence[float]) -> float:
    """How far some number is from the mean of all, relatively."""
    middle = mean(numbers)
    return max(abs(number / middle - 1) for number in numbers)


def over_seeds(
    points: Sequence[Point], x: str, y: str, label: str, *, style: str = "line", colour: int | None = None
) -> Curve:
    """The mean of y at every x, with its standard deviation over the points there."""
    at = [(value, values(where(points, **{x: value}), y)) for value in distinct(points, x)]
    kept = [(value, numbers) for value, numbers in at if numbers]
    return Curve(
        label,
        [float(value) for value, _ in kept],
        [mean(numbers) for _, numbers in kept],
        [deviation(numbers) for _, numbers in kept],
        style,
        colour,
    )


def undecided(text: str) -> Claim:
    """A claim for which nothing was measured."""
    return Claim(text, UNDECIDED, None)


def share(numbers: Sequence[bool]) -> str:
    """How many are true, in words."""
    return f"{sum(numbers)} of {len(numbers)}"
