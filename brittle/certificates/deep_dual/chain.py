"""The hidden layers of a network, and the margins around one example, in units that bring every number near 1.

A ReLU commutes with positive factors, so that lengths may have one unit, every layer's outputs another, and every
margin one of its own. All units are powers of two: numbers keep their digits, unless they fall below the floats.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle.attacks.base import Bounds as Box
from brittle.certificates.layers import Layers, spectral_norm
from brittle.certificates.rounding import Array, exponents, near_one, shift_exponent
from brittle.networks import Layered
from brittle.networks.affine import Affine


@dataclass(frozen=True, eq=False)
class Chain:
    """z_k = maps[k] h_{k-1} + b_k for the hidden layers; the outputs of layer k are in units of 2^units[k] lengths.

    maps have no offset of their own, sizes are those of |W_k|, norms are proved ceilings over ‖W_k‖, and the products
    of the first k of them are between ½ and 2, where no layer is 0. Weights may be off by what falls below the floats.
    """

    maps: tuple[Affine, ...]
    sizes: tuple[Affine, ...]
    norms: tuple[float, ...]
    units: tuple[int, ...]
    biases: tuple[Array, ...]
    last: Layers

    @classmethod
    def of(cls, network: Layered) -> "Chain":
        maps, norms, units = [], [], []
        unit, product = 0, 1.0  # the product of all norms is product·2^unit
        for layer in network.layers[:-1]:
            plain, top, norm = _near_one(layer)
            before = unit
            product, by = _rounded(product * (norm or 1.0))
            unit += top + by
            maps.append(_shifted(plain, top + before - unit))
            norms.append(math.ldexp(norm, top + before - unit))
            units.append(unit)
        last = network.layers[-1]
        biases = tuple(layer.offset.numpy() for layer in network.layers[:-1])
        logits = Layers((last.matrix.numpy(),), (last.offset.numpy(),))
        return cls(tuple(maps), tuple(each.absolute() for each in maps), tuple(norms), tuple(units), biases, logits)

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(each.outputs for each in self.maps)

    def around(self, x: Tensor, ball: float, y: Tensor, box: Box | None = None) -> "Margins":
        """The margins over every rival at x + δ; with a box, only x + δ in it counts."""
        exponent = math.frexp(max(float(x.abs().max()), ball))[1]
        offsets = [shift_exponent(b, -unit - exponent) for b, unit in zip(self.biases, self.units, strict=True)]
        W, by, b, b_by = self.last.differences(y)
        rows, heights, _ = near_one(W, by, b, b_by - self.units[-1] - exponent)
        walls = None if box is None else (_wall(box[0], exponent, -1), _wall(box[1], exponent, 1))
        return Margins(
            self,
            torch.from_numpy(shift_exponent(x.numpy(), -exponent)),
            tuple(map(torch.from_numpy, offsets)),
            torch.from_numpy(rows),
            torch.from_numpy(heights),
            exponent,
            walls,
        )


@dataclass(frozen=True, eq=False)
class Margins:
    """f_r = rows[r]·h_K + heights[r] > 0 for every rival r, at h_0 = x + δ, in lengths of 2^exponent.

    offsets are the biases of the hidden layers; walls (low, high) are the box's, where there is one. Every number may
    carry one rounding, and be off by what falls below the floats.
    """

    chain: Chain
    x: Tensor
    offsets: tuple[Tensor, ...]
    rows: Tensor
    heights: Tensor
    exponent: int
    walls: tuple[float, float] | None

    def of(self, rivals: Tensor) -> "Margins":
        """Those over some rivals."""
        rows, heights = self.rows[rivals], self.heights[rivals]
        return Margins(self.chain, self.x, self.offsets, rows, heights, self.exponent, self.walls)


def _near_one(layer: Affine) -> tuple[Affine, int, float]:
    """The layer without its offset as map·2^top, and a ceiling over the map's spectral norm."""
    weight, bias = layer.parameters
    top = int(exponents(weight.numpy()).max()) if bool(weight.any()) else 0
    plain = _shifted(layer.with_parameters(weight, torch.zeros_like(bias)), -top)
    return plain, top, spectral_norm(plain.matrix.numpy())


def _shifted(layer: Affine, by: int) -> Affine:
    weight, bias = layer.parameters
    return layer.with_parameters(torch.from_numpy(shift_exponent(weight.numpy(), by)), bias)


def _rounded(value: float) -> tuple[float, int]:
    """m·2^e with m between 1/√2 and √2."""
    by = round(math.log2(value))
    return math.ldexp(value, -by), by


def _wall(value: float, exponent: int, outwards: int) -> float:
    """value·2^-exponent or a little beyond: a wider box is allowed."""
    return float(np.nextafter(shift_exponent(np.array(value), -exponent), outwards * np.inf))


# The Lagrangian of the nearest flip, whose minimum over all points bounds ½‖δ‖² of every flip from below.
#
#     L = ½‖δ‖² + μf - Σ_k [α_k·h_k + β_k·(h_k - z_k)] + Σ_k λ_k·h_k(h_k - z_k),   z_k = W_k h_{k-1} + b_k
#
# On the network h ≥ 0, h ≥ z and h(h - z) = 0, and at a flip f ≤ 0: there L ≤ ½‖δ‖² if α, β, μ ≥ 0. A box on x + δ adds
# p·(x + δ) - p₊·high + p₋·low ≤ 0 for any p. As a function of free (δ, h_1, ..., h_K) L is quadratic.


@dataclass(frozen=True, eq=False)
class LayeredMultipliers:
    """One row per rival: λ_k (), or (width_k,); α_k and β_k (r, width_k); μ (r,); p (r, dim), for a box."""

    curvatures: tuple[Tensor, ...]
    signs: tuple[Tensor, ...]
    lines: tuple[Tensor, ...]
    margin: Tensor
    walls: Tensor | None = None

    def of(self, rivals: Tensor) -> "LayeredMultipliers":
        """Those of some rivals."""
        signs, lines = (tuple(each[rivals] for each in part) for part in (self.signs, self.lines))
        walls = None if self.walls is None else self.walls[rivals]
        return LayeredMultipliers(self.curvatures, signs, lines, self.margin[rivals], walls)


@dataclass(frozen=True, eq=False)
class LagrangianPoint:
    """δ (r, dim) and h_k (r, width_k), free of each other."""

    delta: Tensor
    hidden: tuple[Tensor, ...]

    def moved(self, step: float | Tensor, direction: "LagrangianPoint") -> "LagrangianPoint":
        """point + step·direction, with a step for every row or for all."""
        step = step[:, None] if isinstance(step, Tensor) else step
        pairs = zip(self.hidden, direction.hidden, strict=True)
        return LagrangianPoint(self.delta + step * direction.delta, tuple(h + step * d for h, d in pairs))

    def dot(self, other: "LagrangianPoint") -> Tensor:
        total = (self.delta * other.delta).sum(1)
        return total + torch.stack([(h * d).sum(1) for h, d in zip(self.hidden, other.hidden, strict=True)]).sum(0)

    def over(self, curvatures: tuple[Tensor, ...]) -> "LagrangianPoint":
        """Divided by λ, with 1 for δ: the scaling in which the Hessian is near I."""
        return LagrangianPoint(self.delta, tuple(h / lam for h, lam in zip(self.hidden, curvatures, strict=True)))


def inputs(margins: Margins, point: LagrangianPoint) -> tuple[Tensor, ...]:
    """z_k of every layer."""
    layers = (margins.x + point.delta, *point.hidden[:-1])
    maps = zip(margins.chain.maps, layers, margins.offsets, strict=True)
    return tuple(each.apply(h) + b for each, h, b in maps)


def gradient(
    margins: Margins, multipliers: LayeredMultipliers, point: LagrangianPoint, z: tuple[Tensor, ...]
) -> LagrangianPoint:
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
    return LagrangianPoint(delta if multipliers.walls is None else delta + multipliers.walls, hidden)


def hessian(chain: Chain, curvatures: tuple[Tensor, ...], point: LagrangianPoint) -> LagrangianPoint:
    """The Hessian of L times a point."""
    maps = chain.maps
    z = [each.apply(h) for each, h in zip(maps, (point.delta, *point.hidden[:-1]), strict=True)]
    back = [each.transpose(lam * h) for each, lam, h in zip(maps, curvatures, point.hidden, strict=True)]
    last = torch.zeros_like(point.hidden[-1])
    hidden = tuple(
        lam * (2 * h - z_k) - up for lam, h, z_k, up in zip(curvatures, point.hidden, z, (*back[1:], last), strict=True)
    )
    return LagrangianPoint(point.delta - back[0], hidden)
