"""The Lagrangian of the nearest flip, whose minimum over all points bounds ½‖δ‖² of every flip from below.

    L = ½‖δ‖² + μf - Σ_k [α_k·h_k + β_k·(h_k - z_k)] + Σ_k λ_k·h_k(h_k - z_k),   z_k = W_k h_{k-1} + b_k

On the network h ≥ 0, h ≥ z and h(h - z) = 0, and at a flip f ≤ 0: there L ≤ ½‖δ‖² if α, β, μ ≥ 0. A box on x + δ adds
p·(x + δ) - p₊·high + p₋·low ≤ 0 for any p. As a function of free (δ, h_1, ..., h_K) L is quadratic.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.certificates.deep_dual.chain import Chain, Margins


@dataclass(frozen=True, eq=False)
class Multipliers:
    """One row per rival: λ_k (), or (width_k,); α_k and β_k (r, width_k); μ (r,); p (r, dim), for a box."""

    curvatures: tuple[Tensor, ...]
    signs: tuple[Tensor, ...]
    lines: tuple[Tensor, ...]
    margin: Tensor
    walls: Tensor | None = None

    def of(self, rivals: Tensor) -> "Multipliers":
        """Those of some rivals."""
        signs, lines = (tuple(each[rivals] for each in part) for part in (self.signs, self.lines))
        walls = None if self.walls is None else self.walls[rivals]
        return Multipliers(self.curvatures, signs, lines, self.margin[rivals], walls)


@dataclass(frozen=True, eq=False)
class Point:
    """δ (r, dim) and h_k (r, width_k), free of each other."""

    delta: Tensor
    hidden: tuple[Tensor, ...]

    def moved(self, step: float | Tensor, direction: "Point") -> "Point":
        """point + step·direction, with a step for every row or for all."""
        step = step[:, None] if isinstance(step, Tensor) else step
        pairs = zip(self.hidden, direction.hidden, strict=True)
        return Point(self.delta + step * direction.delta, tuple(h + step * d for h, d in pairs))

    def dot(self, other: "Point") -> Tensor:
        total = (self.delta * other.delta).sum(1)
        return total + torch.stack([(h * d).sum(1) for h, d in zip(self.hidden, other.hidden, strict=True)]).sum(0)

    def over(self, curvatures: tuple[Tensor, ...]) -> "Point":
        """Divided by λ, with 1 for δ: the scaling in which the Hessian is near I."""
        return Point(self.delta, tuple(h / lam for h, lam in zip(self.hidden, curvatures, strict=True)))


def inputs(margins: Margins, point: Point) -> tuple[Tensor, ...]:
    """z_k of every layer."""
    layers = (margins.x + point.delta, *point.hidden[:-1])
    maps = zip(margins.chain.maps, layers, margins.offsets, strict=True)
    return tuple(each.apply(h) + b for each, h, b in maps)


def gradient(margins: Margins, multipliers: Multipliers, point: Point, z: tuple[Tensor, ...]) -> Point:
    """∂L/∂(δ, h): it vanishes where L is smallest."""
    maps, lam = margins.chain.maps, multipliers.curvatures
    back = [
        each.transpose(beta - lam_k * h)
        for each, beta, lam_k, h in zip(maps, multipliers.lines, lam, point.hidden, strict=True)
    ]
    later = (*back[1:], multipliers.margin[:, None] * margins.rows)
    hidden = tuple(
        lam_k * (2 * h - z_k) - alpha - beta + up
        for lam_k, h, z_k, alpha, beta, up in zip(
            lam, point.hidden, z, multipliers.signs, multipliers.lines, later, strict=True
        )
    )
    delta = point.delta + back[0]
    return Point(delta if multipliers.walls is None else delta + multipliers.walls, hidden)


def hessian(chain: Chain, curvatures: tuple[Tensor, ...], point: Point) -> Point:
    """The Hessian of L times a point."""
    maps = chain.maps
    z = [each.apply(h) for each, h in zip(maps, (point.delta, *point.hidden[:-1]), strict=True)]
    back = [each.transpose(lam * h) for each, lam, h in zip(maps, curvatures, point.hidden, strict=True)]
    last = torch.zeros_like(point.hidden[-1])
    hidden = tuple(
        lam * (2 * h - z_k) - up for lam, h, z_k, up in zip(curvatures, point.hidden, z, (*back[1:], last), strict=True)
    )
    return Point(point.delta - back[0], hidden)
