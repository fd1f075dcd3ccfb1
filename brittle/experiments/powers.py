"""The power of one quantity in another, with a 95 % interval, and what such an interval decides."""

from collections.abc import Sequence
from dataclasses import dataclass

import scipy

from brittle.theorems.scaling import fitted

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
    line = fitted(measure, variable, 0.0, sizes, values)
    half = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, len(sizes) - 2)) * line.standard_error
    return Power(variable, line.fitted, line.fitted - half, line.fitted + half)
