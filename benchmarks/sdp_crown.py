"""SDP-CROWN's bound (arXiv 2506.06665) for networks of any depth, for comparison only: rounding is not paid for.

Backwards through the layers, c·φ(z) is bounded from below by g·z + h on the ball ‖z - ẑ‖ ≤ ρ of a layer's inputs:
h = -½(λ(ρ² - ‖ẑ‖²) + ‖min(c - g - λẑ, g + λẑ, 0)‖²/λ), for any slopes g and any λ > 0. The balls of the layers are
those of their norms. The slopes g = αc and λ are improved by Adam, for all rivals of an image at once.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from brittle.certificates import Certificate, Example, LowerBound, RadiusInterval
from brittle.certificates.layers import spectral_norm
from brittle.data import Data
from brittle.networks import Layered, Network, as_layered

STEPS, RATE = 100, 0.05


def margin_floors(network: Layered, data: Data, radius: float) -> Tensor:
    """Under the smallest margin of every example in its ball, as far as the steps find it; ≤ 0 proves nothing."""
    balls = radius * _stretches(network)
    margins = network.margins(data.X, data.y)
    return torch.stack(
        [
            _floor(network, x, int(y), balls, radius) if margin > 0 else margin
            for x, y, margin in zip(data.X, data.y, margins, strict=True)
        ]
    )


@dataclass(frozen=True)
class SdpCrownRadius(Certificate):
    """The largest radius at which the formula proves something, by bisection; for any depth."""

    name: ClassVar[str] = "SDP-CROWN"

    halvings: int = 10

    def prepare(self, network: Network) -> LowerBound:
        layered = as_layered(network, "SDP-CROWN")
        return partial(self._enclose, layered, _stretches(layered))

    def _enclose(
        self, network: Layered, stretches: Tensor, example: Example, enclosure: RadiusInterval
    ) -> RadiusInterval:
        low, high = 0.0, enclosure.ball
        for _ in range(self.halvings):
            middle = (low + high) / 2
            with torch.enable_grad():
                floor = _floor(network, example.x, int(example.y), middle * stretches, middle)
            low, high = (middle, high) if floor > 0 else (low, middle)
        return enclosure.proven(low)


def _stretches(network: Layered) -> Tensor:
    """How much longer a step can be among the inputs of every hidden layer."""
    norms = [spectral_norm(layer.matrix.numpy()) for layer in network.layers[:-1]]
    return torch.cumprod(torch.tensor(norms, dtype=torch.float64), 0)


def _floor(network: Layered, x: Tensor, y: int, balls: Tensor, radius: float) -> Tensor:
    """λ is counted in units of ‖c‖/ρ, where it is best for ẑ = 0: small balls need large ones."""
    inputs, last = _inputs(network, x), network.layers[-1]
    if last.outputs == 1:
        rows, heights = y * last.matrix, y * last.offset
    else:
        rivals = torch.arange(last.outputs) != y
        rows = (last.matrix[y] - last.matrix)[rivals]
        heights = (last.offset[y] - last.offset)[rivals]
    alphas = [(z > 0).double().expand(len(rows), -1).clone().requires_grad_(True) for z in inputs]
    logs = [torch.full((len(rows), 1), -1.0, dtype=torch.float64) for _ in inputs]
    logs = [log.requires_grad_(True) for log in logs]
    adam, best = torch.optim.Adam([*alphas, *logs], RATE), torch.full((len(rows),), -torch.inf, dtype=torch.float64)
    for _ in range(STEPS):
        adam.zero_grad()
        slopes, floors = rows, heights
        for layer, z, alpha, log, ball in reversed(
            list(zip(network.layers[:-1], inputs, alphas, logs, balls, strict=True))
        ):
            unit = slopes.detach().norm(dim=1, keepdim=True) / ball
            g, lam = alpha * slopes, log.exp() * unit
            bent = torch.minimum(torch.minimum(slopes - g - lam * z, g + lam * z), torch.zeros_like(g))
            loss = lam[:, 0] * (ball**2 - z.square().sum()) + bent.square().sum(1) / lam[:, 0]
            floors = floors - 0.5 * loss + g @ layer.offset
            slopes = layer.transpose(g)
        floors = floors + slopes @ x - radius * slopes.norm(dim=1)
        best = torch.maximum(best, floors.detach())
        if bool((best > 0).all()):
            break
        (-floors.sum()).backward()
        adam.step()
    return best.min()


def _inputs(network: Layered, x: Tensor) -> list[Tensor]:
    """ẑ of every hidden layer."""
    found, h = [], x[None]
    for layer in network.layers[:-1]:
        z = layer.apply(h)
        found.append(z[0])
        h = z.relu()
    return found
