"""The judge: what multipliers prove, with every rounding error paid for. No solver's word is taken here.

For any point x̃ the minimum of L is at least L(x̃) - ½g·H⁻¹g with the gradient g = ∇L(x̃), and g·H⁻¹g ≤ ‖g‖²/σ in a
scaling in which H ⪰ σI is proved. L and g are evaluated with a bound on the rounding of every sum: γ times the sum of
the absolute values of its terms, and a little for what falls below the floats.
"""

import math

import torch
from torch import Tensor

from brittle.certificates.deep_dual.chain import LagrangianPoint, LayeredMultipliers, Margins
from brittle.certificates.deep_dual.definite import Curvatures
from brittle.certificates.dual_bound import TINY
from brittle.certificates.rounding import ROUNDOFF, SQUARES, UNDERFLOW, gamma

MORE = 16  # roundings in a term, beside those of the sums


def proven_radii(
    margins: Margins, multipliers: LayeredMultipliers, point: LagrangianPoint, proved: Curvatures
) -> Tensor:
    """Radii (r,) below which no flip lies, in lengths of the margins; 0 where nothing is proved.

    `proved` must be the multipliers' own curvatures, with H ⪰ σ·diag(I, λ_1, ..., λ_K) for a σ > 0; the point is any.
    """
    values = proven_values(margins, multipliers, point, proved)
    return torch.where(values > TINY, (2 * values).clamp(min=0).sqrt() * (1 - 8 * ROUNDOFF), 0.0)


def proven_values(
    margins: Margins, multipliers: LayeredMultipliers, point: LagrangianPoint, proved: Curvatures
) -> Tensor:
    """Floors (r,) under min L in real arithmetic, -inf where the multipliers are not feasible."""
    floor = proved.floor if multipliers.curvatures is proved.values else 0.0
    z, off = _inputs(margins, point)
    value, slip = _value(margins, multipliers, point, z, off)
    if margins.walls is not None and multipliers.walls is not None:
        at_walls, slip_at_walls = _walls(margins, multipliers.walls, margins.walls, point)
        value, slip = value + at_walls, slip + slip_at_walls + gamma(1) * (value.abs() + at_walls.abs())
    squares = _squared_gradient(margins, multipliers, point, z, off)
    loss = (slip + squares / (2 * floor)) * (1 + gamma(8)) if floor > 0 else torch.full_like(value, torch.inf)
    floors = value - loss - gamma(2) * (value.abs() + loss)
    return torch.where(_feasible(margins, multipliers) & floors.isfinite(), floors, -torch.inf)


def proven_quotients(margins: Margins) -> Tensor:
    """Radii (r,) by the product of the norms: a margin over its Lipschitz constant; infinite where no flip can be."""
    h, off = margins.x[None], torch.full_like(margins.x, UNDERFLOW)[None]
    for place, (each, b) in enumerate(zip(margins.chain.maps, margins.offsets, strict=True)):
        sizes, size = margins.chain.sizes[place], h.abs() + off
        z, terms = each.apply(h) + b, sizes.apply(size) + b.abs()
        off = sizes.apply(off) * (1 + gamma(each.inputs + 4)) + gamma(each.inputs + MORE) * terms + _lost(size)
        h = z.relu()
    size = (margins.rows.abs() * (h + off)).sum(1) + margins.heights.abs()
    slip = (margins.rows.abs() * off).sum(1) * (1 + gamma(h.shape[1] + 4)) + gamma(h.shape[1] + MORE) * size
    floors = (margins.rows * h).sum(1) + margins.heights - slip * (1 + gamma(4)) - UNDERFLOW * (1 + h.sum())
    slopes = (margins.rows.norm(dim=1) + SQUARES) * math.prod(margins.chain.norms)
    slopes = slopes * (1 + gamma(h.shape[1] + len(margins.chain.norms) + 4 * MORE))
    still = ~margins.rows.any(1) | (math.prod(margins.chain.norms) == 0)
    never = ~margins.rows.signbit().any(1) & (margins.heights > TINY)  # h ≥ 0: the margin is no less than its height
    radii = torch.where(still | never, torch.inf, floors / slopes * (1 - 8 * ROUNDOFF))
    return torch.where(((floors > TINY) & ~radii.isnan()) | never, radii, 0.0)


def _feasible(margins: Margins, multipliers: LayeredMultipliers) -> Tensor:
    """(r,): NaN is not, and neither is anything negative; without a box its multipliers must not be there."""
    least = torch.stack([each.amin(1) for each in (*multipliers.signs, *multipliers.lines)])
    curved = all(bool((lam > 0).all()) for lam in multipliers.curvatures)
    walls = multipliers.walls is None or margins.walls is not None
    return (least >= 0).all(0) & (multipliers.margin >= 0) & curved & walls


def _inputs(margins: Margins, point: LagrangianPoint) -> tuple[list[Tensor], list[Tensor]]:
    """z_k at the point, and how far they may be off."""
    z, off = [], []
    layers = (margins.x + point.delta, *point.hidden[:-1])
    sizes = (margins.x.abs() + point.delta.abs(), *(h.abs() for h in point.hidden[:-1]))
    for place, (h, size) in enumerate(zip(layers, sizes, strict=True)):
        each, b = margins.chain.maps[place], margins.offsets[place]
        z.append(each.apply(h) + b)
        terms = margins.chain.sizes[place].apply(size) + b.abs()
        off.append(gamma(each.inputs + MORE) * terms + _lost(size))
    return z, off


def _value(
    margins: Margins, multipliers: LayeredMultipliers, point: LagrangianPoint, z: list[Tensor], off: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """L at the point without walls, and how far it may be off."""
    mu, last, square = multipliers.margin, point.hidden[-1], 0.5 * point.delta.square().sum(1)
    value = square + mu * ((margins.rows * last).sum(1) + margins.heights)
    size = square + mu * ((margins.rows * last).abs().sum(1) + margins.heights.abs())
    slip = UNDERFLOW * (1 + mu) * (1 + point.delta.abs().sum(1) + last.abs().sum(1))
    layers = zip(multipliers.curvatures, multipliers.signs, multipliers.lines, point.hidden, z, off, strict=True)
    for lam, alpha, beta, h, z_k, off_k in layers:
        value = value - (alpha * h).sum(1) + ((lam * h - beta) * (h - z_k)).sum(1)
        weight = lam * h.abs() + beta
        size = size + (alpha * h.abs()).sum(1) + (weight * (h.abs() + z_k.abs())).sum(1)
        slip = slip + (weight * off_k).sum(1) + UNDERFLOW * (1 + (alpha + h.abs() + weight + z_k.abs()).sum(1))
    terms = max(point.delta.shape[1], *margins.chain.widths) + 4 * len(z)
    return value, slip * (1 + gamma(terms)) + gamma(terms + MORE) * size


def _walls(margins: Margins, walls: Tensor, box: tuple[float, float], point: LagrangianPoint) -> tuple[Tensor, Tensor]:
    """What the box adds to L, and how far it may be off."""
    low, high = box
    x = margins.x + point.delta
    value = (walls * x - walls.clamp(min=0) * high + (-walls).clamp(min=0) * low).sum(1)
    size = (walls.abs() * (margins.x.abs() + point.delta.abs() + max(abs(low), abs(high)))).sum(1)
    return value, gamma(x.shape[1] + MORE) * size + UNDERFLOW * (1 + walls.abs().sum(1))


def _squared_gradient(
    margins: Margins, multipliers: LayeredMultipliers, point: LagrangianPoint, z: list[Tensor], off: list[Tensor]
) -> Tensor:
    """A ceiling over ‖∂L/∂δ‖² + Σ_k ∂L/∂h_k·Λ_k⁻¹ ∂L/∂h_k."""
    ceiling = _first_gradient(margins, multipliers, point)
    total, most = (ceiling + SQUARES).square().sum(1), ceiling.shape[1]
    for place, lam in enumerate(multipliers.curvatures):
        h, alpha, beta = point.hidden[place], multipliers.signs[place], multipliers.lines[place]
        if place + 1 < len(z):
            back, slip = _pulled(margins, multipliers, point, place + 1)
        else:
            back = multipliers.margin[:, None] * margins.rows
            slip = gamma(MORE) * back.abs() + UNDERFLOW * (1 + multipliers.margin[:, None])
        size = lam * (2 * h.abs() + z[place].abs()) + alpha + beta + back.abs()
        value = lam * (2 * h - z[place]) - alpha - beta + back
        ceiling = value.abs() + slip + lam * off[place] * (1 + gamma(4)) + gamma(MORE) * size + UNDERFLOW
        total = total + ((ceiling + SQUARES).square() / lam).sum(1)
        most = max(most, ceiling.shape[1])
    return total * (1 + gamma(most + len(z) + MORE))


def _first_gradient(margins: Margins, multipliers: LayeredMultipliers, point: LagrangianPoint) -> Tensor:
    """A ceiling over |∂L/∂δ|."""
    back, slip = _pulled(margins, multipliers, point, 0)
    value, size = point.delta + back, point.delta.abs() + back.abs()
    if multipliers.walls is not None:
        value, size = value + multipliers.walls, size + multipliers.walls.abs()
    return value.abs() + slip + gamma(MORE) * size


def _pulled(
    margins: Margins, multipliers: LayeredMultipliers, point: LagrangianPoint, place: int
) -> tuple[Tensor, Tensor]:
    """W_kᵀ(β_k - λ_k h_k), and how far it may be off."""
    lam, beta, h = multipliers.curvatures[place], multipliers.lines[place], point.hidden[place]
    weight, each = lam * h.abs() + beta, margins.chain.maps[place]
    slip = gamma(each.outputs + MORE) * margins.chain.sizes[place].transpose(weight) + _lost(weight)
    return each.transpose(beta - lam * h), slip


def _lost(size: Tensor) -> Tensor:
    """What a product of a layer with a vector can lose below the floats, for every row."""
    return UNDERFLOW * (1 + size.sum(1, keepdim=True))
