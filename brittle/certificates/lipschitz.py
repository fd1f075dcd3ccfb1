"""margin / Lipschitz constant: the oldest certificate, in three strengths."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from brittle.certificates.base import Certificate, Claim, Question
from brittle.certificates.layers import Layers, spectral_norm
from brittle.certificates.local import UNDERFLOW, UNIT, Local, length
from brittle.certificates.pairs import TwoLayerMargins
from brittle.certificates.scales import FARTHEST, Array, exponents, shifted
from brittle.common.errors import require
from brittle.common.parts import check_fields, option
from brittle.networks import Network

TURNS = 40


@dataclass(frozen=True)
class Lipschitz(Certificate):
    """`constant`: `spectral` ‖W_1‖···‖v‖ (any depth), `sum` Σ|v_j|‖w_j‖, `local` in the ball that is certified.

    In a ball of radius r the neurons that cannot change sign are linear: L(r) = ‖Σ_on c w‖ plus the smaller of the
    other two constants over the rest; the radius is the largest r with margin ≥ r L(r). The last two need two layers.
    """

    name: ClassVar[str] = "lipschitz"

    constant: Literal["spectral", "sum", "local"] = field(
        default="local", metadata=option("Local unless given; spectral for more than two layers.")
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def prepare(self, network: Network) -> Claim:
        deep = network.depth is not None and network.depth > 2
        if self.constant == "spectral" or deep:
            name = self.name if self.constant == "spectral" or not deep else f"{self.name} ({self.constant})"
            require(
                self.constant == "spectral" or not deep, f"{name} needs two layers; constant spectral takes any depth"
            )
            layers = Layers.of(network, self.name)
            inner = _product(layers.weights[:-1])
            return lambda question: _global_radius(layers, *inner, question)
        margins = TwoLayerMargins.of(network, self.name)
        return lambda question: min(
            (rival.unit * self._radius(rival.local) for rival in margins.rivals(question)), default=np.inf
        )

    def _radius(self, local: Local) -> float:
        if self.constant == "sum":
            return min(local.ball, _quotient(local, _slope_of_sums(local)))
        low, high, middle = 0.0, local.ball, local.ball
        for _ in range(TURNS):
            inside = local.within(middle)
            if _quotient(inside, _slope(inside)) >= middle:
                low = middle
            else:
                high = middle
            if high - low <= 1e-4 * low:
                break
            middle = 0.5 * (low + high) if low > 0 else 0.25 * high
        return low


def _product(weights: tuple[Array, ...]) -> tuple[float, int]:
    """A ceiling over ‖W_1‖·‖W_2‖··· as m·2^e."""
    product, total = 1.0, 0
    for W in weights:
        top = max(int(exponents(W).max()), -FARTHEST)
        product, by = math.frexp(product * spectral_norm(shifted(W, -top)))
        total += top + by
    return product, total


def _global_radius(layers: Layers, inner: float, inner_by: int, question: Question) -> float:
    margins = layers.around(question.x, question.ball, question.y)
    values, slips = margins.outputs(margins.x)
    floors = (values - slips).clamp(min=0).numpy()
    rows, units = layers.last_rows(question.y)
    constants = inner * np.linalg.norm(rows, axis=1) * (1 + 1e-12)
    quotients = np.where(constants > 0, floors / constants, np.where(floors > 0, np.inf, 0.0))
    radii = shifted(quotients, margins.units - units - inner_by)
    return float(min(radii.min() * (1 - 8 * UNIT), question.ball))


def _quotient(local: Local, slope: float) -> float:
    """How far the margin lasts at this slope, rounding paid for; ε may be longer than δ."""
    value = local.beta + np.maximum(local.a, 0) @ local.c
    slip = local.error + 1e-14 * len(local.c) * (abs(local.beta) + np.abs(local.a) @ np.abs(local.c))
    floor = float(value - slip)
    return floor / (slope * local.stretch * (1 + 1e-12)) * (1 - 8 * UNIT) if floor > UNDERFLOW else 0.0


def _slope(local: Local) -> float:
    spectral = spectral_norm(local.W) * length(local.c) * (1 + 1e-12) if len(local.c) else 0.0
    return length(local.q) * (1 + 1e-12) + min(spectral, _sum(local))


def _slope_of_sums(local: Local) -> float:
    return length(local.q) * (1 + 1e-12) + _sum(local)


def _sum(local: Local) -> float:
    return float(np.abs(local.c) @ local.sizes) * (1 + 1e-12)
