"""Vectors of R^d by their inner products alone, so that d = 10^9 costs what d = n costs."""

import numpy as np
import torch
from torch import Generator, Tensor

from brittle.data.arrays import require_room


def gaussians(count: int, dim: int, rng: Generator, *, in_span: bool) -> Tensor:
    """Independent N(0, I) vectors of R^dim as rows: all `dim` coordinates, or coordinates in their own span."""
    if in_span:
        return bartlett(count, dim, rng)
    require_room(count, dim, "sample in the span instead (in_span=True, --in-span), or take fewer")
    return torch.randn(count, dim, generator=rng, dtype=torch.float64)


def bartlett(count: int, dim: int, rng: Generator) -> Tensor:
    """Rows (count, min(count, dim)) with exactly the joint inner products of `count` N(0, I) vectors of R^dim.

    It is the L of G = LQ for a Gaussian G: lower triangular, L_ii ~ χ with dim - i + 1 degrees of freedom (i from 1),
    N(0, 1) below the diagonal, and everything independent. Rows beyond the first `dim` are plain Gaussians.
    """
    rank = min(count, dim)
    require_room(count, rank, "take fewer")
    L = torch.randn(count, rank, generator=rng, dtype=torch.float64).tril(-1)
    L.diagonal().copy_(_chi(torch.arange(dim, dim - rank, -1), rng))
    return L


def _chi(degrees: Tensor, rng: Generator) -> Tensor:
    """χ variables. PyTorch's public samplers of the χ² law take no generator, NumPy's do: hand the seed over."""
    seed = int(torch.randint(2**63 - 1, (), generator=rng))
    squares = np.random.default_rng(seed).chisquare(degrees.double().numpy())
    return torch.from_numpy(squares).sqrt()


def to_norm(X: Tensor, norm: float) -> Tensor:
    """Rows scaled to one length."""
    norms: Tensor = X.norm(dim=1, keepdim=True)
    return X * (norm / norms)


def orthonormal(rows: int, columns: int, rng: Generator) -> Tensor:
    """A uniformly random (rows, columns) matrix with orthonormal columns."""
    require_room(columns, rows, "sample in the span instead (in_span=True, --in-span), or take fewer")
    Q: Tensor
    R: Tensor
    Q, R = torch.linalg.qr(torch.randn(rows, columns, generator=rng, dtype=torch.float64))
    return Q * R.diagonal().sign()  # without the signs the law is not the uniform one
