"""margin / Lipschitz constant: the oldest certificate, in three strengths."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from brittle.certificates.base import Certificate, Claim, Question
from brittle.certificates.layers import Layers, spectral_norm
from brittle.certificates.local import UNIT, Local
from brittle.certificates.pairs import TwoLayerMargins
from brittle.common.errors import require
from brittle.networks import Deep, Network

CONSTANTS = ("spectral", "sum", "local")
TURNS = 40


@dataclass(frozen=True)
class Lipschitz(Certificate):
    """`constant`: `spectral` ‖W_1‖···‖v‖ (any depth), `sum` Σ|v_j|‖w_j‖, `local` in the ball that is certified.

    In a ball of radius r the neurons that cannot change sign are linear: L(r) = ‖Σ_on c w‖ plus the smaller of the
    other two constants over the rest; the radius is the largest r with margin ≥ r L(r). The last two need two layers.
    """

    method: ClassVar[str] = "lipschitz"

    constant: str = "local"

    def __post_init__(self) -> None:
        known = self.constant in CONSTANTS
        require(known, f"constant is {self.constant!r}; it must be one of {', '.join(CONSTANTS)}")

    def _prepare(self, network: Network) -> Claim:
        deep = isinstance(network, Deep) and network.depth > 2
        if self.constant == "spectral" or deep:
            name = self.method if self.constant == "spectral" or not deep else f"{self.method} ({self.constant})"
            require(
                self.constant == "spectral" or not deep, f"{name} needs two layers; constant spectral takes any depth"
            )
            layers = Layers.of(network, self.method)
            inner = float(np.prod([spectral_norm(W) for W in layers.weights[:-1]]))
            return lambda question: _global_radius(layers, inner, question)
        margins = TwoLayerMargins.of(network, self.method)
        return lambda question: min((self._radius(local) for local in margins.locals(question)), default=np.inf)

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


def _global_radius(layers: Layers, inner: float, question: Question) -> float:
    outputs = layers.margins(question.y)
    values, slips = outputs.outputs(question.x)
    floors = values - slips
    constants = inner * outputs.weights[-1].norm(dim=1) * (1 + 1e-12)
    radii = torch.where(constants > 0, floors.clamp(min=0) / constants, torch.where(floors > 0, torch.inf, 0.0))
    return float(min(radii.min().item() * (1 - 8 * UNIT), question.ball))


def _quotient(local: Local, slope: float) -> float:
    """How far the margin lasts at this slope, rounding paid for; ε may be longer than δ."""
    value = local.beta + np.maximum(local.a, 0) @ local.c
    slip = local.error + 1e-14 * len(local.c) * (abs(local.beta) + np.abs(local.a) @ np.abs(local.c))
    floor = float(value - slip)
    if floor <= 0:
        return 0.0
    return floor / (slope * local.stretch * (1 + 1e-12)) * (1 - 8 * UNIT) if slope > 0 else np.inf


def _slope(local: Local) -> float:
    base = float(np.linalg.norm(local.q)) * (1 + 1e-12)
    rows = torch.from_numpy(local.W)
    spectral = spectral_norm(rows) * float(np.linalg.norm(local.c)) * (1 + 1e-12) if len(local.c) else 0.0
    return base + min(spectral, _sum(local))


def _slope_of_sums(local: Local) -> float:
    return float(np.linalg.norm(local.q)) * (1 + 1e-12) + _sum(local)


def _sum(local: Local) -> float:
    return float(np.abs(local.c) @ local.sizes) * (1 + 1e-12)
