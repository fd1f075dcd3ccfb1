"""Mehrotra's predictor and corrector for any problem of pairs x ≥ 0, z ≥ 0 that ends with x z = 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

Vectors = Sequence[Tensor]
STEP = 0.99  # of the way to the boundary
PATIENCE = 15  # steps without progress


class System(Protocol):
    """A problem linearised at one iterate; `gap` is what has to fall below the tolerance."""

    @property
    def gap(self) -> float: ...

    def factor(self) -> None: ...

    def solve(self, targets: Vectors, bend: Vectors | None) -> tuple[Vectors, Vectors]:
        """Steps dx, dz with x dz + z dx = target; `bend` is a step whose second-order error is to be corrected."""
        ...


class Problem(Protocol):
    def linearise(self, values: Vectors, duals: Vectors) -> System: ...


@dataclass(frozen=True, eq=False)
class Iterate:
    values: tuple[Tensor, ...]
    duals: tuple[Tensor, ...]
    gap: float = torch.inf
    steps: int = 0


def follow(problem: Problem, start: Iterate, tolerance: float, rounds: int = 60) -> Iterate:
    """The best iterate on the central path's way to gap ≤ tolerance."""
    values, duals, best = start.values, start.duals, start
    for taken in range(rounds):
        system = problem.linearise(values, duals)
        if system.gap < best.gap:
            best = Iterate(tuple(values), tuple(duals), system.gap, taken)
        if not tolerance < system.gap < 1e3 * best.gap or taken > best.steps + PATIENCE:
            break
        system.factor()
        length, steps, turns = _step(system, values, duals)
        if length < 1e-9:
            break
        values = tuple(x + length * dx for x, dx in zip(values, steps, strict=True))
        duals = tuple(z + length * dz for z, dz in zip(duals, turns, strict=True))
    return best


def _step(system: System, x: Vectors, z: Vectors) -> tuple[float, Vectors, Vectors]:
    total, count = _product(x, z), sum(len(part) for part in x)
    dx, dz = system.solve([-a * b for a, b in zip(x, z, strict=True)], None)
    length = longest((*x, *z), (*dx, *dz))
    bend = [length * step for step in dx]
    ahead = _product(
        [a + step for a, step in zip(x, bend, strict=True)], [b + length * db for b, db in zip(z, dz, strict=True)]
    )
    aim = min(1.0, max(ahead, 0.0) / total) ** 3 * total / count
    targets = [aim - a * b - da * db for a, b, da, db in zip(x, z, dx, dz, strict=True)]
    dx, dz = system.solve(targets, bend)
    return STEP * longest((*x, *z), (*dx, *dz)), dx, dz


def _product(x: Vectors, z: Vectors) -> float:
    return sum(float(a @ b) for a, b in zip(x, z, strict=True))


def longest(values: Vectors, steps: Vectors) -> float:
    """The largest step in [0, 1] that keeps every value non-negative."""
    rates = [float((dx / x.clamp(min=1e-300)).min()) for x, dx in zip(values, steps, strict=True) if len(x)]
    worst = min(rates, default=0.0)
    return 1.0 if worst >= -1 else -1 / worst
