"""The last digits of the stationarity problem: least squares on the variables that are off their bounds.

At an exact KKT point every bound's multiplier vanishes, and an interior point stalls at ‖θ - Σ λ_i g_i‖ ~ 1e-8. Once
the variables on their bounds are known, one linear system gives the rest to machine precision.
"""

from dataclasses import replace

import torch
from torch import Tensor

from brittle.margin.interior_point import longest
from brittle.margin.stationarity import Stationarity

BOUND = 1e-6  # a variable below this share of the largest multiplier is tried at zero
NOISE = 1e-14  # relative size of the residual at which there is nothing left to gain


def polish(problem: Stationarity, lam: Tensor, s: Tensor, scale: float, rounds: int = 12) -> tuple[Tensor, Tensor]:
    """A feasible point that explains θ at least as well; `scale` is ‖θ‖."""
    rows = problem.kinks[:, 0]
    small = BOUND * float(lam.max())
    off = lam <= small
    zero, full = s <= small, lam[rows] - s <= small
    best = (problem.gap(lam, s)[0], lam, s)
    stalls = 0
    for _ in range(rounds):
        lam = torch.where(off, 0.0, lam)
        zero = (zero & ~full) | off[rows]
        full = full & ~zero
        lam, s, blocked = _descend(problem, lam, s, off, zero, full)
        size, top, bottom = problem.gap(lam, s)
        stalls = 0 if size < 0.9 * best[0] else stalls + 1
        best = min(best, (size, lam, s), key=lambda entry: entry[0])
        if size <= NOISE * scale or stalls == 3:
            break
        noise = 1e-3 * size
        wanted = top.index_add(0, rows, bottom.clamp(min=0)) > noise
        released = (off & wanted).sum() + (zero & (bottom > noise)).sum() + (full & (bottom < -noise)).sum()
        if not int(released) and not blocked:
            break
        off = (off & ~wanted) | (lam <= 0)
        zero = (zero & (bottom <= noise)) | ((s <= 0) & (bottom <= noise))
        full = (full & (bottom >= -noise)) | ((s >= lam[rows]) & (bottom >= -noise))
    return best[1], best[2]


def _descend(
    problem: Stationarity, lam: Tensor, s: Tensor, off: Tensor, zero: Tensor, full: Tensor
) -> tuple[Tensor, Tensor, bool]:
    """The least-squares step on the free variables, cut where the first bound is met."""
    rows, neurons = problem.kinks.T
    active = problem.active.clone()
    active[rows[full], neurons[full]] = True
    free = ~(zero | full)
    place = torch.nonzero(free)[:, 0]
    place = place[problem.order(problem.kinks[place])]
    reduced = replace(problem, active=active, kinks=problem.kinks[place])
    arrow = reduced.arrow()
    size = float(arrow.head.diagonal().max())
    held = size * (1e-15 + 1e8 * off.to(lam.dtype))
    factor = arrow.factor(held, torch.zeros(len(place), dtype=lam.dtype), torch.zeros(len(place), dtype=lam.dtype))
    blocked = False
    for _ in range(3):
        t = s[place]
        _, top, bottom = reduced.gap(lam, t)
        dlam, dt = factor.solve(torch.where(off, 0.0, top), bottom)
        dlam = torch.where(off, 0.0, dlam)
        index = reduced.kinks[:, 0]
        length = longest([lam, t, lam[index] - t], [dlam, dt, dlam[index] - dt])
        blocked = length < 1
        lam = (lam + length * dlam).clamp(min=0)
        s = torch.where(full, lam[rows], torch.where(zero, 0.0, s))
        s[place] = torch.minimum((t + length * dt).clamp(min=0), lam[index])
        if blocked:
            break
    return lam, s, blocked
