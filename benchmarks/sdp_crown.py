"""SDP-CROWN's bound (arXiv 2506.06665) for networks of any depth, for comparison only: rounding is not paid for.

Backwards through the layers, c·φ(z) is bounded from below by g·z + h on the ball ‖z - ẑ‖ ≤ ρ of a layer's inputs:
h = -½(λ(ρ² - ‖ẑ‖²) + ‖min(c - g - λẑ, g + λẑ, 0)‖²/λ), for any slopes g and any λ > 0. The balls of the layers are
those of their norms. The slopes g = αc and λ are improved by Adam, for all rivals of an image at once.
"""

import torch
from torch import Tensor

from brittle.certificates.layers import spectral_norm
from brittle.networks import Deep
from brittle.settings import Data

STEPS, RATE = 100, 0.05


def margin_floors(network: Deep, data: Data, radius: float) -> Tensor:
    """Under the smallest margin of every example in its ball, as far as the steps find it; ≤ 0 proves nothing."""
    norms = [spectral_norm(layer.matrix.numpy()) for layer in network.layers[:-1]]
    balls = torch.cumprod(torch.tensor([radius, *norms], dtype=torch.float64), 0)[1:]
    margins = network.margins(data.X, data.y)
    return torch.stack(
        [
            _floor(network, x, int(y), balls, radius) if margin > 0 else margin
            for x, y, margin in zip(data.X, data.y, margins, strict=True)
        ]
    )


def _floor(network: Deep, x: Tensor, y: int, balls: Tensor, radius: float) -> Tensor:
    inputs, last = _inputs(network, x), network.layers[-1]
    rivals = torch.arange(last.outputs) != y
    rows = (last.matrix[y] - last.matrix)[rivals]
    heights = (last.offset[y] - last.offset)[rivals]
    alphas = [(z > 0).double().expand(len(rows), -1).clone().requires_grad_(True) for z in inputs]
    logs = [torch.zeros(len(rows), 1, dtype=torch.float64) - 3 for _ in inputs]
    logs = [log.requires_grad_(True) for log in logs]
    adam, best = torch.optim.Adam([*alphas, *logs], RATE), torch.full((len(rows),), -torch.inf, dtype=torch.float64)
    for _ in range(STEPS):
        adam.zero_grad()
        slopes, floors = rows, heights
        for layer, z, alpha, log, ball in reversed(
            list(zip(network.layers[:-1], inputs, alphas, logs, balls, strict=True))
        ):
            g, lam = alpha * slopes, log.exp()
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


def _inputs(network: Deep, x: Tensor) -> list[Tensor]:
    """ẑ of every hidden layer."""
    found, h = [], x[None]
    for layer in network.layers[:-1]:
        z = layer.apply(h)
        found.append(z[0])
        h = z.relu()
    return found
