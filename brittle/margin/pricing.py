"""Pricing: which columns would lower the norm?

A column's reduced cost is 1 - min over 0 ≤ t ≤ λ of ‖Σ_own λ_i P_i x̃_i - Σ_other t_i x̃_i‖, the norm of a unit neuron
less what the multipliers λ pay for it; the column improves the restricted master where it is negative.
"""

import torch
from torch import Tensor

from brittle.margin.columns import Columns

CHECK = 10  # steps between two looks at which columns are settled


def reduced_costs(K: Tensor, y: Tensor, lam: Tensor, pool: Columns, below: float, steps: int = 150) -> Tensor:
    """For every column a lower bound that some t attains; columns are followed only while theirs is below `below`."""
    costs = torch.ones(len(pool), dtype=K.dtype)
    for sign in (1.0, -1.0):
        mine = torch.nonzero(pool.signs == sign)[:, 0]
        if len(mine):
            own, other = y == sign, y == -sign
            load = pool.patterns[mine][:, own] * lam[own]
            rows = K[own]
            square = ((load @ rows[:, own]) * load).sum(1)
            shortest = _shortest(K[other][:, other], load @ rows[:, other], square, lam[other], 1 - below, steps)
            costs[mine] = 1 - shortest
    return costs


def _shortest(K: Tensor, rhs: Tensor, square: Tensor, top: Tensor, limit: float, steps: int) -> Tensor:
    """√ of min_t tᵀKt - 2 tᵀrhs + square over the box, row by row, by accelerated projected gradients."""
    if not len(top):
        return square.sqrt()
    live, shortest = torch.arange(len(rhs)), torch.full_like(square, torch.inf)
    rate, momentum = 1 / _largest_eigenvalue(K), 1.0
    t = ahead = (top / 2).expand(rhs.shape)
    for taken in range(1, steps + 1):
        projected = torch.minimum((ahead - rate * (ahead @ K - rhs[live])).clamp(min=0), top)
        next_momentum = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = projected + (momentum - 1) / next_momentum * (projected - t)
        t, momentum = projected, next_momentum
        if taken % CHECK == 0:
            squares = square[live] + ((t @ K - 2 * rhs[live]) * t).sum(1)
            shortest[live] = torch.minimum(shortest[live], squares.clamp(min=0).sqrt())
            unsettled = shortest[live] > limit
            live, t, ahead = live[unsettled], t[unsettled], ahead[unsettled]
            if not len(live):
                break
    return shortest


def _largest_eigenvalue(K: Tensor) -> float:
    """A slight overestimate, by the power method."""
    x = K.sum(1) + 1e-3 * K.diagonal()
    for _ in range(40):
        x = K @ (x / x.norm())
    return 1.05 * float(x.norm()) + 1e-300
