"""The quantities that the proof of Theorem 4.1 speaks of, and the suppositions that its lemmas share."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from brittle.settings import Data
from brittle.theorems.base import Comparison, Instance, at_least, at_most

RADIUS_TOLERANCE = 1e-9  # relative


@dataclass(frozen=True, eq=False)
class Sizes:
    """Of the examples on which the theorem rests: d, m, p and c, and what the proof makes of them."""

    data: Data

    def __post_init__(self) -> None:
        self.data.require_binary()

    @property
    def dim(self) -> int:
        return self.data.dim

    @property
    def examples(self) -> int:
        return len(self.data)

    @cached_property
    def coherence(self) -> float:
        """p = max |<x_i, x_j>| over i ≠ j."""
        gram = self.data.X @ self.data.X.T
        return float(gram.fill_diagonal_(0).abs().max())

    @property
    def rarer(self) -> int:
        """Examples of the rarer label."""
        positive = int((self.data.y > 0).sum())
        return min(positive, self.examples - positive)

    @property
    def balance(self) -> float:
        """c."""
        return self.rarer / self.examples

    @property
    def limit(self) -> float:
        """The largest number of examples that the theorem admits: (d+1)/(3(p+1))."""
        return (self.dim + 1) / (3 * (self.coherence + 1))

    @property
    def share(self) -> float:
        """c' = m(p+1)/(d+1), at most 1/3."""
        return self.examples * (self.coherence + 1) / (self.dim + 1)

    @property
    def room(self) -> float:
        """d - mp, positive by Lemma C.5."""
        return self.dim - self.examples * self.coherence

    @property
    def opening(self) -> float:
        """η1: after a step of this size along Σ y_i x_i every neuron of the other sign is open."""
        return (self.coherence + 1) / self.room

    @property
    def crossing(self) -> float:
        """η2: a further step of this size lowers the margin by 2."""
        c = self.balance
        return 2 * (c * self.share + 1) * (self.dim + 1) / (self.examples * c * self.room)

    @property
    def direction(self) -> Tensor:
        """Σ y_i x_i, (columns,)."""
        return self.data.y @ self.data.X

    @property
    def radius_error(self) -> float:
        """The largest relative deviation of ‖x_i‖ from √d."""
        norms = torch.linalg.vector_norm(self.data.X, dim=1)
        return float((norms / math.sqrt(self.dim) - 1).abs().max())


def geometry(sizes: Sizes) -> Iterator[Comparison]:
    """What Theorem 4.1 supposes of the data."""
    yield at_most("relative deviation of ‖x‖ from √d", sizes.radius_error, RADIUS_TOLERANCE)
    yield at_least("examples of the rarer label", sizes.rarer, 1)
    yield at_most("examples", sizes.examples, sizes.limit)


def kkt_point_up_to(tolerance: float, instance: Instance) -> Comparison:
    return at_most("distance from a KKT point", instance.kkt_distance, tolerance)
