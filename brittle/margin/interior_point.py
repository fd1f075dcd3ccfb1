"""Mehrotra's predictor and corrector for any problem of pairs x ≥ 0, z ≥ 0 that ends with x z = 0.

A problem keeps its x, its z and its steps in one NamedTuple of its own, with one vector per family of inequalities.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

STEP = 0.99  # of the way to the boundary
SHORTEST = 1e-9  # a shorter step is no step
PATIENCE = 15  # steps without progress


V = TypeVar("V", bound=tuple[Tensor, ...])  # a NamedTuple of vectors


class Direction(NamedTuple, Generic[V]):
    """Steps of the values and of the duals."""

    values: V
    duals: V


@dataclass(frozen=True, eq=False)
class Iterate(Generic[V]):
    """values: x > 0; duals: z > 0; gap: what has to fall, infinite until it is measured; steps: how many led here."""

    values: V
    duals: V
    gap: float = torch.inf
    steps: int = 0

    @property
    def complementarity(self) -> float:
        """x·z."""
        return sum(float(x @ z) for x, z in zip(self.values, self.duals, strict=True))

    def moved(self, length: float, direction: Direction[V]) -> "Iterate[V]":
        """The iterate a share of the way along a direction."""
        values = _mapped(lambda x, dx: x + length * dx, self.values, direction.values)
        duals = _mapped(lambda z, dz: z + length * dz, self.duals, direction.duals)
        return Iterate(values, duals, steps=self.steps + 1)

    def forces(self, targets: V) -> V:
        """targets / x: what dz would be if x stayed."""
        return _mapped(lambda target, x: target / x, targets, self.values)

    def direction(self, forces: V, steps: V) -> Direction[V]:
        """Steps dx together with the dz for which x dz + z dx = x · forces."""
        duals = _mapped(lambda force, x, z, dx: force - z / x * dx, forces, self.values, self.duals, steps)
        return Direction(steps, duals)

    def longest(self, direction: Direction[V]) -> float:
        """The largest step in [0, 1] that keeps values and duals non-negative."""
        return longest_step((*self.values, *self.duals), (*direction.values, *direction.duals))


class Factored(Protocol[V]):
    """A linearised problem that is ready for any right side."""

    def solve(self, targets: V, bend: V | None) -> Direction[V]:
        """Steps with x dz + z dx = target; `bend` is a step of x whose second-order error is to be corrected."""
        ...


class Linearised(Protocol[V]):
    """A problem linearised at one iterate; `gap` is what has to fall below the tolerance."""

    @property
    def gap(self) -> float:
        """Zero at the solution."""
        ...

    def factor(self) -> Factored[V]:
        """The problem, ready for any right side."""
        ...


def follow(
    linearise: Callable[[Iterate[V]], Linearised[V]],
    start: Iterate[V],
    tolerance: float,
    limit: int = 60,
    stop: Callable[[], bool] = lambda: False,
) -> Iterate[V]:
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


def predict_and_correct(factored: Factored[V], iterate: Iterate[V]) -> Direction[V]:
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
