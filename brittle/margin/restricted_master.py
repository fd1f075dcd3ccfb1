"""The convex program of one round, solved in its dual by an interior point.

max Σ λ_i  subject to  ½(c_gᵀ K c_g - 1) ≤ 0 for every column g,  0 ≤ t_g ≤ λ,  0 ≤ λ ≤ M,
where c_g is λ on the column's own active examples and -t_g on the other class. The multipliers μ_g of the columns are
the norms ‖u_g‖ of the neurons u_g = μ_g Σ_i c_gi x̃_i, and those of 0 ≤ t, t ≤ λ are φ(-z), φ(z) on the other class.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from brittle.margin.arrow import cholesky
from brittle.margin.columns import Columns
from brittle.margin.interior_point import Iterate, Vectors, follow

BATCH = 300_000  # entries of a batch of blocks
LARGEST = 1e7  # M, in units where the mean of K_ii is 1: a multiplier there means that no columns classify the example


@dataclass(frozen=True, eq=False)
class Side:
    """The columns of one sign: their examples, Gram blocks and own-class patterns (G, own)."""

    own: Tensor
    other: Tensor
    patterns: Tensor
    Koo: Tensor
    Kow: Tensor
    Kww: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.patterns), len(self.other)

    @property
    def batch(self) -> int:
        """How many columns are factored at once: few where a single one keeps the processor busy."""
        return max(1, BATCH // max(1, self.Kow.numel()))


class RestrictedMaster:
    """K (n, n), y (n,), columns; t, w = λ - t and their multipliers are flat, one entry per column and other example.

    Values are (λ, M - λ, t, w, slack of the column), duals their multipliers, the last of them μ.
    """

    def __init__(self, K: Tensor, y: Tensor, columns: Columns) -> None:
        self.K, self.y, self.columns = K, y, columns
        self.sides = [self._side(sign) for sign in (1.0, -1.0)]
        self.example = torch.cat([side.other.repeat(len(side.patterns)) for side in self.sides])

    def _side(self, sign: float) -> Side:
        own, other = (torch.nonzero(self.y == s)[:, 0] for s in (sign, -sign))
        patterns = self.columns.patterns[self.columns.signs == sign][:, own]
        rows = self.K[other]
        return Side(own, other, patterns, rows[:, other], rows[:, own], self.K[own][:, own])

    def parts(self, flat: Tensor) -> list[Tensor]:
        """A vector over (column, other example) as one matrix per sign."""
        sizes = [side.shape[0] * side.shape[1] for side in self.sides]
        return [part.view(side.shape) for part, side in zip(flat.split(sizes), self.sides, strict=True)]

    def coefficients(self, lam: Tensor, t: Tensor) -> Tensor:
        """c (G, n); linear in (λ, t)."""
        c = self.columns.patterns * lam
        start = 0
        for side, part in zip(self.sides, self.parts(t), strict=True):
            c[start : start + len(part), side.other] = -part
            start += len(part)
        return c

    def on_other(self, full: Tensor) -> Tensor:
        """Entries of a (G, n) matrix at (column, other example), flat."""
        rows = full.split([len(side.patterns) for side in self.sides])
        return torch.cat([part[:, side.other].flatten() for part, side in zip(rows, self.sides, strict=True)])

    def linearise(self, values: Vectors, duals: Vectors) -> "Linearised":
        return Linearised(self, values, duals)

    def start(self) -> Iterate:
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
        duals = ((q - 1).relu() + 1, torch.full_like(lam, 1e-3 / LARGEST), low, high, norms)
        return Iterate((lam, LARGEST - lam, t, t.clone(), slack), duals)

    def solve(self, tolerance: float) -> Iterate:
        return follow(self, self.start(), tolerance)


@dataclass(eq=False)
class Linearised:
    """Newton's equations at one iterate; k = K c, and every t is eliminated by a factorisation of its own block."""

    master: RestrictedMaster
    values: Vectors
    duals: Vectors
    c: Tensor = field(init=False)
    k: Tensor = field(init=False)
    lack: tuple[Tensor, Tensor, Tensor] = field(init=False)
    gap: float = field(init=False)
    head: Tensor = field(init=False)
    blocks: list[Tensor] = field(init=False)

    def __post_init__(self) -> None:
        master, (lam, _, t, _, slack), (floor, ceiling, low, high, mu) = self.master, self.values, self.duals
        self.c = master.coefficients(lam, t)
        self.k = self.c @ master.K
        top = (mu[:, None] * master.columns.patterns * self.k).sum(0) - 1 - floor + ceiling
        top.index_add_(0, master.example, high, alpha=-1)
        middle = high - low - master.on_other(mu[:, None] * self.k)
        bottom = ((self.c * self.k).sum(1) - 1) / 2 + slack
        self.lack = top, middle, bottom
        product = sum(float(x @ z) for x, z in zip(self.values, self.duals, strict=True))
        errors = [float(e.abs().max()) for e in self.lack if len(e)]
        self.gap = max(product / float(lam.sum()), max(errors) / 10)

    def factor(self) -> None:
        master = self.master
        lam, room, t, w, slack = self.values
        floor, ceiling, low, high, mu = self.duals
        head = torch.diag((floor / lam + ceiling / room).index_add(0, master.example, high / w))
        self.blocks, start = [], 0
        ridges, pulls = master.parts(low / t + high / w), master.parts(high / w)
        for side, ridge, pull in zip(master.sides, ridges, pulls, strict=True):
            rows = slice(start, start + len(ridge))
            self._reduce(head, side, mu[rows], mu[rows] / slack[rows], self.k[rows], ridge, pull)
            start += len(ridge)
        self.head = cholesky(head)

    def _reduce(self, head: Tensor, side: Side, mu: Tensor, nu: Tensor, k: Tensor, ridge: Tensor, pull: Tensor) -> None:
        """Adds one sign's columns to the Schur complement in λ: B = μK + ν k kᵀ on the own class, less Eᵀ A⁻¹ E."""
        own = side.patterns * k[:, side.own]
        within = (side.patterns.T @ (mu[:, None] * side.patterns)) * side.Kww + own.T @ (nu[:, None] * own)
        between = torch.zeros_like(side.Kow)
        beyond = torch.zeros_like(side.Koo)
        for part in (slice(g, g + side.batch) for g in range(0, len(mu), side.batch)):
            ko, ki, along = k[part][:, side.other], own[part], pull[part, :, None]
            A = torch.addcmul(mu[part, None, None] * side.Koo, (nu[part, None] * ko)[:, :, None], ko[:, None])
            A.diagonal(dim1=1, dim2=2).add_(ridge[part])
            L = cholesky(A)
            self.blocks.append(L)
            active = torch.nonzero(side.patterns[part].any(0))[:, 0]
            E = (mu[part, None] * side.patterns[part][:, active])[:, None] * side.Kow[:, active]
            E.addcmul_((nu[part, None] * ko)[:, :, None], ki[:, None, active])
            half = torch.linalg.solve_triangular(L, E, upper=False)
            across = torch.linalg.solve_triangular(L.mT, half, upper=True)
            half = half.flatten(0, 1)
            within[active[:, None], active] -= half.T @ half
            between.index_add_(1, active, across.mul_(along).sum(0), alpha=-1)
            beyond -= torch.cholesky_inverse(L).mul_(along).mul_(along.mT).sum(0)
        head[side.own[:, None], side.own] += within
        head[side.other[:, None], side.own] += between
        head[side.own[:, None], side.other] += between.T
        head[side.other[:, None], side.other] += beyond

    def _eliminate(self, right: Tensor) -> Tensor:
        """A⁻¹ right for every column, flat."""
        sizes = [side.batch for side in self.master.sides]
        parts = zip(self.master.parts(right), sizes, strict=True)
        rows = [row for part, size in parts if len(part) for row in part.split(size)]
        solved = [torch.cholesky_solve(row[..., None], L).flatten() for row, L in zip(rows, self.blocks, strict=True)]
        return torch.cat(solved) if solved else right

    def solve(self, targets: Vectors, bend: Vectors | None) -> tuple[Vectors, Vectors]:
        master, example = self.master, self.master.example
        lam, _, t, w, slack = self.values
        *_, high, mu = self.duals
        top, middle, bottom = self.lack
        if bend is not None:
            curve = master.coefficients(bend[0], bend[2])
            bottom = bottom + ((curve @ master.K) * curve).sum(1) / 2
        pull = [target / x for target, x in zip(targets, self.values, strict=True)]
        norm_pull = pull[4] + mu / slack * bottom
        edge = pull[2] - pull[3] - middle + master.on_other(norm_pull[:, None] * self.k)
        held = self._eliminate(edge)
        right = pull[0] - pull[1] - top - (norm_pull[:, None] * master.columns.patterns * self.k).sum(0)
        right = right.index_add(0, example, pull[3] + high / w * held)
        right = right + self._couple(master.coefficients(torch.zeros_like(lam), -held))
        dlam = torch.cholesky_solve(right[:, None], self.head)[:, 0]
        own = self._curvature(master.coefficients(dlam, torch.zeros_like(t)))
        dt = held + self._eliminate(master.on_other(own) + (high / w) * dlam[example])
        dc = master.coefficients(dlam, dt)
        steps = dlam, -dlam, dt, dlam[example] - dt, -bottom - (self.k * dc).sum(1)
        turns = [p - z / x * dx for p, x, z, dx in zip(pull, self.values, self.duals, steps, strict=True)]
        return steps, turns

    def _curvature(self, dc: Tensor) -> Tensor:
        """B dc, with B = μK + (μ/slack) k kᵀ for every column."""
        mu, slack = self.duals[4], self.values[4]
        return mu[:, None] * (dc @ self.master.K) + (mu / slack * (self.k * dc).sum(1))[:, None] * self.k

    def _couple(self, dc: Tensor) -> Tensor:
        """Σ_g P_g B dc on the examples."""
        return (self.master.columns.patterns * self._curvature(dc)).sum(0)
