"""Mean and deviation over seeds, and the text of a claim that nothing decides."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import scipy

from brittle.experiments.base import Claim
from brittle.experiments.cell import Point
from brittle.experiments.images import NAMES, advice, present
from brittle.experiments.picture import PlotCurve
from brittle.theorems.comparison import fit_scaling


def restrict_claims(name: str, points: Sequence[Point], claims: Sequence[Claim]) -> list[Claim]:
    """Claims about a data set are decided by points of that data set alone."""
    if points and all(point["data"] == name for point in points):
        return list(claims)
    why = f"not decided: {advice(name)}" if not points and not present(name) else "not decided by this run"
    return [Claim(claim.text, f"{claim.measured} ({why})" if points else why, None) for claim in claims]


def describe_missing_data(name: str, points: Sequence[Point], seconds: Mapping[str, float]) -> list[str]:
    """The remark of a figure whose data are missing, or are not the paper's."""
    if not points:
        return [] if present(name) else [advice(name)]
    others = sorted({point["data"] for point in points} - {name})
    return [f"Measured on {NAMES[other]}, in place of {NAMES[name]}." for other in others]


# The power of one quantity in another, with a 95 % interval, and what such an interval decides.


CONFIDENCE = 0.95


@dataclass(frozen=True)
class Power:
    """`variable`^`value`, with the ends of its 95 % interval by Student's law."""

    variable: str  # what is raised
    value: float  # the fitted exponent
    low: float  # of the interval
    high: float  # of the interval

    def __str__(self) -> str:
        return f"{self.variable}^({self.value:+.3f}), 95 % in [{self.low:+.3f}, {self.high:+.3f}]"

    def below(self, bound: float) -> bool | None:
        """Whether all of the interval lies below the bound; None where it holds the bound."""
        return None if self.low <= bound <= self.high else self.high < bound

    def at_most(self, bound: float, width: float) -> bool | None:
        """One-sided: refuted where all of the interval lies above; open where it reaches over by more than `width`."""
        if self.low > bound:
            return False
        return True if self.high <= bound + width else None

    def at_least(self, bound: float, width: float) -> bool | None:
        """The same from the other side."""
        return Power(self.variable, -self.value, -self.high, -self.low).at_most(-bound, width)

    def holds(self, bound: float) -> bool:
        """Whether the bound lies in the interval."""
        return self.low <= bound <= self.high


def exponent(measure: str, variable: str, sizes: Sequence[float], values: Sequence[float]) -> Power | None:
    """Fitted to the logarithms; None where fewer than three sizes leave nothing to judge it by."""
    if len(set(sizes)) < 3:
        return None
    line = fit_scaling(measure, variable, 0.0, sizes, values)
    half = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, len(sizes) - 2)) * line.standard_error
    return Power(variable, line.fitted, line.fitted - half, line.fitted + half)


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
) -> PlotCurve:
    """The mean of y at every x, with its standard deviation over the points there."""
    at = [(value, values(where(points, **{x: value}), y)) for value in distinct(points, x)]
    kept = [(value, numbers) for value, numbers in at if numbers]
    return PlotCurve(
        label,
        [float(value) for value, _ in kept],
        [mean(numbers) for _, numbers in kept],
        [deviation(numbers) for _, numbers in kept],
        style,
        colour,
    )


def make_undecided_claim(text: str) -> Claim:
    """A claim for which nothing was measured."""
    return Claim(text, UNDECIDED, None)


def share(numbers: Sequence[bool]) -> str:
    """How many are true, in words."""
    return f"{sum(numbers)} of {len(numbers)}"
