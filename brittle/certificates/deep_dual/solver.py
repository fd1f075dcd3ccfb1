"""Multipliers for all rivals at once: a first-order flip, then primal-dual steps on a convex quadratic program.

With λ fixed and the Hessian positive definite, the best α, β and μ solve the dual of: minimise ½‖δ‖² + Σλ·h(h - z)
subject to h ≥ 0, h ≥ z, f ≤ 0. Divided by λ everything is near 1 (the Hessian's norm is below 5), so that plain steps
of one size converge in a few dozen rounds, each one pass through the network and back.
"""

import torch
from torch import Tensor

from brittle.certificates.deep_dual.chain import Margins
from brittle.certificates.deep_dual.lagrangian import Multipliers, Point, gradient, hessian, inputs

LINEARISATIONS = 4
PRIMAL, DUAL = 0.25, 0.3  # step lengths: 1/PRIMAL - DUAL·‖constraints‖² is at least half the Hessian's norm
LEAST = 1e-300  # against division by zero


def first_order_flips(margins: Margins) -> tuple[Point, Tensor]:
    """The nearest zeros of the margins' linearisations, each at the last one's zero, as points; and their μ (r,)."""
    delta = torch.zeros(len(margins.rows), len(margins.x), dtype=margins.x.dtype)
    for _ in range(LINEARISATIONS):
        values, slopes, _ = _linearised(margins, delta)
        heights = (values - (slopes * delta).sum(1)).clamp(min=0)
        delta = -(heights / slopes.square().sum(1).clamp(min=LEAST))[:, None] * slopes
    _, slopes, hidden = _linearised(margins, delta)
    return Point(delta, hidden), delta.norm(dim=1) / slopes.norm(dim=1).clamp(min=LEAST)


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


def first_multipliers(margins: Margins, curvatures: tuple[Tensor, ...], flip: Point, mu: Tensor) -> Multipliers:
    """The closed form that makes L stationary at the flip, where that needs no negative multiplier."""
    slopes, signs, lines = mu[:, None] * margins.rows, [], []
    layers = zip(margins.chain.maps, curvatures, inputs(margins, flip), strict=True)
    for each, lam, z in reversed(list(layers)):
        wanted = (slopes + lam * z.abs()).clamp(min=0)
        lines.append(wanted * (z > 0))
        signs.append(wanted * (z <= 0))
        slopes = each.transpose(slopes * (z > 0))
    walls = None if margins.walls is None else torch.zeros_like(flip.delta)
    return Multipliers(curvatures, tuple(reversed(signs)), tuple(reversed(lines)), mu, walls)


def ascend(margins: Margins, multipliers: Multipliers, point: Point, steps: int) -> tuple[Multipliers, Point]:
    """Primal-dual steps (Condat, Vũ): down in the point, up in the multipliers at the point beyond."""
    lam = multipliers.curvatures
    pace = DUAL / (margins.rows.square() / lam[-1]).sum(1).clamp(min=LEAST)
    z = inputs(margins, point)
    for _ in range(steps):
        after = point.moved(-PRIMAL, gradient(margins, multipliers, point, z).over(lam))
        z_after = inputs(margins, after)
        beyond = Point(2 * after.delta - point.delta, _beyond(after.hidden, point.hidden))
        multipliers = _climbed(margins, multipliers, beyond, _beyond(z_after, z), pace)
        point, z = after, z_after
    return multipliers, point


def _beyond(after: tuple[Tensor, ...], before: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(2 * new - old for new, old in zip(after, before, strict=True))


def _climbed(margins: Margins, now: Multipliers, point: Point, z: tuple[Tensor, ...], pace: Tensor) -> Multipliers:
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
    return Multipliers(lam, tuple(signs), tuple(lines), (now.margin + pace * value).clamp(min=0), walls)


def minimiser(margins: Margins, multipliers: Multipliers, point: Point, steps: int, tolerance: float) -> Point:
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
