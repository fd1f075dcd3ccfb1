"""A claim about how one quantity grows with another: it yields an exponent, never a confirmation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brittle.common.errors import require
from brittle.common.result import Result


@dataclass(frozen=True)
class Scaling(Result):
    """`measure` ~ `variable`^`fitted` through `points` (size, value), beside the exponent that is `claimed`.

    `standard_error` is that of the fit. NaN in `claimed` marks a confounder.

    Examples:
        >>> from brittle.theorems import Scaling
        >>> points = (10, 0.3), (100, 0.1)
        >>> Scaling("size", "dim", claimed=-0.5, fitted=-0.48, standard_error=0.03, points=points).fitted
        -0.48
    """

    measure: str
    variable: str
    claimed: float
    fitted: float
    standard_error: float
    points: tuple[tuple[float, float], ...]

    @property
    def confounder(self) -> bool:
        """Whether it is fitted only because it moves what is claimed."""
        return math.isnan(self.claimed)

    def __str__(self) -> str:
        claimed = "not claimed, a confounder" if self.confounder else f"claimed {self.claimed:+.3g}"
        return f"{self.measure} ~ {self.variable}^({self.fitted:+.3f} ± {self.standard_error:.3f}), {claimed}"


def fitted(measure: str, variable: str, claimed: float, sizes: Sequence[float], values: Sequence[float]) -> Scaling:
    """The least-squares line through the logarithms, with the standard error of its slope."""
    require(len(sizes) >= 3, f"{measure}: {len(sizes)} sizes are too few for an exponent with an error; give 3 or more")
    require(all(value > 0 for value in (*sizes, *values)), f"{measure}: an exponent needs positive values")
    x, y = np.log(sizes), np.log(values)
    spread = float(((x - x.mean()) ** 2).sum())
    require(spread > 0, f"{measure}: every size is {sizes[0]}; an exponent needs several")
    slope = float(((x - x.mean()) * y).sum() / spread)
    residuals = y - y.mean() - slope * (x - x.mean())
    error = math.sqrt(float((residuals**2).sum()) / (len(x) - 2) / spread)
    points = tuple((float(size), float(value)) for size, value in zip(sizes, values, strict=True))
    return Scaling(measure, variable, claimed, slope, error, points)
