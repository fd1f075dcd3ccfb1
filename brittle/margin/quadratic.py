"""A primal-dual interior point method for min ½ xᵀHx - rᵀx over x = (λ, s) with λ ≥ 0 and 0 ≤ s ≤ λ."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.margin.arrow import Arrow


@dataclass(frozen=True, eq=False)
class Minimum:
    """The minimiser, its multipliers (of λ ≥ 0, s ≥ 0, s ≤ λ) and the duality gap that is left."""

    lam: Tensor
    s: Tensor
    multipliers: tuple[Tensor, Tensor, Tensor]
    gap: float


def minimise(arrow: Arrow, right: tuple[Tensor, Tensor], start: float, tolerance: float, rounds: int = 60) -> Minimum:
    """Mehrotra's predictor and corrector; `start` is the size of a typical λ, `tolerance` bounds the duality gap."""
    index, r, p = arrow.index, *right
    lam = torch.full_like(r, start)
    s = lam[index] / 2
    duals = [torch.full_like(r, float(r.abs().mean())), torch.full_like(s, 1.0), torch.full_like(s, 1.0)]
    best = Minimum(lam, s, tuple(duals), torch.inf)
    for _ in range(rounds):
        values = [lam, s, lam[index] - s]
        top, bottom = arrow.apply(lam, s)
        top, bottom = top - r, bottom - p
        lack = top - duals[0].index_add(0, index, duals[2]), bottom - duals[1] + duals[2]
        products = sum(float(x @ z) for x, z in zip(values, duals, strict=True))
        gap = abs(products) + sum(float(e.abs() @ x) for e, x in zip(lack, (lam, s), strict=True))
        if gap < best.gap:
            best = Minimum(lam, s, tuple(duals), gap)
        if gap <= tolerance or gap > 1e3 * best.gap:
            break
        mean = products / max(1, sum(len(x) for x in values))
        factor = arrow.factor(*(z / x for x, z in zip(values, duals, strict=True)))

        def move(targets: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            pull = [t / x for t, x in zip(targets, values, strict=True)]
            head = -lack[0] + pull[0].index_add(0, index, pull[2])
            dlam, ds = factor.solve(head, -lack[1] + pull[1] - pull[2])
            steps = [dlam, ds, dlam[index] - ds]
            return steps, [(t - z * dx) / x for t, x, z, dx in zip(targets, values, duals, steps, strict=True)]

        steps, turns = move([-x * z for x, z in zip(values, duals, strict=True)])
        a, b = longest(values, steps), longest(duals, turns)
        ahead = sum(
            float((x + a * dx) @ (z + b * dz)) for x, dx, z, dz in zip(values, steps, duals, turns, strict=True)
        )
        aim = mean * min(1.0, max(ahead, 0.0) / products) ** 3
        steps, turns = move([aim - x * z - dx * dz for x, dx, z, dz in zip(values, steps, duals, turns, strict=True)])
        a, b = 0.995 * longest(values, steps), 0.995 * longest(duals, turns)
        a = b = min(a, b)
        lam, s = lam + a * steps[0], s + a * steps[1]
        s = torch.minimum(s, lam[index] * (1 - 1e-15))
        duals = [z + b * dz for z, dz in zip(duals, turns, strict=True)]
    return best


def longest(values: list[Tensor], steps: list[Tensor]) -> float:
    """The largest step in [0, 1] that keeps every value non-negative."""
    length = 1.0
    for x, dx in zip(values, steps, strict=True):
        falling = dx < 0
        if bool(falling.any()):
            length = min(length, float((-x[falling] / dx[falling]).min()))
    return length
