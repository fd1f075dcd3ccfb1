"""The finish: Newton's method on the equations that hold exactly at a KKT point, once it is known which they are.

Unknowns: λ on the margin, t at kinks of the other class, μ. Equations: q_i = 1 on the margin, (K c_g)_i = 0 at kinks,
c_gᵀ K c_g = 1. A wrong active set shows as wrong signs and is changed until none is left.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.margin.candidate import Candidate, Slope
from brittle.margin.cholesky import SINGULAR, steady_cholesky

COARSE, FINE = 1e-7, 1e-14  # errors of the equations while the active set changes, and in the end
SIGN = 1e-12  # a violation below this is rounding


def active_set_newton(candidate: Candidate, limit: int = 25) -> Candidate | None:
    """The KKT point of the columns' program near the candidate, or None if Newton's method does not find it."""
    goal = COARSE
    for _ in range(limit):
        solved = newton(candidate, goal)
        if solved is None:
            return None
        changed = change_active_set(solved, goal)
        if changed is None and goal == FINE:
            return solved
        goal = FINE if changed is None else COARSE
        candidate = solved if changed is None else changed
        if not len(candidate):
            return None
    return None


def newton(candidate: Candidate, goal: float, limit: int = 8) -> Candidate | None:
    """Steps until no equation is off by more than the goal, or rounding stops them close to it."""
    candidate = replace(candidate, lam=torch.where(candidate.margin, candidate.lam, 0.0))
    equations, before = active_equations(candidate), torch.inf
    for _ in range(limit):
        linearised = equations.linearise(candidate)
        error = linearised.worst
        if error < goal or (error < 1e-12 and error > before / 2):
            return candidate
        if not error < 1e6:
            return None
        step = linearised.solve()
        candidate = replace(candidate, lam=candidate.lam + step.lam, mu=candidate.mu + step.mu, t=candidate.t + step.t)
        before = error
    return candidate if before < 1e-10 else None


def change_active_set(candidate: Candidate, goal: float) -> Candidate | None:
    """The candidate with every wrong sign put right, or None if there is none."""
    sign = max(SIGN, goal)
    lam, margin, slopes, t = candidate.lam, candidate.margin, candidate.slopes, candidate.t
    q, heights = candidate.margins(candidate.columns.patterns), candidate.heights
    leave, enter = margin & (lam < -sign), ~margin & (q < 1 - 10 * sign)
    below, above = candidate.kinks & (t < -sign), candidate.kinks & (t > lam + sign)
    sunk = candidate.other & margin & (slopes == Slope.ON) & (heights < -10 * sign)
    risen = candidate.other & margin & (slopes == Slope.OFF) & (heights > 10 * sign)
    dead = candidate.mu <= 0
    if not any(bool(wrong.any()) for wrong in (leave, enter, below, above, sunk, risen, dead)):
        return None
    slopes = slopes.masked_fill(below, Slope.OFF).masked_fill(above, Slope.ON).masked_fill(sunk | risen, Slope.KINK)
    t = torch.where(sunk, lam, torch.where(risen, 0.0, t))
    changed = replace(candidate, margin=(margin & ~leave) | enter, slopes=slopes, t=t)
    return changed.take(torch.nonzero(~dead)[:, 0])


class Step(NamedTuple):
    """Newton's step: lam (n,), zero off the margin; mu (G,); t (G, n), zero away from kinks."""

    lam: Tensor
    mu: Tensor
    t: Tensor


@dataclass(frozen=True, eq=False)
class ActiveEquations:
    """What stays fixed while the active set does.

    K (n, n); margin: its examples; C (G, n) the candidate's `linear`; kinks: the examples of each neuron's kinks;
    factors: Cholesky factors of K there; places: where each neuron's examples stand in `margin`; lifts: L⁻¹ K C there.
    """

    K: Tensor
    margin: Tensor
    C: Tensor
    kinks: tuple[Tensor, ...]
    factors: tuple[Tensor, ...]
    places: tuple[Tensor, ...]
    lifts: tuple[Tensor, ...]

    def linearise(self, candidate: Candidate) -> "Linearised":
        """The errors of the equations at a candidate with this active set."""
        c, k, mu = candidate.coefficients, candidate.k, candidate.mu
        margins = ((mu[:, None] * self.C * k).sum(0) - 1)[self.margin]
        lengths = ((c * k).sum(1) - 1) / 2
        heights = tuple(row[kinks] for row, kinks in zip(k, self.kinks, strict=True))
        return Linearised(self, mu, k, margins, lengths, heights)


def active_equations(candidate: Candidate) -> ActiveEquations:
    """The equations that the candidate's active set names."""
    K, C = candidate.examples.K, candidate.linear
    margin = torch.nonzero(candidate.margin)[:, 0]
    kinks = tuple(torch.nonzero(row)[:, 0] for row in candidate.kinks)
    factors = tuple(steady_cholesky(K[k][:, k]) for k in kinks)
    place = torch.full((len(K),), -1, dtype=torch.long)
    place[margin] = torch.arange(len(margin))
    live = [torch.nonzero(row)[:, 0] for row in (C != 0) & candidate.margin]
    lifts = tuple(
        torch.linalg.solve_triangular(L, K[k][:, rows] * row[rows], upper=False)
        for L, k, rows, row in zip(factors, kinks, live, C, strict=True)
    )
    return ActiveEquations(K, margin, C, kinks, factors, tuple(place[rows] for rows in live), lifts)


@dataclass(frozen=True, eq=False)
class Linearised:
    """The equations at one candidate with mu (G,) and k (G, n).

    Errors: margins on the margin, lengths (G,) of ½ c_gᵀKc_g, heights at each neuron's kinks.
    """

    equations: ActiveEquations
    mu: Tensor
    k: Tensor
    margins: Tensor
    lengths: Tensor
    heights: tuple[Tensor, ...]

    @property
    def worst(self) -> float:
        """The largest error."""
        errors = self.margins, self.lengths, *self.heights
        return max(float(error.abs().max()) for error in errors if len(error))

    def solve(self) -> Step:
        """Newton's step: the t are eliminated, λ and μ solved for together."""
        fixed, size = self.equations, len(self.margins)
        C = fixed.C[:, fixed.margin]
        A = torch.zeros(size + len(self.mu), size + len(self.mu), dtype=self.k.dtype)
        rhs = torch.cat([-self.margins, -self.lengths])
        A[:size, :size] = fixed.K[fixed.margin][:, fixed.margin] * (C.T @ (self.mu[:, None] * C))
        A[:size, size:] = (C * self.k[:, fixed.margin]).T
        A[size:, :size] = C * self.k[:, fixed.margin]
        for g, (L, lift, place) in enumerate(zip(fixed.factors, fixed.lifts, fixed.places, strict=True)):
            half = torch.linalg.solve_triangular(L, self.heights[g][:, None], upper=False)[:, 0]
            pull = lift.T @ half
            A[place[:, None], place] -= self.mu[g] * (lift.T @ lift)
            A[size + g, place] -= pull
            rhs[place] += self.mu[g] * pull
            rhs[size + g] += half @ half
        x = _solve_square(A, rhs)
        dlam = torch.zeros(len(fixed.K), dtype=x.dtype)
        dlam[fixed.margin] = x[:size]
        return Step(dlam, x[size:], self._at_kinks(dlam))

    def _at_kinks(self, dlam: Tensor) -> Tensor:
        """The step of t that follows from the step of λ."""
        fixed, dt = self.equations, torch.zeros_like(self.k)
        for g, (L, kinks) in enumerate(zip(fixed.factors, fixed.kinks, strict=True)):
            rise = fixed.K[kinks] @ (fixed.C[g] * dlam) + self.heights[g]
            dt[g, kinks] = torch.cholesky_solve(rise[:, None], L)[:, 0]
        return dt


def _solve_square(A: Tensor, rhs: Tensor) -> Tensor:
    """By LU, or the shortest solution where multipliers are not unique (more examples than dimensions, say)."""
    solution: Tensor
    LU, pivots, info = torch.linalg.lu_factor_ex(A)
    pivot = LU.diagonal().abs()
    if int(info) == 0 and float(pivot.min()) > SINGULAR * float(pivot.max()):
        solution = torch.linalg.lu_solve(LU, pivots, rhs[:, None])
    else:
        solution = torch.linalg.lstsq(A, rhs[:, None], rcond=SINGULAR, driver="gelsd").solution
    return solution[:, 0]
