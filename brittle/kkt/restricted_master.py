"""The restricted master: the convex program of the columns in use, in its dual.

max Σ λ_i  subject to  ½(c_gᵀ K c_g - 1) ≤ 0 for every column g,  0 ≤ t_g ≤ λ,  0 ≤ λ ≤ M,
where c_g is λ on the column's own active examples and -t_g on the other class. The multipliers μ_g of the columns are
the norms ‖u_g‖ of the neurons u_g = μ_g Σ_i c_gi x̃_i, and those of 0 ≤ t, t ≤ λ are φ(-z), φ(z) on the other class.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.kkt.active_set_newton import Candidate, Slope
from brittle.kkt.arrow import factor_with_ridge
from brittle.kkt.examples import DistinctExamples, PatternColumns
from brittle.kkt.interior_point import PrimalDualDirection, PrimalDualIterate, follow

LARGEST = 1e7  # M, in units where the mean of K_ii is 1: a multiplier there means that no columns classify the example


class MasterInequalities(NamedTuple):
    """One vector per family of inequalities, or their multipliers, or steps of either.

    lam (n,): λ ≥ 0; headroom (n,): M - λ ≥ 0; t and w = λ - t ≥ 0, flat, one entry per column and other example;
    slack (G,): ½(1 - c_gᵀ K c_g) ≥ 0, whose multiplier is μ.
    """

    lam: Tensor
    headroom: Tensor
    t: Tensor
    w: Tensor
    slack: Tensor


@dataclass(frozen=True, eq=False)
class SideColumns:
    """The columns of one sign: `rows` among all columns, their examples, own-class patterns (G, own) and Gram blocks.

    own, other: the examples of either class; K_other, K_between (other, own) and K_own: the blocks of K.
    """

    rows: slice
    own: Tensor
    other: Tensor
    patterns: Tensor
    K_other: Tensor
    K_between: Tensor
    K_own: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """Columns, and examples of the other class."""
        return len(self.patterns), len(self.other)


@dataclass(frozen=True, eq=False)
class RestrictedMaster:
    """The program of K (n, n), y (n,) and the columns in use, positive ones first."""

    K: Tensor
    y: Tensor
    columns: PatternColumns

    @cached_property
    def sides(self) -> tuple[SideColumns, SideColumns]:
        """The positive columns, then the negative ones."""
        return self._side(1.0), self._side(-1.0)

    @cached_property
    def example(self) -> Tensor:
        """The example of every entry of t."""
        return torch.cat([side.other.repeat(len(side.patterns)) for side in self.sides])

    def _side(self, sign: float) -> SideColumns:
        """The columns of one sign."""
        own, other = (torch.nonzero(self.y == s)[:, 0] for s in (sign, -sign))
        positive = int((self.columns.signs > 0).sum())
        rows = slice(0, positive) if sign > 0 else slice(positive, len(self.columns))
        across = self.K[other]
        return SideColumns(
            rows,
            own,
            other,
            patterns=self.columns.patterns[rows][:, own],
            K_other=across[:, other],
            K_between=across[:, own],
            K_own=self.K[own][:, own],
        )

    def parts(self, flat: Tensor) -> list[Tensor]:
        """A vector over (column, other example) as one matrix per side."""
        parts = torch.split(flat, [side.shape[0] * side.shape[1] for side in self.sides])
        return [part.view(side.shape) for part, side in zip(parts, self.sides, strict=True)]

    def spread(self, flat: Tensor, background: Tensor) -> Tensor:
        """A copy of the matrix `background` (G, n) with a vector's entries at (column, other example)."""
        full = background.clone()
        for side, part in zip(self.sides, self.parts(flat), strict=True):
            full[side.rows, side.other] = part
        return full

    def coefficients(self, lam: Tensor, t: Tensor) -> Tensor:
        """c (G, n); linear in (λ, t)."""
        return self.spread(-t, self.columns.patterns * lam)

    def on_other(self, full: Tensor) -> Tensor:
        """Entries of a (G, n) matrix at (column, other example), flat."""
        return torch.cat([full[side.rows, side.other].flatten() for side in self.sides])

    def start(self) -> PrimalDualIterate[MasterInequalities]:
        """Well inside: every column at a norm of about .7, multipliers to match."""
        n, G = len(self.y), len(self.columns)
        lam = torch.ones(n, dtype=self.K.dtype)
        c = self.coefficients(lam, torch.full(self.example.shape, 0.5, dtype=self.K.dtype))
        size = 0.7 / float(((c @ self.K) * c).sum(1).max()) ** 0.5
        lam, t = size * lam, torch.full(self.example.shape, size / 2, dtype=self.K.dtype)
        c = size * c
        k = c @ self.K
        slack = (1 - (c * k).sum(1)) / 2
        norms = torch.full_like(slack, 2 * n * size / G)
        heights = self.on_other(norms[:, None] * k)
        least = 1.0 / G
        low, high = (-heights).relu() + least, heights.relu() + least
        q = (norms[:, None] * self.columns.patterns * k).sum(0).index_add(0, self.example, high, alpha=-1)
        duals = MasterInequalities((q - 1).relu() + 1, torch.full_like(lam, 1e-3 / LARGEST), low, high, norms)
        return PrimalDualIterate(MasterInequalities(lam, LARGEST - lam, t, t.clone(), slack), duals)


# Newton's equations of the restricted master: every t is eliminated by its column's block, λ by a Schur complement.


BATCH = 300_000  # entries of a batch of blocks


class Errors(NamedTuple):
    """By how much the iterate misses the equations: the gradients in lam (n,) and t, the values of slack (G,)."""

    lam: Tensor
    t: Tensor
    slack: Tensor


def linearise(master: RestrictedMaster, iterate: PrimalDualIterate[MasterInequalities]) -> "LinearisedMaster":
    """Newton's equations at an iterate."""
    values, (floor, ceiling, low, high, mu) = iterate.values, iterate.duals
    c = master.coefficients(values.lam, values.t)
    k = c @ master.K
    in_lam = (mu[:, None] * master.columns.patterns * k).sum(0) - 1 - floor + ceiling
    errors = Errors(
        in_lam.index_add(0, master.example, high, alpha=-1),
        high - low - master.on_other(mu[:, None] * k),
        ((c * k).sum(1) - 1) / 2 + values.slack,
    )
    largest = max(float(error.abs().max()) for error in errors if len(error))
    gap = max(iterate.complementarity / float(values.lam.sum()), largest / 10)
    return LinearisedMaster(master, iterate, k, errors, gap)


@dataclass(frozen=True, eq=False)
class LinearisedMaster:
    """Newton's equations of a master at one iterate.

    k (G, n) = c K; errors: what the step is to remove; gap: the larger of duality gap and errors, relatively.
    """

    master: RestrictedMaster
    iterate: PrimalDualIterate[MasterInequalities]
    k: Tensor
    errors: Errors
    gap: float

    def factor(self) -> "FactoredMaster":
        """The equations, ready for any right side."""
        master = self.master
        lam, headroom, t, w, slack = self.iterate.values
        floor, ceiling, low, high, mu = self.iterate.duals
        head = torch.diag((floor / lam + ceiling / headroom).index_add(0, master.example, high / w))
        ridges, pulls = master.parts(low / t + high / w), master.parts(high / w)
        blocks: list[Tensor] = []
        for side, ridge, pull in zip(master.sides, ridges, pulls, strict=True):
            rows, own, other = side.rows, side.own, side.other
            reduced = _reduce(side, mu[rows], (mu / slack)[rows], self.k[rows], ridge, pull)
            blocks += reduced.blocks
            head[own[:, None], own] += reduced.own
            head[other[:, None], own] += reduced.between
            head[own[:, None], other] += reduced.between.T
            head[other[:, None], other] += reduced.other
        return FactoredMaster(self, factor_with_ridge(head), tuple(blocks))


class ReducedSystem(NamedTuple):
    """One side's part of the Schur complement, own (own, own), between (other, own) and other; its blocks' factors."""

    own: Tensor
    between: Tensor
    other: Tensor
    blocks: list[Tensor]


def _reduce(side: SideColumns, mu: Tensor, nu: Tensor, k: Tensor, ridge: Tensor, pull: Tensor) -> ReducedSystem:
    """B = μK + ν k kᵀ on the own class, less Eᵀ A⁻¹ E with A = B + ridge on the other class."""
    k_own, k_other = side.patterns * k[:, side.own], k[:, side.other]
    own = (side.patterns.T @ (mu[:, None] * side.patterns)) * side.K_own + k_own.T @ (nu[:, None] * k_own)
    between, other, blocks = torch.zeros_like(side.K_between), torch.zeros_like(side.K_other), []
    for part in _batches(side):
        along = pull[part, :, None]
        steep = (nu[part, None] * k_other[part])[:, :, None]
        A = torch.addcmul(mu[part, None, None] * side.K_other, steep, k_other[part][:, None])
        A.diagonal(dim1=1, dim2=2).add_(ridge[part])
        L = factor_with_ridge(A)
        blocks.append(L)
        active = torch.nonzero(side.patterns[part].any(0))[:, 0]
        E = (mu[part, None] * side.patterns[part][:, active])[:, None] * side.K_between[:, active]
        E.addcmul_(steep, k_own[part][:, None, active])
        half = torch.linalg.solve_triangular(L, E, upper=False)
        across = torch.linalg.solve_triangular(L.mT, half, upper=True)
        half = half.flatten(0, 1)
        own[active[:, None], active] -= half.T @ half
        between.index_add_(1, active, across.mul_(along).sum(0), alpha=-1)
        other -= torch.cholesky_inverse(L).mul_(along).mul_(along.mT).sum(0)
    return ReducedSystem(own, between, other, blocks)


def _batches(side: SideColumns) -> Iterator[slice]:
    """How many columns are factored at once: few where a single one keeps the processor busy."""
    size = max(1, BATCH // max(1, side.K_between.numel()))
    return (slice(g, g + size) for g in range(0, len(side.patterns), size))


@dataclass(frozen=True, eq=False)
class FactoredMaster:
    """The system with Cholesky factors of its Schur complement in λ (`head`) and of each batch of `blocks`."""

    system: LinearisedMaster
    head: Tensor
    blocks: tuple[Tensor, ...]

    def solve(
        self, targets: MasterInequalities, bend: MasterInequalities | None
    ) -> PrimalDualDirection[MasterInequalities]:
        """Steps with x dz + z dx = target, with the columns' norms right to second order along `bend`."""
        master, iterate, k = self.system.master, self.system.iterate, self.system.k
        errors, forces, example = self.system.errors, iterate.forces(targets), master.example
        slack_error = errors.slack
        if bend is not None:
            curve = master.coefficients(bend.lam, bend.t)
            slack_error = slack_error + ((curve @ master.K) * curve).sum(1) / 2
        stiffness = iterate.duals.w / iterate.values.w
        slack_force = forces.slack + iterate.duals.slack / iterate.values.slack * slack_error
        edge = forces.t - forces.w - errors.t + master.on_other(slack_force[:, None] * k)
        dt_alone = self._eliminate(edge)  # while λ stays
        rhs = forces.lam - forces.headroom - errors.lam - (slack_force[:, None] * master.columns.patterns * k).sum(0)
        rhs = rhs.index_add(0, example, forces.w + stiffness * dt_alone)
        alone = self._curvature(master.coefficients(torch.zeros_like(rhs), -dt_alone))
        rhs = rhs + (master.columns.patterns * alone).sum(0)
        dlam = torch.cholesky_solve(rhs[:, None], self.head)[:, 0]
        by_lam = self._curvature(master.coefficients(dlam, torch.zeros_like(edge)))
        dt = dt_alone + self._eliminate(master.on_other(by_lam) + stiffness * dlam[example])
        dslack = -slack_error - (k * master.coefficients(dlam, dt)).sum(1)
        return iterate.direction(forces, MasterInequalities(dlam, -dlam, dt, dlam[example] - dt, dslack))

    def _eliminate(self, rhs: Tensor) -> Tensor:
        """A⁻¹ rhs for every column, flat."""
        master = self.system.master
        parts = zip(master.sides, master.parts(rhs), strict=True)
        batches = [part[batch] for side, part in parts for batch in _batches(side)]
        solved = [torch.cholesky_solve(b[..., None], L).flatten() for b, L in zip(batches, self.blocks, strict=True)]
        return torch.cat(solved) if solved else rhs

    def _curvature(self, dc: Tensor) -> Tensor:
        """B dc, with B = μK + (μ/slack) k kᵀ for every column."""
        k, mu, slack = self.system.k, self.system.iterate.duals.slack, self.system.iterate.values.slack
        return mu[:, None] * (dc @ self.system.master.K) + (mu / slack * (k * dc).sum(1))[:, None] * k


# Restricted masters one after the other, and what the solution of one says about the KKT point.


@dataclass(frozen=True, eq=False)
class SolvedMaster:
    """A restricted master of these examples and its solution, the best iterate.

    programs, steps: how many masters and interior-point steps there were, those of the masters before it included.
    """

    examples: DistinctExamples
    master: RestrictedMaster
    iterate: PrimalDualIterate[MasterInequalities]
    programs: int
    steps: int

    def candidate(self) -> Candidate:
        """Which neurons live, which examples lie on the margin, which are kinks: each value against its multiplier."""
        master, values, duals = self.master, self.iterate.values, self.iterate.duals
        shape = master.columns.patterns.shape
        t = master.spread(values.t, torch.zeros(shape, dtype=values.t.dtype))
        kind = torch.where(duals.t > values.t, Slope.OFF, torch.where(duals.w > values.w, Slope.ON, Slope.KINK))
        slopes = master.spread(kind, torch.full(shape, Slope.KINK))
        margin = values.lam > duals.lam
        candidate = Candidate(self.examples, master.columns, values.lam, duals.slack, t, margin, slopes)
        return candidate.take(torch.nonzero(duals.slack > values.slack)[:, 0])


def solve_master(
    examples: DistinctExamples,
    columns: PatternColumns,
    tolerance: float,
    last: SolvedMaster | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> SolvedMaster:
    """The restricted master of these columns to a gap of `tolerance`, or as far as it was at a `stop`.

    It is `last` itself if that is what is asked for.
    """
    if last is not None and last.master.columns is columns and last.iterate.gap <= tolerance:
        return last
    master = RestrictedMaster(examples.K, examples.y, columns)
    iterate = follow(partial(linearise, master), master.start(), tolerance, stop=stop)
    programs, steps = (last.programs, last.steps) if last is not None else (0, 0)
    return SolvedMaster(examples, master, iterate, programs + 1, steps + iterate.steps)
