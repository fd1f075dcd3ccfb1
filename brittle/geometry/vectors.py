"""Rows of a matrix as vectors: their directions and their inner products."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.common.errors import require


def unit_rows(vectors: Tensor) -> Tensor:
    """Every row (n, d) divided by its length; rows of zeros stay as they are.

    Examples:
        >>> import torch
        >>> from brittle.geometry import unit_rows
        >>> unit_rows(torch.tensor([[0.0, 5.0], [0.0, 0.0]]))
        tensor([[0., 1.],
                [0., 0.]])
    """
    lengths = vectors.norm(dim=1, keepdim=True)
    return torch.where(lengths > 0, vectors / torch.where(lengths > 0, lengths, 1.0), 0.0)


def into_ball(vectors: Tensor, radius: float | Tensor) -> Tensor:
    """Every row (n, d) shortened to its radius, one for all or (n,); rows inside the ball stay as they are.

    Examples:
        >>> import torch
        >>> from brittle.geometry import into_ball
        >>> into_ball(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 1.0)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    lengths, most = vectors.norm(dim=1), torch.as_tensor(radius, dtype=vectors.dtype)
    return vectors * torch.where(lengths > most, most / torch.where(lengths > most, lengths, 1.0), 1.0)[:, None]


def largest_product(vectors: Tensor) -> float:
    """max |<x_i, x_j>| over pairs i ≠ j of rows; 0 for a single row.

    Examples:
        >>> import torch
        >>> from brittle.geometry import largest_product
        >>> largest_product(torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, -1.0]]))
        2.0
    """
    return float((vectors @ vectors.T).fill_diagonal_(0).abs().max())


# Orthonormal bases of linear subspaces, and what lies on and off them.


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


# The nearest example of another class: half the way to it is as far as both can be from a boundary between them.


AT_ONCE = 2**24  # distances


def nearest_rivals(
    X: Tensor, y: Tensor, others: Tensor | None = None, labels: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """For every row of X (n, d) the distance to the nearest one with another label, and which that is, (n,) each.

    The rivals are looked for among X, or among `others` (m, d) with their `labels`.

    Examples:
        >>> import torch
        >>> from brittle.geometry import nearest_rivals
        >>> X, y = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([1.0, 1.0, -1.0])
        >>> nearest_rivals(X, y)
        (tensor([5., 4., 4.]), tensor([2, 2, 1]))
    """
    others, labels = (X, y) if others is None or labels is None else (others, labels)
    one = bool((labels == labels[0]).all()) and bool((y == labels[0]).any())
    require(not one, f"all {len(labels)} examples have the label {labels[0]:g}: there is no other class")
    squares = torch.cat([block.square().sum(1) for block in torch.split(others, max(1, AT_ONCE // others.shape[1]))])
    index, distances = torch.empty(len(X), dtype=torch.int64), torch.empty(len(X), dtype=X.dtype)
    for rows in torch.split(torch.arange(len(X)), max(1, AT_ONCE // len(others))):
        products = torch.addmm(squares, X[rows], others.T, alpha=-2)  # ‖x_j‖² - 2 x_i·x_j: the least is the nearest
        index[rows] = products.masked_fill_(y[rows, None] == labels, torch.inf).argmin(1)
        # From the difference: the products cancel where examples are close.
        distances[rows] = (X[rows] - others[index[rows]]).norm(dim=1)
    return distances, index


# Rounding errors of floating point: the unit roundoff, γ_n, and what is lost below the floats.


ROUNDOFF = 2.0**-53  # u: a result of +, -, ·, / or √ is within this share of the real one
SMALLEST = 2.0**-1074  # the least float above 0: no result loses more than half of it below the normal ones
SQUARES = 1e-150  # a length is at most its float, up to rounding, plus this: smaller squares may be lost
UNDERFLOW = 1e-290  # more than any sum of products near 1 can lose below the smallest normal float


def gamma(count: int) -> float:
    """Twice γ_n = nu/(1 - nu): the second factor pays for computing an error bound in floating point."""
    return 2 * count * ROUNDOFF / (1 - count * ROUNDOFF)
