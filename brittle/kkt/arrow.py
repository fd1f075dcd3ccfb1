"""Linear systems in the shape of an arrow: one dense block for the multipliers, one small block for every neuron."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

SINGULAR = 1e-11  # a pivot below this share of the largest one is zero
STEADYING = 1e-10  # ridge, as a share of the largest diagonal entry, where rows depend on each other


def factor_with_ridge(A: Tensor) -> Tensor:
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
    return factor_with_ridge(A + STEADYING * float(A.diagonal().max()) * torch.eye(len(A), dtype=A.dtype))


class ArrowVector(NamedTuple):
    """x = (λ, s): lam (N,), one entry per multiplier; s (K,), one per kink."""

    lam: Tensor
    s: Tensor


@dataclass(frozen=True, eq=False)
class ArrowBlock:
    """Equal-sized blocks of g neurons with k kinks each, beside N multipliers.

    index (g, k): the example of every kink; own (g, k, k): its quadratic form; cross (g, k, N): with the multipliers.
    """

    index: Tensor
    own: Tensor
    cross: Tensor

    @property
    def size(self) -> int:
        """How many entries of s belong here."""
        return self.index.numel()


@dataclass(frozen=True, eq=False)
class Arrow:
    """xᵀHx for x = (λ, s): `head` (N, N) on λ, and the `blocks` in the order of s."""

    head: Tensor
    blocks: tuple[ArrowBlock, ...]

    @cached_property
    def index(self) -> Tensor:
        """The example of every entry of s."""
        flat = [block.index.flatten() for block in self.blocks]
        return torch.cat(flat) if flat else torch.zeros(0, dtype=torch.long)

    def split(self, s: Tensor) -> list[Tensor]:
        """s as one matrix (g, k) per block."""
        parts = torch.split(s, [block.size for block in self.blocks])
        return [part.view(block.index.shape) for part, block in zip(parts, self.blocks, strict=True)]

    def apply(self, x: ArrowVector) -> ArrowVector:
        """Hx."""
        lam, s = self.head @ x.lam, []
        for block, part in zip(self.blocks, self.split(x.s), strict=True):
            lam = lam + torch.einsum("gkn,gk->n", block.cross, part)
            s.append((block.cross @ x.lam + (block.own @ part[..., None])[..., 0]).flatten())
        return ArrowVector(lam, torch.cat(s) if s else x.s)

    def factor(self, diagonal: Tensor, low: Tensor, high: Tensor) -> "FactoredArrow":
        """Factors H plus `diagonal` on λ, `low` on s and `high` on λ - s."""
        schur = self.head + torch.diag(diagonal.index_add(0, self.index, high))
        factors, lifts = [], []
        for block, a, b in zip(self.blocks, self.split(low), self.split(high), strict=True):
            cross = -block.cross
            cross.scatter_add_(2, block.index[..., None], b[..., None])
            factors.append(factor_with_ridge(block.own + torch.diag_embed(a + b)))
            lifts.append(torch.linalg.solve_triangular(factors[-1], cross, upper=False))
            flat = lifts[-1].flatten(0, 1)
            schur.addmm_(flat.T, flat, alpha=-1)
        return FactoredArrow(self, factor_with_ridge(schur), tuple(factors), tuple(lifts))


@dataclass(frozen=True, eq=False)
class FactoredArrow:
    """An arrow with Cholesky factors of its Schur complement (`head`) and `blocks`; `lifts`: L⁻¹ cross of those."""

    arrow: Arrow
    head: Tensor
    blocks: tuple[Tensor, ...]
    lifts: tuple[Tensor, ...]

    def solve(self, rhs: ArrowVector) -> ArrowVector:
        """x with Hx = rhs."""
        top, halves = rhs.lam, []
        for L, lift, part in zip(self.blocks, self.lifts, self.arrow.split(rhs.s), strict=True):
            halves.append(torch.linalg.solve_triangular(L, part[..., None], upper=False))
            top = top + lift.flatten(0, 1).T @ halves[-1].flatten()
        lam = torch.cholesky_solve(top[:, None], self.head)[:, 0]
        parts = []
        for L, lift, half in zip(self.blocks, self.lifts, halves, strict=True):
            part = torch.linalg.solve_triangular(L.mT, half + (lift @ lam)[..., None], upper=True)
            parts.append(part.flatten())
        return ArrowVector(lam, torch.cat(parts) if parts else rhs.s)
