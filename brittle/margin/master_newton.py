"""Newton's equations of the restricted master: every t is eliminated by its column's block, λ by a Schur complement."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.margin.cholesky import ridged_cholesky
from brittle.margin.interior_point import Direction, Iterate
from brittle.margin.restricted_master import Inequalities, RestrictedMaster, Side

BATCH = 300_000  # entries of a batch of blocks


class Errors(NamedTuple):
    """By how much the iterate misses the equations: the gradients in lam (n,) and t, the values of slack (G,)."""

    lam: Tensor
    t: Tensor
    slack: Tensor


def linearise(master: RestrictedMaster, iterate: Iterate[Inequalities]) -> "Linearised":
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
    return Linearised(master, iterate, k, errors, gap)


@dataclass(frozen=True, eq=False)
class Linearised:
    """Newton's equations of a master at one iterate.

    k (G, n) = c K; errors: what the step is to remove; gap: the larger of duality gap and errors, relatively.
    """

    master: RestrictedMaster
    iterate: Iterate[Inequalities]
    k: Tensor
    errors: Errors
    gap: float

    def factor(self) -> "Factored":
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
        return Factored(self, ridged_cholesky(head), tuple(blocks))


class Reduced(NamedTuple):
    """One side's part of the Schur complement, own (own, own), between (other, own) and other; its blocks' factors."""

    own: Tensor
    between: Tensor
    other: Tensor
    blocks: list[Tensor]


def _reduce(side: Side, mu: Tensor, nu: Tensor, k: Tensor, ridge: Tensor, pull: Tensor) -> Reduced:
    """B = μK + ν k kᵀ on the own class, less Eᵀ A⁻¹ E with A = B + ridge on the other class."""
    k_own, k_other = side.patterns * k[:, side.own], k[:, side.other]
    own = (side.patterns.T @ (mu[:, None] * side.patterns)) * side.K_own + k_own.T @ (nu[:, None] * k_own)
    between, other, blocks = torch.zeros_like(side.K_between), torch.zeros_like(side.K_other), []
    for part in _batches(side):
        along = pull[part, :, None]
        steep = (nu[part, None] * k_other[part])[:, :, None]
        A = torch.addcmul(mu[part, None, None] * side.K_other, steep, k_other[part][:, None])
        A.diagonal(dim1=1, dim2=2).add_(ridge[part])
        L = ridged_cholesky(A)
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
    return Reduced(own, between, other, blocks)


def _batches(side: Side) -> Iterator[slice]:
    """How many columns are factored at once: few where a single one keeps the processor busy."""
    size = max(1, BATCH // max(1, side.K_between.numel()))
    return (slice(g, g + size) for g in range(0, len(side.patterns), size))


@dataclass(frozen=True, eq=False)
class Factored:
    """The system with Cholesky factors of its Schur complement in λ (`head`) and of each batch of `blocks`."""

    system: Linearised
    head: Tensor
    blocks: tuple[Tensor, ...]

    def solve(self, targets: Inequalities, bend: Inequalities | None) -> Direction[Inequalities]:
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
        return iterate.direction(forces, Inequalities(dlam, -dlam, dt, dlam[example] - dt, dslack))

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
