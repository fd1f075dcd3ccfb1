"""Linear relaxation in the ℓ2 ball (CROWN), for ReLU networks of any depth, by bisection over the radius.

In a ball every ReLU lies between two lines; put them in backwards from the margin (`linear_floors`) and a linear
function of x is left, whose smallest value in the ball is known.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from brittle.certificates.base import Certificate, LowerBound
from brittle.certificates.example import Example, RadiusInterval
from brittle.certificates.layers import DeepMargins, Layers
from brittle.certificates.rounding import ROUNDOFF, SQUARES, UNDERFLOW, gamma
from brittle.common.errors import require_count
from brittle.common.parts import option
from brittle.common.time_limit import check_time
from brittle.networks import Network

LOST = 1e-270  # a share γ of it is more than a sum of products near 1 can lose below the smallest normal float


class Floors(NamedTuple):
    """rows·h + offsets, each to be lowered by its slip; h is what a layer gives."""

    rows: Tensor
    offsets: Tensor
    slip: Tensor

    def through_relu(self, low: Tensor, high: Tensor, slope: Tensor) -> "Floors":
        """From h = φ(z) to z in [low, high]: the lower line, of this slope in [0, 1], where the row is positive, and
        the chord where it is negative.
        """
        on, off = low >= 0, high <= 0
        chord = torch.where(on, 1.0, torch.where(off, 0.0, high / (high - low).clamp(min=1e-300)))
        under = torch.where(on, 1.0, torch.where(off, 0.0, slope))
        # The chord only needs to be above φ at both ends; its intercept makes up for a rounded slope.
        rise = torch.where(on | off, 0.0, torch.maximum(-chord * low, high - chord * high))
        rise = rise + torch.where(on | off, 0.0, gamma(4) * (low.abs() + high.abs()) + UNDERFLOW)
        size = torch.where(off, 0.0, torch.maximum(low.abs(), high.abs()))
        positive, negative = self.rows.clamp(min=0), self.rows.clamp(max=0)
        slip = gamma(len(low) + 8) * (self.rows.abs() @ (size + rise) + self.offsets.abs())
        return Floors(positive * under + negative * chord, self.offsets + negative @ rise, self.slip + slip)

    def through_layer(self, W: Tensor, absolute: Tensor, b: Tensor, size: Tensor) -> "Floors":
        """From z = W h + b to h with |h| ≤ size; `absolute` is |W|."""
        lost = LOST * (1 + size.sum())
        weight = self.rows.abs() @ (absolute @ size + b.abs() + lost) + self.offsets.abs() + lost
        slip = self.slip + gamma(sum(W.shape) + 8) * weight
        return Floors(self.rows @ W, self.offsets + self.rows @ b, slip)


def steeper_half(low: Tensor, high: Tensor) -> Tensor:
    """Slopes of the lower lines: 1 where more of the interval is on than off."""
    return (high > -low).to(low)


Tensors = tuple[Tensor, ...]


@dataclass(frozen=True)
class LinearRelaxation(Certificate):
    """`halvings` of the radius' interval; `steps` of gradient ascent on the lower lines' slopes at each radius.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> found = bt.certificates.LinearRelaxation(steps=20).bound(network, data)
        >>> bool((found.lower > 0).all())
        True
    """

    name: ClassVar[str] = "relaxation"

    halvings: int = field(default=16, metadata=option("Of the radius' interval."))
    steps: int = field(default=0, metadata=option("Steps on the slopes, at each radius."))

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("halvings", self.halvings)
        require_count("steps", self.steps, least=0)

    def prepare(self, network: Network) -> LowerBound:
        return partial(self._enclose, Layers.of(network, self.name))

    def _enclose(self, layers: Layers, example: Example, enclosure: RadiusInterval) -> RadiusInterval:
        margins = layers.around(example.x, enclosure.ball, example.y)
        unit = 2.0 ** (margins.exponent - 1)
        return enclosure.proven(unit * (2 * self._radius(margins, 0.5 * enclosure.ball / unit)))

    def _radius(self, margins: DeepMargins, ball: float) -> float:
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

    def _holds(self, margins: DeepMargins, radius: float) -> bool:
        """Whether every margin is positive in the whole ball."""
        ball = _Ball(margins, radius)
        for _ in margins.weights[1:]:
            check_time()
            ball = ball.entered()
        slopes = ball.slopes
        floors = ball.floor(slopes)
        for _ in range(self.steps if not (floors > 0).all() else 0):
            check_time()
            slopes = ball.steeper(slopes)
            floors = torch.maximum(floors, ball.floor(slopes))
            if (floors > 0).all():
                break
        return bool((floors > 0).all())


class _Ball(NamedTuple):
    """Inputs x + δ with ‖δ‖ ≤ radius, and bounds on the z of all layers that were entered."""

    margins: DeepMargins
    radius: float
    low: Tensors = ()
    high: Tensors = ()
    slopes: Tensors = ()  # of the lower lines

    def entered(self) -> "_Ball":
        """With bounds on the next layer's z."""
        low, high = self._deeper() if self.low else self._first()
        slopes = (*self.slopes, steeper_half(low, high))
        return self._replace(low=(*self.low, low), high=(*self.high, high), slopes=slopes)

    def _first(self) -> tuple[Tensor, Tensor]:
        """Of the first layer, which lies as far above its value at x as below."""
        W, b = self.margins.weights[0], self.margins.biases[0]
        z, error = b + W @ self.margins.x, self._reach(W, self.margins.absolute[0], b, torch.zeros_like(b))
        return z - error, z + error

    def _deeper(self) -> tuple[Tensor, Tensor]:
        """Of a later one, from both sides at once."""
        W, b = self.margins.weights[len(self.low)], self.margins.biases[len(self.low)]
        floors = self._backward(torch.cat([W, -W]), torch.cat([b, -b]), self.slopes)
        return floors[: len(W)], -floors[len(W) :]

    def floor(self, slopes: Tensors) -> Tensor:
        """Under every margin, with these slopes of the lower lines."""
        return self._backward(self.margins.weights[-1], self.margins.biases[-1], slopes)

    def steeper(self, slopes: Tensors) -> Tensors:
        """One step of normalised ascent on the smallest margin's floor."""
        with torch.enable_grad():
            free = tuple(slope.clone().requires_grad_(True) for slope in slopes)
            gradients = torch.autograd.grad(self.floor(free).min(), free)
        return tuple(
            (slope + 0.2 * gradient / gradient.abs().max().clamp(min=1e-300)).clamp(0, 1)
            for slope, gradient in zip(slopes, gradients, strict=True)
        )

    def _backward(self, rows: Tensor, offsets: Tensor, slopes: Tensors) -> Tensor:
        """Floors under rows·φ(z) + offsets for the z of the last layer that was entered."""
        x, now, margins = self.margins.x, Floors(rows, offsets, torch.zeros_like(offsets)), self.margins
        for layer in reversed(range(len(self.low))):
            now = now.through_relu(self.low[layer], self.high[layer], slopes[layer])
            size = self.high[layer - 1].clamp(min=0) if layer else x.abs() + self.radius
            now = now.through_layer(margins.weights[layer], margins.absolute[layer], margins.biases[layer], size)
        floors: Tensor = now.offsets + now.rows @ x - self._reach(now.rows, now.rows.abs(), now.offsets, now.slip)
        return floors

    def _reach(self, rows: Tensor, absolute: Tensor, offsets: Tensor, slip: Tensor) -> Tensor:
        """How far rows·(x + δ) + offsets may be from what is computed at x, the `slip` so far included."""
        error = gamma(rows.shape[1] + 8)
        reach: Tensor = (rows.norm(dim=1) + SQUARES) * self.radius * (1 + error)
        rounded = absolute @ (self.margins.x.abs() + LOST) + offsets.abs() + LOST
        reach = reach + (slip + error * rounded) * (1 + 8 * ROUNDOFF)
        return reach * (1 + 8 * ROUNDOFF)
