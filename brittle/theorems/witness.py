"""What shows a promise: quantities that are measured, or perturbations that the driver applies itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

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
