"""margin / Lipschitz constant: the oldest certificate, in three strengths."""

import math
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from brittle.certificates.base import Certificate, LowerBound
from brittle.certificates.example import Example, RadiusInterval
from brittle.certificates.layers import Layers, spectral_norm
from brittle.certificates.margins import LocalModel, TwoLayerMargins
from brittle.certificates.rounding import FARTHEST, ROUNDOFF, UNDERFLOW, Array, exponents, gamma, length, shift_exponent
from brittle.common.errors import require
from brittle.common.parts import option
from brittle.networks import Network

TURNS = 40


@dataclass(frozen=True)
class Lipschitz(Certificate):
    """`constant`: `spectral` ‖W_1‖···‖v‖ (any depth), `sum` Σ|v_j|‖w_j‖, `local` in the ball that is certified.

    In a ball of radius r the neurons that cannot change sign are linear: L(r) = ‖Σ_on c w‖ plus the smaller of the
    other two constants over the rest; the radius is the largest r with margin ≥ r L(r). The last two need two layers.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> bounds = [bt.certificates.Lipschitz(kind).bound(network, data) for kind in ("spectral", "sum", "local")]
        >>> [bool((0 < each.lower).all() and (each.lower <= each.upper).all()) for each in bounds]
        [True, True, True]
    """

    name: ClassVar[str] = "lipschitz"

    constant: Literal["spectral", "sum", "local"] = field(
        default="local", metadata=option("Local unless given; spectral for more than two layers.")
    )

    def prepare(self, network: Network) -> LowerBound:
        if self.constant == "spectral":
            layers = Layers.of(network, self.name)
            return partial(_spectral, layers, _product(layers.weights[:-1]))
        deep = network.depth is not None and network.depth > 2
        name = f"{self.name} ({self.constant})"
        require(not deep, f"{name} needs two layers; constant spectral takes any depth")
        return partial(self._enclose, TwoLayerMargins.of(network, self.name))

    def _enclose(self, margins: TwoLayerMargins, example: Example, enclosure: RadiusInterval) -> RadiusInterval:
        over = (margins.over(rival, example, enclosure.ball) for rival in margins.rivals(example.y))
        return enclosure.proven(min(margin.unit * self._radius(margin.model) for margin in over))

    def _radius(self, model: LocalModel) -> float:
        if self.constant == "sum":
            return min(model.ball, _quotient(model, _slope_of_sums(model)))
        low, high, middle = 0.0, model.ball, model.ball
        for _ in range(TURNS):
            inside = model.within(middle)
            if _quotient(inside, _slope(inside)) >= middle:
                low = middle
            else:
                high = middle
            if high - low <= 1e-4 * low:
                break
            middle = 0.5 * (low + high) if low > 0 else 0.25 * high
        return low


class _Scaled(NamedTuple):
    """value·2^exponent"""

    value: float
    exponent: int


def _product(weights: tuple[Array, ...]) -> _Scaled:
    """A ceiling over ‖W_1‖·‖W_2‖···"""
    product, total = 1.0, 0
    for W in weights:
        top = max(int(exponents(W).max()), -FARTHEST)
        product, by = math.frexp(product * spectral_norm(shift_exponent(W, -top)))
        total += top + by
    return _Scaled(product, total)


def _spectral(layers: Layers, inner: _Scaled, example: Example, enclosure: RadiusInterval) -> RadiusInterval:
    """Every margin over the product of the layers' norms."""
    margins = layers.around(example.x, enclosure.ball, example.y)
    values, slips = margins.outputs(margins.x)
    floors = (values - slips).clamp(min=0).numpy()
    rows, units = layers.last_rows(example.y)
    constants = inner.value * np.linalg.norm(rows, axis=1) * (1 + gamma(rows.shape[1] + len(layers.weights) + 8))
    quotients = np.where(constants > 0, floors / constants, np.where(floors > 0, np.inf, 0.0))
    radii = shift_exponent(quotients, margins.units - units - inner.exponent)
    return enclosure.proven(float(min(radii.min() * (1 - 8 * ROUNDOFF), enclosure.ball)))


def _quotient(model: LocalModel, slope: float) -> float:
    """How far the margin lasts at this slope, rounding paid for; ε may be longer than δ."""
    value = model.beta + np.maximum(model.a, 0) @ model.c
    slip = model.error + gamma(len(model.c) + 8) * (abs(model.beta) + np.abs(model.a) @ np.abs(model.c))
    floor = float(value - slip)
    return floor / (slope * model.stretch) * (1 - 16 * ROUNDOFF) if floor > UNDERFLOW else 0.0


def _slope(model: LocalModel) -> float:
    share = gamma(len(model.c) + len(model.q) + 8)
    spectral = spectral_norm(model.W) * length(model.c) * (1 + share) if len(model.c) else 0.0
    return (length(model.q) + min(spectral, _sum(model))) * (1 + share)


def _slope_of_sums(model: LocalModel) -> float:
    return (length(model.q) + _sum(model)) * (1 + gamma(len(model.q) + 8))


def _sum(model: LocalModel) -> float:
    return float(np.abs(model.c) @ model.sizes) * (1 + gamma(len(model.c) + 8))
