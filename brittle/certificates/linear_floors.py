"""Linear floors, put in backwards through a network (CROWN): every ReLU lies between two lines where its z is bounded.

The rounding of every product is bounded by the same product of absolute values, with the bounds that are known for what
it is multiplied with.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from brittle.certificates.rounding import UNDERFLOW, gamma

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
