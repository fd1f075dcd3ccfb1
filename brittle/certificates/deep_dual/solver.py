"""Multipliers for all rivals at once: a first-order flip, then primal-dual steps on a convex quadratic program.

With λ fixed and the Hessian positive definite, the best α, β and μ solve the dual of: minimise ½‖δ‖² + Σλ·h(h - z)
subject to h ≥ 0, h ≥ z, f ≤ 0. Divided by λ everything is near 1 (the Hessian's norm is below 5), so that plain steps
of one size converge in a few dozen rounds, each one pass through the network and back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
import torch
from torch import Tensor

from brittle.certificates.deep_dual.chain import (
    Chain,
    LagrangianPoint,
    LayeredMultipliers,
    Margins,
    gradient,
    hessian,
    inputs,
)
from brittle.certificates.deep_dual.definite import Curvatures, cholesky_floor
from brittle.certificates.rounding import Array, factor

LINEARISATIONS = 4
PRIMAL, DUAL = 0.25, 0.3  # step lengths: 1/PRIMAL - DUAL·‖constraints‖² is at least half the Hessian's norm
LEAST = 1e-300  # against division by zero


def first_order_flips(margins: Margins) -> tuple[LagrangianPoint, Tensor]:
    """The nearest zeros of the margins' linearisations, each at the last one's zero, as points; and their μ (r,)."""
    delta = torch.zeros(len(margins.rows), len(margins.x), dtype=margins.x.dtype)
    for _ in range(LINEARISATIONS):
        values, slopes, _ = _linearised(margins, delta)
        heights = (values - (slopes * delta).sum(1)).clamp(min=0)
        delta = -(heights / slopes.square().sum(1).clamp(min=LEAST))[:, None] * slopes
    _, slopes, hidden = _linearised(margins, delta)
    return LagrangianPoint(delta, hidden), delta.norm(dim=1) / slopes.norm(dim=1).clamp(min=LEAST)


def _linearised(margins: Margins, delta: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """f and its gradient at x + δ, and the hidden layers."""
    maps, h, hidden = margins.chain.maps, margins.x + delta, []
    for each, b in zip(maps, margins.offsets, strict=True):
        h = (each.apply(h) + b).relu()
        hidden.append(h)
    slopes = margins.rows
    for each, h in zip(reversed(maps), reversed(hidden), strict=True):
        slopes = each.transpose(slopes * (h > 0))
    return (margins.rows * hidden[-1]).sum(1) + margins.heights, slopes, tuple(hidden)


def first_multipliers(
    margins: Margins, curvatures: tuple[Tensor, ...], flip: LagrangianPoint, mu: Tensor
) -> LayeredMultipliers:
    """The closed form that makes L stationary at the flip, where that needs no negative multiplier."""
    slopes, signs, lines = mu[:, None] * margins.rows, [], []
    layers = zip(margins.chain.maps, curvatures, inputs(margins, flip), strict=True)
    for each, lam, z in reversed(list(layers)):
        wanted = (slopes + lam * z.abs()).clamp(min=0)
        lines.append(wanted * (z > 0))
        signs.append(wanted * (z <= 0))
        slopes = each.transpose(slopes * (z > 0))
    walls = None if margins.walls is None else torch.zeros_like(flip.delta)
    return LayeredMultipliers(curvatures, tuple(reversed(signs)), tuple(reversed(lines)), mu, walls)


def ascend(
    margins: Margins, multipliers: LayeredMultipliers, point: LagrangianPoint, steps: int
) -> tuple[LayeredMultipliers, LagrangianPoint]:
    """Primal-dual steps (Condat, Vũ): down in the point, up in the multipliers at the point beyond."""
    lam = multipliers.curvatures
    pace = DUAL / (margins.rows.square() / lam[-1]).sum(1).clamp(min=LEAST)
    z = inputs(margins, point)
    for _ in range(steps):
        after = point.moved(-PRIMAL, gradient(margins, multipliers, point, z).over(lam))
        z_after = inputs(margins, after)
        beyond = LagrangianPoint(2 * after.delta - point.delta, _beyond(after.hidden, point.hidden))
        multipliers = _climbed(margins, multipliers, beyond, _beyond(z_after, z), pace)
        point, z = after, z_after
    return multipliers, point


def _beyond(after: tuple[Tensor, ...], before: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(2 * new - old for new, old in zip(after, before, strict=True))


def _climbed(
    margins: Margins, now: LayeredMultipliers, point: LagrangianPoint, z: tuple[Tensor, ...], pace: Tensor
) -> LayeredMultipliers:
    lam, h = now.curvatures, point.hidden
    signs = [(a - DUAL * lam_k * h_k).clamp(min=0) for a, lam_k, h_k in zip(now.signs, lam, h, strict=True)]
    lines = [
        (b - DUAL * lam_k * (h_k - z_k)).clamp(min=0) for b, lam_k, h_k, z_k in zip(now.lines, lam, h, z, strict=True)
    ]
    value = (margins.rows * h[-1]).sum(1) + margins.heights
    walls = now.walls
    if walls is not None and margins.walls is not None:
        walls = walls + DUAL * (margins.x + point.delta)
        walls = walls - DUAL * (walls / DUAL).clamp(*margins.walls)
    return LayeredMultipliers(lam, tuple(signs), tuple(lines), (now.margin + pace * value).clamp(min=0), walls)


def minimiser(
    margins: Margins, multipliers: LayeredMultipliers, point: LagrangianPoint, steps: int, tolerance: float
) -> LagrangianPoint:
    """Where L is smallest, by conjugate gradients from a point; the judge needs no more than nearly."""
    lam = multipliers.curvatures
    residual = gradient(margins, multipliers, point, inputs(margins, point))
    scaled = residual.over(lam)
    direction, size = scaled, residual.dot(scaled)
    enough = tolerance**2 * point.delta.square().sum(1)
    for _ in range(steps):
        if bool((size <= enough).all()):
            break
        product = hessian(margins.chain, lam, direction)
        step = size / direction.dot(product).clamp(min=LEAST)
        point, residual = point.moved(-step, direction), residual.moved(-step, product)
        scaled = residual.over(lam)
        before, size = size, residual.dot(scaled)
        direction = scaled.moved(size / before.clamp(min=LEAST), direction)
    return point


# Curvatures for every neuron and one rival: all multipliers at once, by a quasi-Newton method on the concave dual.
#
# δ is eliminated, so that the Hessian P has one row per neuron: 2Λ_1 - Λ_1GΛ_1 with G = W_1W_1ᵀ in its first block,
# 2Λ_k in the others, -Λ_kW_k beside them. A barrier ν log det of the scaled P keeps it definite.


LEVELS = (1e-1, 1e-2, 1e-3)  # of the barrier, in shares of the bound
OPTIONS = {"maxiter": 60, "maxfun": 90, "maxcor": 20}  # on each
WANTED = (1e-2, 1e-3, 1e-4, 1e-6)  # floors under the Hessian, tried in turn
FAR = 1e10  # the loss where P is not definite


@dataclass(frozen=True, eq=False)
class DenseLayers:
    """The hidden layers of a small network as matrices."""

    weights: tuple[Array, ...]

    @classmethod
    def of(cls, chain: Chain) -> "DenseLayers":
        return cls(tuple(each.matrix.numpy() for each in chain.maps))

    @cached_property
    def gram(self) -> Array:
        return np.asarray(self.weights[0] @ self.weights[0].T)

    @cached_property
    def ends(self) -> Array:
        return np.cumsum([0, *(len(W) for W in self.weights)])

    def split(self, vector: Array) -> list[Array]:
        return [vector[start:end] for start, end in zip(self.ends[:-1], self.ends[1:], strict=True)]

    def inputs_by_outputs(self, first: Array) -> Array:
        """Z with z = Zh + ... once δ is eliminated; `first` is λ_1."""
        Z = np.zeros((self.ends[-1], self.ends[-1]))
        Z[: self.ends[1], : self.ends[1]] = self.gram * first
        for layer in range(1, len(self.weights)):
            rows, columns = slice(*self.ends[layer : layer + 2]), slice(*self.ends[layer - 1 : layer + 1])
            Z[rows, columns] = self.weights[layer]
        return Z


@dataclass(frozen=True, eq=False)
class Stationary:
    """The least point of L over (δ, h) at given multipliers, with the value and what the barrier needs."""

    value: float
    h: Array
    z: Array
    margin: float
    barrier: float
    pull: Array  # the derivative of the barrier by log λ


@dataclass(frozen=True, eq=False)
class RivalProblem:
    """One rival of the margins, in matrices; walls (dim,) are multipliers of a box that stay as they are."""

    layers: DenseLayers
    margins: Margins
    walls: Array

    @cached_property
    def offsets(self) -> Array:
        first = self.layers.weights[0] @ (self.margins.x.numpy() - self.walls) + self.margins.offsets[0].numpy()
        return np.concatenate([first, *(b.numpy() for b in self.margins.offsets[1:])])

    @cached_property
    def row(self) -> Array:
        """The margin's weights, 0 for all layers but the last."""
        row = np.zeros(self.layers.ends[-1])
        row[self.layers.ends[-2] :] = self.margins.rows[0].numpy()
        return row

    def stationary(self, lam: Array, alpha: Array, beta: Array, mu: float) -> Stationary | None:
        """None where the Hessian is not positive definite."""
        count = self.layers.ends[1]
        Z = self.layers.inputs_by_outputs(lam[:count])
        P = -lam[:, None] * Z
        P[:count, :count] /= 2  # it is symmetric, and is added to its transpose
        P = P + P.T
        P.flat[:: len(P) + 1] += 2 * lam
        L = factor(P)
        if L is None:
            return None
        still = self.offsets.copy()  # z at h = 0
        still[:count] -= self.layers.gram @ beta[:count]
        q = mu * self.row - alpha - beta - lam * still
        for layer in range(1, len(self.layers.weights)):
            rows, columns = slice(*self.layers.ends[layer : layer + 2]), slice(*self.layers.ends[layer - 1 : layer + 1])
            q[columns] += beta[rows] @ self.layers.weights[layer]
        h = -L.solve(q)
        constant = mu * float(self.margins.heights[0]) + beta @ self.offsets
        constant -= 0.5 * beta[:count] @ self.layers.gram @ beta[:count] + 0.5 * self.walls @ self.walls
        inverse = L.solve(np.eye(len(P)))
        barrier = 2 * np.log(L.L.diagonal()).sum() - np.log(lam).sum()
        pull = 2 * lam * (inverse.diagonal() - (Z * inverse).sum(1)) - 1
        value = float(constant + 0.5 * q @ h)
        return Stationary(
            value, h, still + Z @ h, float(self.row @ h) + float(self.margins.heights[0]), float(barrier), pull
        )


def refine_multipliers(
    layers: DenseLayers, margins: Margins, start: LayeredMultipliers
) -> tuple[LayeredMultipliers, LagrangianPoint, Curvatures]:
    """Better multipliers for one rival, with a point and what is proved of their curvatures."""
    walls = np.zeros(len(margins.x)) if start.walls is None else start.walls[0].numpy()
    problem = RivalProblem(layers, margins, walls)
    count = int(layers.ends[-1])
    lam = np.concatenate([lam.expand(len(W)).numpy() for lam, W in zip(start.curvatures, layers.weights, strict=True)])
    alpha, beta = (np.concatenate([each[0].numpy() for each in part]) for part in (start.signs, start.lines))
    variables = np.concatenate([np.log(lam), alpha, beta, start.margin.numpy()])
    first = problem.stationary(lam, alpha, beta, float(start.margin))
    scale = max(first.value, 1e-12) if first is not None else 1.0
    bounds = [(None, None)] * count + [(0, None)] * (2 * count + 1)

    def loss(variables: Array, level: float) -> tuple[float, Array]:
        lam, alpha, beta, mu = _unpacked(variables, count)
        at = problem.stationary(lam, alpha, beta, mu)
        if at is None or not np.isfinite(at.value):
            return FAR, np.zeros_like(variables)
        slope = np.concatenate([lam * at.h * (at.h - at.z), -at.h, at.z - at.h, [at.margin]]) / scale
        slope[:count] += level / count * at.pull
        return -at.value / scale - level / count * at.barrier, -slope

    for level in LEVELS:
        found = scipy.optimize.minimize(loss, variables, (level,), "L-BFGS-B", True, bounds=bounds, options=OPTIONS)
        variables = found.x if found.fun < FAR else variables
    return _judgeable(problem, start, variables)


def _unpacked(variables: Array, count: int) -> tuple[Array, Array, Array, float]:
    lam, alpha, beta = (
        np.exp(np.clip(variables[:count], -300, 300)),
        variables[count : 2 * count],
        variables[2 * count : -1],
    )
    return lam, alpha, beta, float(variables[-1])


def _judgeable(
    problem: RivalProblem, start: LayeredMultipliers, variables: Array
) -> tuple[LayeredMultipliers, LagrangianPoint, Curvatures]:
    """The multipliers as tensors, the point where L is least, and a floor under its Hessian."""
    layers = problem.layers
    lam, alpha, beta, mu = _unpacked(variables, int(layers.ends[-1]))
    at = problem.stationary(lam, alpha, beta, mu)
    h = np.zeros_like(lam) if at is None else at.h
    delta = (lam * h - beta)[: layers.ends[1]] @ layers.weights[0] - problem.walls
    parts = layers.split(lam)
    floors = (cholesky_floor(layers.weights, parts, wanted) for wanted in WANTED)
    curvatures = Curvatures(tuple(map(torch.from_numpy, parts)), next(filter(None, floors), 0.0))
    multipliers = LayeredMultipliers(
        curvatures.values,
        _rows(layers.split(alpha)),
        _rows(layers.split(beta)),
        torch.tensor([mu], dtype=torch.float64),
        start.walls,
    )
    return multipliers, LagrangianPoint(torch.from_numpy(delta)[None], _rows(layers.split(h))), curvatures


def _rows(parts: Sequence[Array]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(np.ascontiguousarray(part))[None] for part in parts)
