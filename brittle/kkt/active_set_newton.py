"""The finish: Newton's method on the equations that hold exactly at a KKT point, once it is known which they are.

Unknowns: λ on the margin, t at kinks of the other class, μ. Equations: q_i = 1 on the margin, (K c_g)_i = 0 at kinks,
c_gᵀ K c_g = 1. A wrong active set shows as wrong signs and is changed until none is left.
"""

import enum
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.kkt.arrow import SINGULAR, steady_cholesky
from brittle.kkt.examples import DistinctExamples, Neurons, PatternColumns


class Slope(enum.IntEnum):
    """What a neuron does on an example of the other class: off (t = 0), on (t = λ), or at a kink (t between them)."""

    OFF = 0
    ON = 1
    KINK = 2


@dataclass(frozen=True, eq=False)
class Candidate:
    """lam λ (n,), mu μ (G,) and t (G, n) for the columns' program; margin (n,): the examples thought to lie on it.

    slopes (G, n) holds a `Slope` for every neuron and example of the other class; on the own class it is not used.
    """

    examples: DistinctExamples
    columns: PatternColumns
    lam: Tensor
    mu: Tensor
    t: Tensor
    margin: Tensor
    slopes: Tensor

    def __len__(self) -> int:
        """How many neurons."""
        return len(self.mu)

    def take(self, index: Tensor) -> "Candidate":
        """Some of the neurons."""
        columns, mu, t, slopes = self.columns.take(index), self.mu[index], self.t[index], self.slopes[index]
        return replace(self, columns=columns, mu=mu, t=t, slopes=slopes)

    @cached_property
    def other(self) -> Tensor:
        """Where an example is of the other class, (G, n)."""
        return self.columns.signs[:, None] != self.examples.y

    @cached_property
    def kinks(self) -> Tensor:
        """Where t is free, (G, n)."""
        return self.other & (self.slopes == Slope.KINK) & self.margin

    @cached_property
    def linear(self) -> Tensor:
        """C (G, n): c_g = C_g λ away from kinks."""
        return torch.where(self.other, -(self.slopes == Slope.ON).to(self.lam.dtype), self.columns.patterns)

    @cached_property
    def coefficients(self) -> Tensor:
        """c (G, n), so that u_g = μ_g Σ_i c_gi x̃_i."""
        return torch.where(self.kinks, -self.t, self.linear * self.lam)

    @cached_property
    def k(self) -> Tensor:
        """c K (G, n): the preactivations of the neurons before they are multiplied by μ."""
        return self.coefficients @ self.examples.K

    @cached_property
    def heights(self) -> Tensor:
        """k as a share of each neuron's largest."""
        return self.k / self.k.abs().amax(1, keepdim=True).clamp(min=1e-300)

    @property
    def neurons(self) -> Neurons:
        """u_g = μ_g Σ_i c_gi x̃_i."""
        U = self.mu[:, None] * (self.coefficients @ self.examples.X) / self.examples.unit
        return Neurons(U, self.columns.signs)

    def margins(self, patterns: Tensor) -> Tensor:
        """q (n,) of these neurons where `patterns` (G, n) say which of them count on their own class."""
        return (self.mu[:, None] * torch.where(self.other, -self.k.relu(), patterns * self.k)).sum(0)

    def mismatches(self, tolerance: float) -> Tensor:
        """Where a column's pattern on its own class differs from what its neuron does there."""
        on = self.columns.patterns > 0
        return ~self.other & ((on & (self.heights < -tolerance)) | (~on & (self.heights > tolerance)))

    def flipped(self, wrong: Tensor) -> "Candidate":
        """With the patterns changed where they are wrong."""
        patterns = torch.where(wrong, 1 - self.columns.patterns, self.columns.patterns)
        return replace(self, columns=PatternColumns(self.columns.signs, patterns))


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


class ActiveSetStep(NamedTuple):
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

    def linearise(self, candidate: Candidate) -> "LinearisedCandidate":
        """The errors of the equations at a candidate with this active set."""
        c, k, mu = candidate.coefficients, candidate.k, candidate.mu
        margins = ((mu[:, None] * self.C * k).sum(0) - 1)[self.margin]
        lengths = ((c * k).sum(1) - 1) / 2
        heights = tuple(row[kinks] for row, kinks in zip(k, self.kinks, strict=True))
        return LinearisedCandidate(self, mu, k, margins, lengths, heights)


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
class LinearisedCandidate:
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

    def solve(self) -> ActiveSetStep:
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
        return ActiveSetStep(dlam, x[size:], self._at_kinks(dlam))

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
