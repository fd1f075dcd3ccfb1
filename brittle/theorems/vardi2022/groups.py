"""vardi2022's reading of the shared proof: every example is a group of its own."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from brittle.theorems.comparison import Comparison, at_least, at_most
from brittle.theorems.kkt_proof import RADIUS_TOLERANCE, Groups, ProofConstants


@dataclass(frozen=True)
class ExampleConstants(ProofConstants):
    """Groups of one example: Δ = 0, and k is the number m of examples."""

    inverse_share: ClassVar = 3
    spread: ClassVar[float] = 0.0
    before: ClassVar[float] = 1.0  # Lemma C.1: every example is on the margin

    @property
    def mass(self) -> float:
        """Lemma C.2: mc/((cc'+1)(d+1))."""
        c = self.balance
        return self.groups * c / ((c * self.share + 1) * self.within)

    @property
    def least_room(self) -> float:
        """Lemma C.5: d/3."""
        return self.dim / 3

    @property
    def longest(self) -> float:
        """Lemma C.9, rounded as in the paper: 18√2·√(d/m)/c."""
        return 18 * math.sqrt(2 * self.dim / self.groups) / self.balance


@dataclass(frozen=True, eq=False)
class ExampleGroups(Groups):
    """Every example is its own centre."""

    @property
    def centres(self) -> Tensor:
        """x_i, (n, columns)."""
        return self.data.X

    @property
    def labels(self) -> Tensor:
        """y_i, (n,)."""
        return self.data.y

    @property
    def constants(self) -> ExampleConstants:
        """The numbers of the proof of Theorem 4.1."""
        return ExampleConstants(self.dim, len(self.data), self.coherence, self.balance)


def on_the_sphere(groups: ExampleGroups) -> Comparison:
    """‖x_i‖ = √d."""
    return at_most("relative deviation of ‖x‖ from √d", groups.radius_error, RADIUS_TOLERANCE)


def geometry(groups: ExampleGroups) -> Iterator[Comparison]:
    """What Theorem 4.1 supposes of the data."""
    yield on_the_sphere(groups)
    yield at_least("examples of the rarer label", groups.rarer, 1)
    yield at_most("examples", len(groups.data), groups.constants.limit)
