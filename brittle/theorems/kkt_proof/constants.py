"""The numbers of the shared proof."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from brittle.data import Data
from brittle.geometry import largest_product


@dataclass(frozen=True)
class ProofConstants(ABC):
    """The numbers of the chain; each paper adds its own Δ, `before`, `mass` and bound on ‖z‖.

    `dim` is d, `groups` k, `coherence` p, `balance` c: the share of the rarer label among the groups. The paper asks
    that c' ≤ 1/`inverse_share`, and `before` is the largest y N(x) of an admitted example.
    """

    inverse_share: ClassVar[int]
    before: ClassVar[float]

    dim: float
    groups: int
    coherence: float
    balance: float

    @property
    @abstractmethod
    def spread(self) -> float:
        """Δ: how far the inner product of two examples may be from that of their centres."""

    @property
    @abstractmethod
    def mass(self) -> float:
        """The least Σ_i Σ_j v_j² λ_i σ'_ij over the neurons of either sign."""

    @property
    @abstractmethod
    def least_room(self) -> float:
        """What the paper's limit on k leaves of the room."""

    @property
    @abstractmethod
    def longest(self) -> float:
        """The paper's bound on ‖z‖."""

    @property
    def within(self) -> float:
        """d - Δ + 1: the least <x_i, x_l> + 1 of two examples of one group."""
        return self.dim - self.spread + 1

    @property
    def across(self) -> float:
        """p + Δ + 1: the largest |<x_i, x_l>| + 1 of two examples of different groups."""
        return self.coherence + self.spread + 1

    @property
    def limit(self) -> float:
        """The largest k that the paper admits."""
        return self.within / (self.inverse_share * self.across)

    @property
    def share(self) -> float:
        """c' = k(p+Δ+1)/(d-Δ+1)."""
        return self.groups * self.across / self.within

    @property
    def dip(self) -> float:
        """p + 2Δ + 1: how far below zero an input may lie, in loads."""
        return self.coherence + 2 * self.spread + 1

    @property
    def room(self) -> float:
        """d - Δ - k(p+Δ): how fast every neuron rises or falls along u, in loads."""
        return self.dim - self.spread - self.groups * (self.coherence + self.spread)

    @property
    def opening(self) -> float:
        """η1: after a step of this size along u every neuron of the other sign is open."""
        return self.dip / self.room

    @property
    def crossing(self) -> float:
        """η2: a further step of this size lowers the margin from `before` to -1."""
        return (self.before + 1) / (self.room * self.mass)

    def length_at_most(self, dip: float) -> float:
        """‖z‖ as in the third lines of C.9 and D.9, with c'(d-Δ+1) for kp; `dip` may be an upper bound on it."""
        spent = self.share * self.within
        steps = (dip + (self.before + 1) / self.mass) / (self.dim - self.spread - spent)
        return steps * math.sqrt(self.groups * (self.dim + spent))


# The groups of a training set, and the perturbation that the shared proof makes of them.


RADIUS_TOLERANCE = 1e-6  # relative; examples in single precision have some 1e-8


@dataclass(frozen=True, eq=False)
class Groups(ABC):
    """The groups of the training examples of `data`, and the perturbation that is made of their centres."""

    data: Data

    def __post_init__(self) -> None:
        self.data.require_binary()

    def __len__(self) -> int:
        """k."""
        return len(self.centres)

    @property
    @abstractmethod
    def centres(self) -> Tensor:
        """μ_q, (k, columns)."""

    @property
    @abstractmethod
    def labels(self) -> Tensor:
        """y_q, (k,)."""

    @property
    @abstractmethod
    def constants(self) -> ProofConstants:
        """What the proof makes of the sizes of these groups."""

    @property
    def dim(self) -> int:
        """d, the dimension of the space, larger than the number of columns for data sampled in their span."""
        return self.data.dim

    @cached_property
    def coherence(self) -> float:
        """p = max |<μ_q, μ_r>| over q ≠ r."""
        return largest_product(self.centres)

    @property
    def rarer(self) -> int:
        """Groups of the rarer label."""
        positive = int((self.labels > 0).sum())
        return min(positive, len(self) - positive)

    @property
    def balance(self) -> float:
        """c: their share."""
        return self.rarer / len(self)

    @property
    def direction(self) -> Tensor:
        """u = Σ_q y_q μ_q, (columns,)."""
        return self.labels @ self.centres

    @property
    def radius_error(self) -> float:
        """The largest relative deviation of ‖μ_q‖ from √d."""
        norms = torch.linalg.vector_norm(self.centres, dim=1)
        return float((norms / math.sqrt(self.dim) - 1).abs().max())

    @property
    def square_error(self) -> float:
        """How far ‖μ_q‖² may be from d."""
        return 2 * self.radius_error * self.dim

    @property
    def perturbation(self) -> Tensor:
        """z = (η1 + η2)u, (columns,)."""
        return (self.constants.opening + self.constants.crossing) * self.direction

    @property
    def length(self) -> float:
        """‖z‖."""
        return float(torch.linalg.vector_norm(self.perturbation))

    def against(self, y: Tensor) -> Tensor:
        """-y z for every label, (n, columns): what is added to examples with these labels."""
        return -y[:, None] * self.perturbation
