"""min ½ xᵀHx - rᵀx over x = (λ, s) with λ ≥ 0 and 0 ≤ s ≤ λ, by an interior point."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.margin.arrow import Arrow, ArrowVector, FactoredArrow
from brittle.margin.interior_point import Direction, Iterate, follow


class Inequalities(NamedTuple):
    """One vector per family: lam (λ ≥ 0), s (s ≥ 0) and w = λ - s (≥ 0), or their multipliers, or steps of either."""

    lam: Tensor
    s: Tensor
    w: Tensor


@dataclass(frozen=True, eq=False)
class Quadratic:
    """H as an arrow; `rhs` is r."""

    arrow: Arrow
    rhs: ArrowVector

    def linearise(self, iterate: Iterate[Inequalities]) -> "Linearised":
        """Newton's equations at an iterate."""
        (lam, s, _), duals = iterate.values, iterate.duals
        image = self.arrow.apply(ArrowVector(lam, s))
        top = image.lam - self.rhs.lam - duals.lam.index_add(0, self.arrow.index, duals.w)
        bottom = image.s - self.rhs.s - duals.s + duals.w
        gap = iterate.complementarity + float(top.abs() @ lam) + float(bottom.abs() @ s)
        return Linearised(self.arrow, iterate, ArrowVector(top, bottom), gap)

    def start(self, typical: float) -> Iterate[Inequalities]:
        """`typical` is the size of a multiplier."""
        lam = torch.full_like(self.rhs.lam, typical)
        s = torch.full_like(self.rhs.s, typical / 2)
        return Iterate(
            Inequalities(lam, s, s), Inequalities(self.rhs.lam.abs(), torch.ones_like(s), torch.ones_like(s))
        )

    def minimise(self, typical: float, tolerance: float) -> Iterate[Inequalities]:
        """The minimum, to a duality gap of `tolerance`."""
        return follow(self.linearise, self.start(typical), tolerance)


@dataclass(frozen=True, eq=False)
class Linearised:
    """Newton's equations for an arrow at one iterate.

    errors: the gradient of the Lagrangian; gap: complementarity, and what the errors may be worth.
    """

    arrow: Arrow
    iterate: Iterate[Inequalities]
    errors: ArrowVector
    gap: float

    def factor(self) -> "Factored":
        """The equations, ready for any right side."""
        diagonals = (z / x for x, z in zip(self.iterate.values, self.iterate.duals, strict=True))
        return Factored(self, self.arrow.factor(*diagonals))


@dataclass(frozen=True, eq=False)
class Factored:
    """The system, and its matrix factored."""

    system: Linearised
    matrix: FactoredArrow

    def solve(self, targets: Inequalities, bend: Inequalities | None) -> Direction[Inequalities]:
        """Steps with x dz + z dx = target; the inequalities are linear, so that no bend is to be corrected."""
        iterate, errors, index = self.system.iterate, self.system.errors, self.system.arrow.index
        forces = iterate.forces(targets)
        top = forces.lam.index_add(0, index, forces.w) - errors.lam
        dlam, ds = self.matrix.solve(ArrowVector(top, forces.s - forces.w - errors.s))
        return iterate.direction(forces, Inequalities(dlam, ds, dlam[index] - ds))
