"""Orthonormal bases of linear subspaces, and what lies on and off them."""

from dataclasses import dataclass

import torch
from torch import Tensor

RANK_TOLERANCE = 1e-10  # a singular value below this share of the largest counts as zero


def rank_of(singular_values: Tensor) -> int:
    """How many of them, sorted downwards, are not zero: the one place where this is decided.

    Examples:
        >>> import torch
        >>> from brittle.geometry import rank_of
        >>> rank_of(torch.tensor([3.0, 1.0, 1e-17], dtype=torch.float64))
        2
    """
    largest = float(singular_values[0]) if len(singular_values) else 0.0
    return int((singular_values > RANK_TOLERANCE * largest).sum()) if largest > 0 else 0


@dataclass(frozen=True, eq=False)
class Basis:
    """`vectors` (d, r): orthonormal columns.

    Examples:
        >>> import torch
        >>> from brittle.geometry import Basis
        >>> plane = Basis.spanning(torch.tensor([[3.0, 0.0, 0.0], [1.0, 2.0, 0.0]]))
        >>> plane.dim, plane.off(torch.tensor([[0.0, 0.0, 5.0]])).tolist()
        (2, [[0.0, 0.0, 5.0]])
    """

    vectors: Tensor

    @classmethod
    def spanning(cls, rows: Tensor) -> "Basis":
        """A basis of the span of the rows (n, d): their singular vectors."""
        _, sizes, directions = torch.linalg.svd(rows, full_matrices=False)
        vectors = directions[: rank_of(sizes)].T.clone()
        vectors[(rows == 0).all(0)] = 0  # a feature that is always zero is off the span exactly, not to rounding
        return cls(vectors)

    @property
    def dim(self) -> int:
        return self.vectors.shape[1]

    def coordinates(self, rows: Tensor) -> Tensor:
        """(n, r)"""
        return rows @ self.vectors.to(rows)

    def project(self, rows: Tensor) -> Tensor:
        """The part of every row on the subspace."""
        vectors = self.vectors.to(rows)
        return (rows @ vectors) @ vectors.T

    def off(self, rows: Tensor) -> Tensor:
        """The part of every row that is orthogonal to the subspace."""
        return rows - self.project(rows)
