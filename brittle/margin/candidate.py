"""A candidate for a KKT point: values, and which inequalities they are thought to meet with equality."""

import enum
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from brittle.margin.columns import Columns
from brittle.margin.examples import Examples
from brittle.margin.neurons import Neurons


class Slope(enum.IntEnum):
    """What a neuron does on an example of the other class: off (t = 0), on (t = λ), or at a kink (t between them)."""

    OFF = 0
    ON = 1
    KINK = 2


@dataclass(frozen=True, eq=False)
class Candidate:
    """lam λ (n,), mu μ (G,) and t (G, n) for the columns' program; margin (n,): the examples thought to lie on it.

    slopes (G, n) holds a `Slope` for every neuron and example of the other class; on the own class it is not used.
    """

    examples: Examples
    columns: Columns
    lam: Tensor
    mu: Tensor
    t: Tensor
    margin: Tensor
    slopes: Tensor

    def __len__(self) -> int:
        """How many neurons."""
        return len(self.mu)

    def take(self, index: Tensor) -> "Candidate":
        """Some of the neurons."""
        columns, mu, t, slopes = self.columns.take(index), self.mu[index], self.t[index], self.slopes[index]
        return replace(self, columns=columns, mu=mu, t=t, slopes=slopes)

    @cached_property
    def other(self) -> Tensor:
        """Where an example is of the other class, (G, n)."""
        return self.columns.signs[:, None] != self.examples.y

    @cached_property
    def kinks(self) -> Tensor:
        """Where t is free, (G, n)."""
        return self.other & (self.slopes == Slope.KINK) & self.margin

    @cached_property
    def linear(self) -> Tensor:
        """C (G, n): c_g = C_g λ away from kinks."""
        return torch.where(self.other, -(self.slopes == Slope.ON).to(self.lam.dtype), self.columns.patterns)

    @cached_property
    def coefficients(self) -> Tensor:
        """c (G, n), so that u_g = μ_g Σ_i c_gi x̃_i."""
        return torch.where(self.kinks, -self.t, self.linear * self.lam)

    @cached_property
    def k(self) -> Tensor:
        """c K (G, n): the preactivations of the neurons before they are multiplied by μ."""
        return self.coefficients @ self.examples.K

    @cached_property
    def heights(self) -> Tensor:
        """k as a share of each neuron's largest."""
        return self.k / self.k.abs().amax(1, keepdim=True).clamp(min=1e-300)

    @property
    def neurons(self) -> Neurons:
        """u_g = μ_g Σ_i c_gi x̃_i."""
        U = self.mu[:, None] * (self.coefficients @ self.examples.X) / self.examples.unit
        return Neurons(U, self.columns.signs)

    def margins(self, patterns: Tensor) -> Tensor:
        """q (n,) of these neurons where `patterns` (G, n) say which of them count on their own class."""
        return (self.mu[:, None] * torch.where(self.other, -self.k.relu(), patterns * self.k)).sum(0)

    def mismatches(self, tolerance: float) -> Tensor:
        """Where a column's pattern on its own class differs from what its neuron does there."""
        on = self.columns.patterns > 0
        return ~self.other & ((on & (self.heights < -tolerance)) | (~on & (self.heights > tolerance)))

    def flipped(self, wrong: Tensor) -> "Candidate":
        """With the patterns changed where they are wrong."""
        patterns = torch.where(wrong, 1 - self.columns.patterns, self.columns.patterns)
        return replace(self, columns=Columns(self.columns.signs, patterns))
