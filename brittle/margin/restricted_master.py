"""The restricted master: the convex program of the columns in use, in its dual.

max Σ λ_i  subject to  ½(c_gᵀ K c_g - 1) ≤ 0 for every column g,  0 ≤ t_g ≤ λ,  0 ≤ λ ≤ M,
where c_g is λ on the column's own active examples and -t_g on the other class. The multipliers μ_g of the columns are
the norms ‖u_g‖ of the neurons u_g = μ_g Σ_i c_gi x̃_i, and those of 0 ≤ t, t ≤ λ are φ(-z), φ(z) on the other class.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.margin.columns import Columns
from brittle.margin.interior_point import Iterate

LARGEST = 1e7  # M, in units where the mean of K_ii is 1: a multiplier there means that no columns classify the example


class Inequalities(NamedTuple):
    """One vector per family of inequalities, or their multipliers, or steps of either.

    lam (n,): λ ≥ 0; headroom (n,): M - λ ≥ 0; t and w = λ - t ≥ 0, flat, one entry per column and other example;
    slack (G,): ½(1 - c_gᵀ K c_g) ≥ 0, whose multiplier is μ.
    """

    lam: Tensor
    headroom: Tensor
    t: Tensor
    w: Tensor
    slack: Tensor


@dataclass(frozen=True, eq=False)
class Side:
    """The columns of one sign: `rows` among all columns, their examples, own-class patterns (G, own) and Gram blocks.

    own, other: the examples of either class; K_other, K_between (other, own) and K_own: the blocks of K.
    """

    rows: slice
    own: Tensor
    other: Tensor
    patterns: Tensor
    K_other: Tensor
    K_between: Tensor
    K_own: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """Columns, and examples of the other class."""
        return len(self.patterns), len(self.other)


@dataclass(frozen=True, eq=False)
class RestrictedMaster:
    """The program of K (n, n), y (n,) and the columns in use, positive ones first."""

    K: Tensor
    y: Tensor
    columns: Columns

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        """The positive columns, then the negative ones."""
        return self._side(1.0), self._side(-1.0)

    @cached_property
    def example(self) -> Tensor:
        """The example of every entry of t."""
        return torch.cat([side.other.repeat(len(side.patterns)) for side in self.sides])

    def _side(self, sign: float) -> Side:
        """The columns of one sign."""
        own, other = (torch.nonzero(self.y == s)[:, 0] for s in (sign, -sign))
        positive = int((self.columns.signs > 0).sum())
        rows = slice(0, positive) if sign > 0 else slice(positive, len(self.columns))
        across = self.K[other]
        return Side(
            rows,
            own,
            other,
            patterns=self.columns.patterns[rows][:, own],
            K_other=across[:, other],
            K_between=across[:, own],
            K_own=self.K[own][:, own],
        )

    def parts(self, flat: Tensor) -> list[Tensor]:
        """A vector over (column, other example) as one matrix per side."""
        parts = torch.split(flat, [side.shape[0] * side.shape[1] for side in self.sides])
        return [part.view(side.shape) for part, side in zip(parts, self.sides, strict=True)]

    def spread(self, flat: Tensor, background: Tensor) -> Tensor:
        """A copy of the matrix `background` (G, n) with a vector's entries at (column, other example)."""
        full = background.clone()
        for side, part in zip(self.sides, self.parts(flat), strict=True):
            full[side.rows, side.other] = part
        return full

    def coefficients(self, lam: Tensor, t: Tensor) -> Tensor:
        """c (G, n); linear in (λ, t)."""
        return self.spread(-t, self.columns.patterns * lam)

    def on_other(self, full: Tensor) -> Tensor:
        """Entries of a (G, n) matrix at (column, other example), flat."""
        return torch.cat([full[side.rows, side.other].flatten() for side in self.sides])

    def start(self) -> Iterate[Inequalities]:
        """Well inside: every column at a norm of about .7, multipliers to match."""
        n, G = len(self.y), len(self.columns)
        lam = torch.ones(n, dtype=self.K.dtype)
        c = self.coefficients(lam, torch.full(self.example.shape, 0.5, dtype=self.K.dtype))
        size = 0.7 / float(((c @ self.K) * c).sum(1).max()) ** 0.5
        lam, t = size * lam, torch.full(self.example.shape, size / 2, dtype=self.K.dtype)
        c = size * c
        k = c @ self.K
        slack = (1 - (c * k).sum(1)) / 2
        norms = torch.full_like(slack, 2 * n * size / G)
        heights = self.on_other(norms[:, None] * k)
        least = 1.0 / G
        low, high = (-heights).relu() + least, heights.relu() + least
        q = (norms[:, None] * self.columns.patterns * k).sum(0).index_add(0, self.example, high, alpha=-1)
        duals = Inequalities((q - 1).relu() + 1, torch.full_like(lam, 1e-3 / LARGEST), low, high, norms)
        return Iterate(Inequalities(lam, LARGEST - lam, t, t.clone(), slack), duals)
