"""Cholesky factors of matrices that are positive semidefinite up to rounding."""

import torch
from torch import Tensor

SINGULAR = 1e-11  # a pivot below this share of the largest one is zero
STEADYING = 1e-10  # ridge, as a share of the largest diagonal entry, where rows depend on each other


def ridged_cholesky(A: Tensor) -> Tensor:
    """Factors of the matrices A (..., n, n), with the smallest ridge that lets them exist."""
    size = A.diagonal(dim1=-2, dim2=-1).abs().amax(-1).clamp(min=1e-300) if A.shape[-1] else A.new_ones(A.shape[:-2])
    L: Tensor
    L, info = torch.linalg.cholesky_ex(A)
    ridge, shift = 1e-15, torch.zeros_like(size)
    while bool((info != 0).any()) and ridge < 1:
        ridge *= 10
        shift = torch.where(info != 0, ridge * size, shift)
        L, info = torch.linalg.cholesky_ex(A + shift[..., None, None] * torch.eye(A.shape[-1], dtype=A.dtype))
    return L


def steady_cholesky(A: Tensor) -> Tensor:
    """A factor of A (n, n) that does not amplify rounding where rows depend on each other."""
    L: Tensor
    L, info = torch.linalg.cholesky_ex(A)
    pivot = L.diagonal().square()
    if int(info) == 0 and (not len(A) or float(pivot.min()) > SINGULAR * float(pivot.max())):
        return L
    return ridged_cholesky(A + STEADYING * float(A.diagonal().max()) * torch.eye(len(A), dtype=A.dtype))
