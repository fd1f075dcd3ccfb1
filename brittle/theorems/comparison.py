"""A measured value beside its threshold: what a hypothesis is, and what becomes of a promise."""

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from brittle.common.errors import require
from brittle.common.result import Result


class Relation(enum.Enum):
    """On which side of its threshold a value has to lie.

    Examples:
        >>> from brittle.theorems import Relation
        >>> Relation.AT_MOST.value, Relation.AT_LEAST.value
        ('≤', '≥')
    """

    AT_MOST = "≤"
    AT_LEAST = "≥"


@dataclass(frozen=True)
class Comparison(Result):
    """A measured `value` beside its threshold.

    `name` says what is measured, `relation` on which side of `threshold` the value must lie. `tolerance` is relative
    to max(1, |threshold|), for rounding where a theorem holds with equality.

    Examples:
        >>> from brittle.theorems import Comparison, Relation
        >>> small = Comparison("size", 2.0, Relation.AT_MOST, 3.0)
        >>> small.holds, small.slack
        (True, 1.0)
        >>> print(small)
        size = 2 ≤ 3
    """

    name: str
    value: float
    relation: Relation
    threshold: float
    tolerance: float = 0.0

    @property
    def slack(self) -> float:
        """How far the value lies on the side where it should be; negative where it lies on the other."""
        gap = self.threshold - self.value
        return gap if self.relation is Relation.AT_MOST else 0.0 - gap

    @property
    def holds(self) -> bool:
        """Whether the value is on its side of the threshold, up to the tolerance; a NaN never is."""
        allowed = self.tolerance * max(1.0, abs(self.threshold)) if self.tolerance else 0.0  # 0·∞ would be no number
        return self.slack >= -allowed

    def content(self) -> dict[str, Any]:
        """The fields, with `slack` and `holds`."""
        return {**super().content(), "slack": self.slack, "holds": self.holds}

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.6g} {self.relation.value} {self.threshold:.6g}"


def at_most(name: str, value: float, threshold: float, tolerance: float = 0.0) -> Comparison:
    """value ≤ threshold."""
    return Comparison(name, float(value), Relation.AT_MOST, float(threshold), tolerance)


def at_least(name: str, value: float, threshold: float, tolerance: float = 0.0) -> Comparison:
    """value ≥ threshold."""
    return Comparison(name, float(value), Relation.AT_LEAST, float(threshold), tolerance)


@dataclass(frozen=True)
class Promise(Result):
    """What a theorem says about one measured quantity, before anything is measured.

    `measure` names the quantity among those of the witness, `relation` and `threshold` say what is promised of it,
    `tolerance` is that of `Comparison`. A `certain` promise must hold always, even where the theorem's other promises
    are only likely. `trivial` is what holds without any theorem; NaN where nothing does.

    Examples:
        >>> from brittle.theorems import Promise, Relation
        >>> Promise("radius", Relation.AT_LEAST, 1.0).against(1.5).holds
        True
    """

    measure: str
    relation: Relation
    threshold: float
    tolerance: float = 1e-9
    certain: bool = False
    trivial: float = math.nan

    @property
    def vacuous(self) -> bool:
        """Whether it says no more than what holds anyway: at most infinity, or at least minus that, always does."""
        if self.relation is Relation.AT_MOST:
            return self.threshold >= self.trivial or self.threshold == math.inf
        return self.threshold <= self.trivial or self.threshold == -math.inf

    def __str__(self) -> str:
        anyway = "" if math.isnan(self.trivial) else f", where {self.trivial:.6g} holds anyway"
        return f"{self.measure} {self.relation.value} {self.threshold:.6g}{anyway}"

    def against(self, value: float) -> Comparison:
        """The promise beside what was measured."""
        return Comparison(self.measure, float(value), self.relation, self.threshold, self.tolerance)


def promise_at_most(
    measure: str, threshold: float, tolerance: float = 1e-9, *, certain: bool = False, trivial: float = math.nan
) -> Promise:
    """The measure is at most the threshold."""
    return Promise(measure, Relation.AT_MOST, float(threshold), tolerance, certain, trivial)


def promise_at_least(
    measure: str, threshold: float, tolerance: float = 1e-9, *, certain: bool = False, trivial: float = math.nan
) -> Promise:
    """The measure is at least the threshold."""
    return Promise(measure, Relation.AT_LEAST, float(threshold), tolerance, certain, trivial)


# A claim about how one quantity grows with another: it yields an exponent, never a confirmation.


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


def fit_scaling(
    measure: str, variable: str, claimed: float, sizes: Sequence[float], values: Sequence[float]
) -> Scaling:
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


# What shows a promise: quantities that are measured, or perturbations that the driver applies itself.


LONGEST = "longest perturbation"
LARGEST_MARGIN = "largest margin after the perturbation"
SMALLEST_SCALE = "smallest scale of it that flips all"
SMALLEST_NORM = "longest perturbation at that scale"
COMPARATOR_FLIPPED = "share that it flips of the robust network"


@dataclass(frozen=True, eq=False)
class Witness:
    """Quantities by name, and perturbations where the theorem makes them.

    `measures` are the theorem's own quantities. `perturbations` (n, columns) are added to the rows of `examples` (the
    data's own where None) with labels `labels`. The driver adds the measures `LONGEST`, `LARGEST_MARGIN`,
    `SMALLEST_SCALE` and `SMALLEST_NORM`: the first scale at which all are flipped at once, infinite where there is
    none; and `COMPARATOR_FLIPPED` where there is a comparator.

    Examples:
        >>> from brittle.theorems import Witness
        >>> Witness(measures={"radius": 1.5}).measures
        {'radius': 1.5}
    """

    measures: Mapping[str, float] = field(default_factory=dict)
    perturbations: Tensor | None = None
    examples: Tensor | None = None
    labels: Tensor | None = None
