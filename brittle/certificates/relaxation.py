"""Linear relaxation in the ℓ2 ball (CROWN), for ReLU networks of any depth, by bisection over the radius.

In a ball every ReLU lies between two lines; put them in backwards from the margin and a linear function of x is left,
whose smallest value in the ball is known. The rounding of every product is bounded by the same product of absolute
values, with the bounds that are known for the layer's inputs.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.certificates.base import Certificate, Example, LowerBound
from brittle.certificates.layers import Layers, Margins
from brittle.certificates.rounding import ROUNDOFF, SQUARES, UNDERFLOW, gamma
from brittle.common.errors import require_count
from brittle.networks import Network

LOST = 1e-270  # a share γ of it is more than a sum of products near 1 can lose below the smallest normal float


@dataclass(frozen=True)
class Relaxation(Certificate):
    """`halvings` of the radius' interval; `steps` of gradient ascent on the lower lines' slopes at each radius."""

    method: ClassVar[str] = "relaxation"

    halvings: int = 16
    steps: int = 0

    def __post_init__(self) -> None:
        require_count("halvings", self.halvings)
        require_count("steps", self.steps, least=0)

    def prepare(self, network: Network) -> LowerBound:
        layers = Layers.of(network, self.method)
        return lambda example: self._claim(layers.around(example.x, example.ball, example.y), example)

    def _claim(self, margins: Margins, example: Example) -> float:
        unit = 2.0 ** (margins.exponent - 1)
        return unit * (2 * self._radius(margins, 0.5 * example.ball / unit))

    def _radius(self, margins: Margins, ball: float) -> float:
        low, high = 0.0, ball
        if self._holds(margins, high):
            return high
        middle = 0.25 * high
        for _ in range(self.halvings):
            if self._holds(margins, middle):
                low = middle
            else:
                high = middle
            middle = 0.5 * (low + high) if low > 0 else 0.1 * high
        return low

    def _holds(self, margins: Margins, radius: float) -> bool:
        """Whether every margin is positive in the whole ball."""
        ball = _Ball(margins, radius)
        for depth in range(1, len(margins.weights)):
            ball.enter(depth)
        floors = ball.floor(ball.slopes)
        slopes = ball.slopes
        for _ in range(self.steps if not (floors > 0).all() else 0):
            slopes = ball.steeper(slopes)
            floors = torch.maximum(floors, ball.floor(slopes))
            if (floors > 0).all():
                break
        return bool((floors > 0).all())


class _Ball:
    """Bounds of all layers that were entered, for inputs x + δ with ‖δ‖ ≤ radius."""

    def __init__(self, margins: Margins, radius: float) -> None:
        self.layers, self.x, self.radius = margins, margins.x, radius
        self.low: list[Tensor] = []
        self.high: list[Tensor] = []
        self.slopes: list[Tensor] = []  # of the lower lines

    def enter(self, depth: int) -> None:
        """Bounds on z_depth (counted from 1), from both sides at once."""
        W, b = self.layers.weights[depth - 1], self.layers.biases[depth - 1]
        floors = self._backward(torch.cat([W, -W]), torch.cat([b, -b]), depth - 1, self.slopes)
        low, high = floors[: len(W)], -floors[len(W) :]
        self.low.append(low)
        self.high.append(high)
        self.slopes.append((high > -low).to(low))

    def floor(self, slopes: list[Tensor]) -> Tensor:
        return self._backward(self.layers.weights[-1], self.layers.biases[-1], len(self.low), slopes)

    def steeper(self, slopes: list[Tensor]) -> list[Tensor]:
        """One step of normalised ascent on the smallest margin's floor."""
        with torch.enable_grad():
            free = [slope.clone().requires_grad_(True) for slope in slopes]
            gradients = torch.autograd.grad(self.floor(free).min(), free)
        return [
            (slope + 0.2 * gradient / gradient.abs().max().clamp(min=1e-300)).clamp(0, 1)
            for slope, gradient in zip(slopes, gradients, strict=True)
        ]

    def _backward(self, rows: Tensor, offsets: Tensor, depth: int, slopes: list[Tensor]) -> Tensor:
        """Floors under rows·φ(z_depth) + offsets."""
        slip = torch.zeros_like(offsets)
        for layer in reversed(range(depth)):
            rows, offsets, extra = self._through_relu(rows, offsets, layer, slopes[layer])
            W, b = self.layers.weights[layer], self.layers.biases[layer]
            size = self.high[layer - 1].clamp(min=0) if layer else self.x.abs() + self.radius
            lost = LOST * (1 + size.sum())
            weight = rows.abs() @ (W.abs() @ size + b.abs() + lost) + offsets.abs() + lost
            slip = slip + extra + gamma(W.shape[0] + W.shape[1] + 8) * weight
            offsets, rows = offsets + rows @ b, rows @ W
        reach = (rows.norm(dim=1) + SQUARES) * self.radius * (1 + gamma(rows.shape[1] + 8))
        slip = slip + gamma(rows.shape[1] + 8) * (rows.abs() @ (self.x.abs() + LOST) + offsets.abs() + LOST)
        floors: Tensor = offsets + rows @ self.x - reach - slip * (1 + 8 * ROUNDOFF)
        return floors

    def _through_relu(self, rows: Tensor, offsets: Tensor, layer: int, slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Replace φ(z) by its lower line where the row is positive, by its upper line where it is negative."""
        low, high = self.low[layer], self.high[layer]
        on, off = low >= 0, high <= 0
        chord = torch.where(on, 1.0, torch.where(off, 0.0, high / (high - low).clamp(min=1e-300)))
        under = torch.where(on, 1.0, torch.where(off, 0.0, slope))
        # The chord only needs to be above φ at both ends; its intercept makes up for a rounded slope.
        rise = torch.where(on | off, 0.0, torch.maximum(-chord * low, high - chord * high))
        rise = rise + torch.where(on | off, 0.0, gamma(4) * (low.abs() + high.abs()) + UNDERFLOW)
        size = torch.where(off, 0.0, torch.maximum(low.abs(), high.abs()))
        positive, negative = rows.clamp(min=0), rows.clamp(max=0)
        slip = gamma(len(low) + 8) * (rows.abs() @ (size + rise) + offsets.abs())
        return positive * under + negative * chord, offsets + negative @ rise, slip
