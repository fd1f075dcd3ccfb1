"""The margin along a ray x + t u, as the linear pieces that it is made of."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.networks import Deep, Network, TwoLayer

EPSILON = torch.finfo(torch.float64).eps


@dataclass(frozen=True, eq=False)
class Pieces:
    """Linear pieces of n rays, padded to K by pieces of length 0 before the last one.

    start, stop (n, K); value, slope (n, K, rivals): the margin against each rival class at the start, and its slope.
    noise, drift (n, 1, 1): a value of up to noise + drift·t is rounding, not a sign.
    """

    start: Tensor
    stop: Tensor
    value: Tensor
    slope: Tensor
    noise: Tensor
    drift: Tensor

    def flipped_at_stop(self) -> Tensor:
        """Whether the margin is below zero, beyond rounding, where the piece ends (n, K, rivals)."""
        stop, length = self.stop[..., None], (self.stop - self.start)[..., None]
        finite = self.value + self.slope * torch.where(length.isinf(), 0.0, length) < -(
            self.noise + self.drift * torch.where(stop.isinf(), 0.0, stop)
        )
        falls, rises = self.slope < -self.drift, self.slope > self.drift
        return torch.where(length.isinf(), falls | (finite & ~rises), finite)

    def flipped_at_start(self, at_stop: Tensor) -> Tensor:
        first = self.value[:, :1] < -self.noise
        return torch.cat([first, at_stop[:, :-1]], 1)

    def zeros(self) -> Tensor:
        """Where each piece's line meets zero, kept within the piece (n, K, rivals)."""
        shift = -self.value / torch.where(self.slope == 0, 1.0, self.slope)
        return torch.minimum(self.start[..., None] + shift.clamp(min=0), self.stop[..., None])


def is_piecewise_linear(network: Network) -> bool:
    return isinstance(network, TwoLayer | Deep)


def pieces(network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> Pieces:
    """All pieces of 0 ≤ t ≤ limit (n,), which may be infinite."""
    if isinstance(network, TwoLayer):
        return _two_layer(network, X, y, directions, limit)
    assert isinstance(network, Deep)
    from brittle.attacks.walk import deep_pieces

    return deep_pieces(network, X, y, directions, limit)


def _two_layer(network: TwoLayer, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> Pieces:
    """f(t) = y c + Σ_j y v_j φ(a_j + t s_j): its slope rises by y v_j |s_j| at t_j = -a_j/s_j."""
    a, s = network.preactivations(X), directions @ network.W.T
    weights = y[:, None] * network.v
    opens = (a < 0) & (s > 0)
    breaks = torch.where(opens | ((a > 0) & (s < 0)), -a / s, torch.inf)
    breaks = torch.where(breaks <= limit[:, None], breaks, torch.inf)
    active = (a > 0) | ((a == 0) & (s > 0))
    value, slope = y * network.c + (weights * a * active).sum(1), (weights * s * active).sum(1)

    count = int(breaks.isfinite().sum(1).max())
    breaks, order = breaks.sort(1)
    breaks, jumps = breaks[:, :count], (weights * s.abs()).gather(1, order[:, :count])
    inside = breaks.isfinite()
    knots = torch.where(inside, breaks, 0.0).cummax(1).values if count else breaks
    start = torch.cat([torch.zeros_like(limit)[:, None], knots], 1)
    slopes = torch.cat([slope[:, None], slope[:, None] + (jumps * inside).cumsum(1)], 1)
    values = torch.cat([value[:, None], value[:, None] + (slopes[:, :-1] * start.diff()).cumsum(1)], 1)
    grain = 4 * network.width**0.5 * EPSILON
    noise = grain * (network.c.abs() + (weights * a).abs().sum(1))
    return Pieces(
        start,
        torch.cat([knots, limit[:, None]], 1),
        values[..., None],
        slopes[..., None],
        noise[:, None, None],
        grain * (weights * s).abs().sum(1)[:, None, None],
    )
