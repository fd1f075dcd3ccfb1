"""Mehrotra's predictor and corrector for any problem of pairs x ≥ 0, z ≥ 0 that ends with x z = 0.

A problem keeps its x, its z and its steps in one NamedTuple of its own, with one vector per family of inequalities.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from brittle.kkt.arrow import Arrow, ArrowVector, FactoredArrow

STEP = 0.99  # of the way to the boundary
SHORTEST = 1e-9  # a shorter step is no step
PATIENCE = 15  # steps without progress


V = TypeVar("V", bound=tuple[Tensor, ...])  # a NamedTuple of vectors


class PrimalDualDirection(NamedTuple, Generic[V]):
    """Steps of the values and of the duals."""

    values: V
    duals: V


@dataclass(frozen=True, eq=False)
class PrimalDualIterate(Generic[V]):
    """values: x > 0; duals: z > 0; gap: what has to fall, infinite until it is measured; steps: how many led here."""

    values: V
    duals: V
    gap: float = torch.inf
    steps: int = 0

    @property
    def complementarity(self) -> float:
        """x·z."""
        return sum(float(x @ z) for x, z in zip(self.values, self.duals, strict=True))

    def moved(self, length: float, direction: PrimalDualDirection[V]) -> "PrimalDualIterate[V]":
        """The iterate a share of the way along a direction."""
        values = _mapped(lambda x, dx: x + length * dx, self.values, direction.values)
        duals = _mapped(lambda z, dz: z + length * dz, self.duals, direction.duals)
        return PrimalDualIterate(values, duals, steps=self.steps + 1)

    def forces(self, targets: V) -> V:
        """targets / x: what dz would be if x stayed."""
        return _mapped(lambda target, x: target / x, targets, self.values)

    def direction(self, forces: V, steps: V) -> PrimalDualDirection[V]:
        """Steps dx together with the dz for which x dz + z dx = x · forces."""
        duals = _mapped(lambda force, x, z, dx: force - z / x * dx, forces, self.values, self.duals, steps)
        return PrimalDualDirection(steps, duals)

    def longest(self, direction: PrimalDualDirection[V]) -> float:
        """The largest step in [0, 1] that keeps values and duals non-negative."""
        return longest_step((*self.values, *self.duals), (*direction.values, *direction.duals))


class FactoredProblem(Protocol[V]):
    """A linearised problem that is ready for any right side."""

    def solve(self, targets: V, bend: V | None) -> PrimalDualDirection[V]:
        """Steps with x dz + z dx = target; `bend` is a step of x whose second-order error is to be corrected."""
        ...


class LinearisedProblem(Protocol[V]):
    """A problem linearised at one iterate; `gap` is what has to fall below the tolerance."""

    @property
    def gap(self) -> float:
        """Zero at the solution."""
        ...

    def factor(self) -> FactoredProblem[V]:
        """The problem, ready for any right side."""
        ...


def follow(
    linearise: Callable[[PrimalDualIterate[V]], LinearisedProblem[V]],
    start: PrimalDualIterate[V],
    tolerance: float,
    limit: int = 60,
    stop: Callable[[], bool] = lambda: False,
) -> PrimalDualIterate[V]:
    """The best iterate on the central path's way to gap ≤ tolerance, after `limit` steps at most or at a `stop`."""
    iterate = best = start
    for _ in range(limit):
        system = linearise(iterate)
        iterate = replace(iterate, gap=system.gap)
        best = min(best, iterate, key=lambda either: either.gap)
        if not tolerance < iterate.gap < 1e3 * best.gap or iterate.steps > best.steps + PATIENCE or stop():
            break
        direction = predict_and_correct(system.factor(), iterate)
        length = STEP * iterate.longest(direction)
        if length < SHORTEST:
            break
        iterate = iterate.moved(length, direction)
    return best


def predict_and_correct(factored: FactoredProblem[V], iterate: PrimalDualIterate[V]) -> PrimalDualDirection[V]:
    """Mehrotra's direction: how far the pure Newton step gets decides how strongly the next one is centred."""
    x, z = iterate.values, iterate.duals
    predictor = factored.solve(_mapped(lambda a, b: -a * b, x, z), None)
    length = iterate.longest(predictor)
    ahead, total = iterate.moved(length, predictor).complementarity, iterate.complementarity
    aim = min(1.0, max(ahead, 0.0) / total) ** 3 * total / sum(len(part) for part in x)
    targets = _mapped(lambda a, b, da, db: aim - a * b - da * db, x, z, predictor.values, predictor.duals)
    return factored.solve(targets, _mapped(lambda dx: length * dx, predictor.values))


def longest_step(values: Iterable[Tensor], steps: Iterable[Tensor]) -> float:
    """The largest step in [0, 1] that keeps every value non-negative."""
    rates = [float((dx / x.clamp(min=1e-300)).min()) for x, dx in zip(values, steps, strict=True) if len(x)]
    worst = min(rates, default=0.0)
    return 1.0 if worst >= -1 else -1 / worst


def _mapped(function: Callable[..., Tensor], first: V, *others: V) -> V:
    """A function of vectors, family by family."""
    return type(first)(*map(function, first, *others))


# min ½ xᵀHx - rᵀx over x = (λ, s) with λ ≥ 0 and 0 ≤ s ≤ λ, by an interior point.


class ArrowInequalities(NamedTuple):
    """One vector per family: lam (λ ≥ 0), s (s ≥ 0) and w = λ - s (≥ 0), or their multipliers, or steps of either."""

    lam: Tensor
    s: Tensor
    w: Tensor


@dataclass(frozen=True, eq=False)
class Quadratic:
    """H as an arrow; `rhs` is r."""

    arrow: Arrow
    rhs: ArrowVector

    def linearise(self, iterate: PrimalDualIterate[ArrowInequalities]) -> "LinearisedArrow":
        """Newton's equations at an iterate."""
        (lam, s, _), duals = iterate.values, iterate.duals
        image = self.arrow.apply(ArrowVector(lam, s))
        top = image.lam - self.rhs.lam - duals.lam.index_add(0, self.arrow.index, duals.w)
        bottom = image.s - self.rhs.s - duals.s + duals.w
        gap = iterate.complementarity + float(top.abs() @ lam) + float(bottom.abs() @ s)
        return LinearisedArrow(self.arrow, iterate, ArrowVector(top, bottom), gap)

    def start(self, typical: float) -> PrimalDualIterate[ArrowInequalities]:
        """`typical` is the size of a multiplier."""
        lam = torch.full_like(self.rhs.lam, typical)
        s = torch.full_like(self.rhs.s, typical / 2)
        return PrimalDualIterate(
            ArrowInequalities(lam, s, s), ArrowInequalities(self.rhs.lam.abs(), torch.ones_like(s), torch.ones_like(s))
        )

    def minimise(self, typical: float, tolerance: float) -> PrimalDualIterate[ArrowInequalities]:
        """The minimum, to a duality gap of `tolerance`."""
        return follow(self.linearise, self.start(typical), tolerance)


@dataclass(frozen=True, eq=False)
class LinearisedArrow:
    """Newton's equations for an arrow at one iterate.

    errors: the gradient of the Lagrangian; gap: complementarity, and what the errors may be worth.
    """

    arrow: Arrow
    iterate: PrimalDualIterate[ArrowInequalities]
    errors: ArrowVector
    gap: float

    def factor(self) -> "FactoredQuadratic":
        """The equations, ready for any right side."""
        diagonals = (z / x for x, z in zip(self.iterate.values, self.iterate.duals, strict=True))
        return FactoredQuadratic(self, self.arrow.factor(*diagonals))


@dataclass(frozen=True, eq=False)
class FactoredQuadratic:
    """The system, and its matrix factored."""

    system: LinearisedArrow
    matrix: FactoredArrow

    def solve(
        self, targets: ArrowInequalities, bend: ArrowInequalities | None
    ) -> PrimalDualDirection[ArrowInequalities]:
        """Steps with x dz + z dx = target; the inequalities are linear, so that no bend is to be corrected."""
        iterate, errors, index = self.system.iterate, self.system.errors, self.system.arrow.index
        forces = iterate.forces(targets)
        top = forces.lam.index_add(0, index, forces.w) - errors.lam
        dlam, ds = self.matrix.solve(ArrowVector(top, forces.s - forces.w - errors.s))
        return iterate.direction(forces, ArrowInequalities(dlam, ds, dlam[index] - ds))
