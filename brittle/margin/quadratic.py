"""min ½ xᵀHx - rᵀx over x = (λ, s) with λ ≥ 0 and 0 ≤ s ≤ λ, by an interior point."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from brittle.margin.arrow import Arrow, Factor
from brittle.margin.interior_point import Iterate, Vectors, follow


@dataclass(frozen=True, eq=False)
class Quadratic:
    """Values are (λ, s, λ - s); `right` is r, split like x."""

    arrow: Arrow
    right: tuple[Tensor, Tensor]

    def linearise(self, values: Vectors, duals: Vectors) -> "Linearised":
        return Linearised(self.arrow, self.arrow.index, self.right, values, duals)

    def start(self, typical: float) -> Iterate:
        """`typical` is the size of a multiplier."""
        lam = torch.full_like(self.right[0], typical)
        s = torch.full_like(self.right[1], typical / 2)
        return Iterate((lam, s, s), (self.right[0].abs(), torch.ones_like(s), torch.ones_like(s)))

    def minimise(self, typical: float, tolerance: float) -> Iterate:
        return follow(self, self.start(typical), tolerance)


@dataclass(eq=False)
class Linearised:
    arrow: Arrow
    index: Tensor
    right: tuple[Tensor, Tensor]
    values: Vectors
    duals: Vectors
    lack: tuple[Tensor, Tensor] = field(init=False)
    gap: float = field(init=False)
    factored: Factor = field(init=False)

    def __post_init__(self) -> None:
        (lam, s, w), (floor, low, high) = self.values, self.duals
        top, bottom = self.arrow.apply(lam, s)
        top = top - self.right[0] - floor.index_add(0, self.index, high)
        bottom = bottom - self.right[1] - low + high
        self.lack = top, bottom
        self.gap = float(lam @ floor + s @ low + w @ high + top.abs() @ lam + bottom.abs() @ s)

    def factor(self) -> None:
        self.factored = self.arrow.factor(*(z / x for x, z in zip(self.values, self.duals, strict=True)))

    def solve(self, targets: Vectors, bend: Vectors | None) -> tuple[Vectors, Vectors]:
        pull = [t / x for t, x in zip(targets, self.values, strict=True)]
        top = pull[0].index_add(0, self.index, pull[2]) - self.lack[0]
        dlam, ds = self.factored.solve(top, pull[1] - pull[2] - self.lack[1])
        steps = dlam, ds, dlam[self.index] - ds
        turns = [p - z / x * dx for p, x, z, dx in zip(pull, self.values, self.duals, steps, strict=True)]
        return steps, turns
