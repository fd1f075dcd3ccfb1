"""What a remedy is expected to do, said before it is tried, and whether that was right."""

from dataclasses import dataclass, replace
from typing import Any

from brittle.auditing.remedy import Remedy, Signs
from brittle.common.result import Result


@dataclass(frozen=True)
class Forecast(Result):
    """The median radius is expected to change by a factor from `low` to `high`; `found` is what it did.

    `found` is None where the remedy was not applied.

    Examples:
        >>> from brittle.auditing import Forecast
        >>> Forecast(low=1.0, high=1.5).held_against(1.2).right
        True
    """

    low: float
    high: float
    found: float | None = None

    @property
    def right(self) -> bool | None:
        """Whether the factor was between the two."""
        return None if self.found is None else self.low <= self.found <= self.high

    @property
    def middle(self) -> float:
        """Of the two, as factors go."""
        return float((self.low * self.high) ** 0.5)

    def held_against(self, factor: float) -> "Forecast":
        return replace(self, found=factor)

    def content(self) -> dict[str, Any]:
        """With the word on whether it was right."""
        return {**super().content(), "right": self.right}


def forecast(remedy: Remedy, signs: Signs) -> Forecast | None:
    """Before anything is tried; None where the remedy has no opinion."""
    expected = remedy.expected(signs)
    return None if expected is None else Forecast(*expected)
