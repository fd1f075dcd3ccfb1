"""Rows of a matrix as vectors: their directions and their inner products."""

import torch
from torch import Tensor


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
