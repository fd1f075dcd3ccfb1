"""The margin along a ray x + t u, as the linear pieces that it is made of."""

import math
from dataclasses import dataclass
from functools import singledispatch

import torch
from torch import Tensor

from brittle.networks import Network, TwoLayer

NUMBERS_AT_ONCE = 2**21
LARGEST_RAY = 2**27  # numbers that all pieces of one ray may take
LARGE_RAY = 2**20  # numbers from which on a search does not cut every ray into its pieces
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
        endless = length[:, -1:].isinf()  # only a last piece can be
        if not endless.any():
            return self.value + self.slope * length < -(self.noise + self.drift * stop)
        stop, length = stop.nan_to_num(posinf=0.0), length.nan_to_num(posinf=0.0)
        flipped = self.value + self.slope * length < -(self.noise + self.drift * stop)
        falls, rises = self.slope[:, -1:] < -self.drift, self.slope[:, -1:] > self.drift
        last = torch.where(endless, falls | (flipped[:, -1:] & ~rises), flipped[:, -1:])
        return torch.cat([flipped[:, :-1], last], 1)

    def flipped_at_start(self, at_stop: Tensor) -> Tensor:
        first = self.value[:, :1] < -self.noise
        return torch.cat([first, at_stop[:, :-1]], 1)

    def zeros(self, ray: Tensor, piece: Tensor, rival: Tensor) -> Tensor:
        """Where the lines of these pieces meet zero, kept within the pieces."""
        value, slope = self.value[ray, piece, rival], self.slope[ray, piece, rival]
        shift = (-value / torch.where(slope == 0, 1.0, slope)).clamp(min=0)
        return torch.minimum(self.start[ray, piece] + shift, self.stop[ray, piece])


def is_piecewise_linear(network: Network) -> bool:
    """Whether there is room for all pieces of a ray: every neuron may bend it once or more."""
    return network.depth is not None and _numbers(network) <= LARGEST_RAY


def has_many_pieces(network: Network) -> bool:
    """Whether a ray's pieces take longer than many evaluations: never in two layers, where they only are sorted."""
    return network.depth is not None and len(windows(network)) > 1 and _numbers(network) > LARGE_RAY


def _numbers(network: Network) -> int:
    return sum(network.widths) * max(*network.widths, network.classes)


@singledispatch
def pieces(network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> Pieces:
    """All pieces of 0 ≤ t ≤ limit (n,), which may be infinite; each kind of layered network registers its own way."""
    raise NotImplementedError(type(network).__name__)


@singledispatch
def rays_at_once(network: Network) -> int:
    """How many rays to follow at a time, so that memory stays bounded."""
    return NUMBERS_AT_ONCE


@singledispatch
def windows(network: Network) -> tuple[float, ...]:
    """Reaches to look for a first flip within, in multiples of the linear estimate: many pieces are cut late."""
    return (2.0, 8.0, 32.0, math.inf)


@windows.register
def _(network: TwoLayer) -> tuple[float, ...]:
    return (math.inf,)


@rays_at_once.register
def _(network: TwoLayer) -> int:
    return max(1, NUMBERS_AT_ONCE // network.width)


@pieces.register
def two_layer_pieces(network: TwoLayer, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> Pieces:
    """f(t) = y c + Σ_j y v_j φ(a_j + t s_j): its slope rises by y v_j |s_j| at t_j = -a_j/s_j."""
    a, s = network.preactivations(X), directions @ network.W.T
    active = a > 0
    if not a.all():
        active |= (a == 0) & (s > 0)
    value = y * (network.c + a.relu() @ network.v)
    slope = y * (torch.where(active, s, 0.0) @ network.v)

    knots, order, inside = _sorted(torch.div(a, s).neg_(), limit)
    jumps = y[:, None] * network.v[order] * s.gather(1, order).abs()
    start = torch.cat([torch.zeros_like(limit)[:, None], knots], 1)
    slopes = torch.cat([slope[:, None], slope[:, None] + (jumps * inside).cumsum(1)], 1)
    values = torch.cat([value[:, None], value[:, None] + (slopes[:, :-1] * start.diff()).cumsum(1)], 1)
    grain = 4 * network.width**0.5 * EPSILON
    noise, drift = (
        grain * (network.c.abs() + a.norm(dim=1) * network.v.norm()),
        grain * s.norm(dim=1) * network.v.norm(),
    )
    stop = torch.cat([knots, limit[:, None]], 1)
    return Pieces(start, stop, values[..., None], slopes[..., None], noise[:, None, None], drift[:, None, None])


def _sorted(breaks: Tensor, limit: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Those in (0, limit] in order, each row's last one repeated to equal length; where they stood; which are real."""
    outside = torch.logical_not((breaks > 0).logical_and_(breaks <= limit[:, None]))  # NaN is outside too
    breaks.masked_fill_(outside, torch.inf)
    count = breaks.shape[1] - int(outside.sum(1).min())
    if 8 * count < breaks.shape[1]:
        ordered, order = breaks.topk(count, 1, largest=False)
    else:  # NumPy sorts rows several times as fast as PyTorch does
        order = torch.from_numpy(breaks.numpy().argsort(1)[:, :count])
        ordered = breaks.gather(1, order)
    inside = ordered.isfinite()
    knots = torch.where(inside, ordered, 0.0)
    return (knots.cummax(1).values if count else knots), order, inside
