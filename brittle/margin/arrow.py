"""Linear systems in the shape of an arrow: one dense block for the multipliers, one small block for every neuron."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Block:
    """Equal-sized blocks of g neurons with k kinks each, beside N multipliers.

    index (g, k): the example of every kink; own (g, k, k): its quadratic form; cross (g, k, N): with the multipliers.
    """

    index: Tensor
    own: Tensor
    cross: Tensor

    @property
    def size(self) -> int:
        return self.index.numel()


@dataclass(frozen=True, eq=False)
class Arrow:
    """xᵀHx for x = (λ, s): `head` (N, N) on λ, and the blocks in the order of s."""

    head: Tensor
    blocks: tuple[Block, ...]

    @property
    def index(self) -> Tensor:
        """The example of every entry of s."""
        flat = [block.index.flatten() for block in self.blocks]
        return torch.cat(flat) if flat else torch.zeros(0, dtype=torch.long)

    def split(self, s: Tensor) -> list[Tensor]:
        parts = s.split([block.size for block in self.blocks])
        return [part.view(block.index.shape) for part, block in zip(parts, self.blocks, strict=True)]

    def apply(self, lam: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """H(λ, s)."""
        top, bottom = self.head @ lam, []
        for block, part in zip(self.blocks, self.split(s), strict=True):
            top = top + torch.einsum("gkn,gk->n", block.cross, part)
            bottom.append((block.cross @ lam + (block.own @ part[..., None])[..., 0]).flatten())
        return top, torch.cat(bottom) if bottom else s

    def factor(self, diagonal: Tensor, low: Tensor, high: Tensor) -> "Factor":
        """Factors H plus `diagonal` on λ, `low` on s and `high` on λ - s."""
        schur = self.head + torch.diag(diagonal.index_add(0, self.index, high))
        factors, lifts = [], []
        for block, a, b in zip(self.blocks, self.split(low), self.split(high), strict=True):
            cross = -block.cross
            cross.scatter_add_(2, block.index[..., None], b[..., None])
            factors.append(cholesky(block.own + torch.diag_embed(a + b)))
            lifts.append(torch.linalg.solve_triangular(factors[-1], cross, upper=False))
            flat = lifts[-1].flatten(0, 1)
            schur.addmm_(flat.T, flat, alpha=-1)
        return Factor(self, cholesky(schur), tuple(factors), tuple(lifts))


@dataclass(frozen=True, eq=False)
class Factor:
    """A factored arrow; `solve` answers one right side."""

    arrow: Arrow
    head: Tensor
    blocks: tuple[Tensor, ...]
    lifts: tuple[Tensor, ...]

    def solve(self, top: Tensor, bottom: Tensor) -> tuple[Tensor, Tensor]:
        halves = []
        for L, lift, part in zip(self.blocks, self.lifts, self.arrow.split(bottom), strict=True):
            halves.append(torch.linalg.solve_triangular(L, part[..., None], upper=False))
            top = top + lift.flatten(0, 1).T @ halves[-1].flatten()
        lam = torch.cholesky_solve(top[:, None], self.head)[:, 0]
        parts = []
        for L, lift, half in zip(self.blocks, self.lifts, halves, strict=True):
            part = torch.linalg.solve_triangular(L.mT, half + (lift @ lam)[..., None], upper=True)
            parts.append(part.flatten())
        return lam, torch.cat(parts) if parts else bottom


def cholesky(A: Tensor) -> Tensor:
    """Cholesky factors of positive semidefinite matrices, with the smallest ridge that lets them exist."""
    size = A.diagonal(dim1=-2, dim2=-1).abs().amax(-1).clamp(min=1e-300) if A.shape[-1] else A.new_ones(A.shape[:-2])
    L, info = torch.linalg.cholesky_ex(A)
    ridge, shift = 1e-15, torch.zeros_like(size)
    while bool((info != 0).any()) and ridge < 1:
        ridge *= 10
        shift = torch.where(info != 0, ridge * size, shift)
        L, info = torch.linalg.cholesky_ex(A + shift[..., None, None] * torch.eye(A.shape[-1], dtype=A.dtype))
    return L
