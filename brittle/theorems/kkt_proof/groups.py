"""The groups of a training set, and the perturbation that the shared proof makes of them."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from brittle.geometry import largest_product
from brittle.settings import Data
from brittle.theorems.kkt_proof.constants import ProofConstants

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
