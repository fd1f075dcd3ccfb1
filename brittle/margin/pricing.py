"""Which columns would lower the norm: min over 0 ≤ t ≤ λ of ‖Σ_own λ_i P_i x̃_i - Σ_other t_i x̃_i‖ above 1."""

import torch
from torch import Tensor

from brittle.margin.columns import Columns

CHECK = 10  # steps between two looks at which columns are settled


def lengths(K: Tensor, y: Tensor, lam: Tensor, pool: Columns, limit: float, rounds: int = 150) -> Tensor:
    """For every column a length that some t attains; columns are followed only while theirs exceeds the limit."""
    found = torch.zeros(len(pool), dtype=K.dtype)
    for sign in (1.0, -1.0):
        mine = torch.nonzero(pool.signs == sign)[:, 0]
        if len(mine):
            own, other = y == sign, y == -sign
            load = pool.patterns[mine][:, own] * lam[own]
            rows = K[own]
            square = ((load @ rows[:, own]) * load).sum(1)
            found[mine] = _shortest(K[other][:, other], load @ rows[:, other], square, lam[other], limit, rounds)
    return found


def _shortest(K: Tensor, right: Tensor, square: Tensor, top: Tensor, limit: float, rounds: int) -> Tensor:
    """√ of min_t tᵀKt - 2 tᵀright + square over the box, row by row, by accelerated projected gradients."""
    if not len(top):
        return square.sqrt()
    live, shortest = torch.arange(len(right)), torch.full_like(square, torch.inf)
    rate, speed = 1 / _largest_eigenvalue(K), 1.0
    t = ahead = (top / 2).expand(right.shape)
    for done in range(1, rounds + 1):
        step = torch.minimum((ahead - rate * (ahead @ K - right[live])).clamp(min=0), top)
        faster = (1 + (1 + 4 * speed**2) ** 0.5) / 2
        ahead, t, speed = step + (speed - 1) / faster * (step - t), step, faster
        if done % CHECK == 0:
            squares = square[live] + ((t @ K - 2 * right[live]) * t).sum(1)
            shortest[live] = torch.minimum(shortest[live], squares.clamp(min=0).sqrt())
            open_ = shortest[live] > limit
            live, t, ahead = live[open_], t[open_], ahead[open_]
            if not len(live):
                break
    return shortest


def _largest_eigenvalue(K: Tensor) -> float:
    """A slight overestimate, by the power method."""
    x = K.sum(1) + 1e-3 * K.diagonal()
    for _ in range(40):
        x = K @ (x / x.norm())
    return 1.05 * float(x.norm()) + 1e-300
