"""The margin along a ray x + t u, as the linear pieces that it is made of."""

import math
from dataclasses import dataclass
from functools import singledispatch

import torch
from torch import Tensor

from brittle.common.result import Result
from brittle.networks import Layered, Network, TwoLayer


@dataclass(frozen=True, eq=False)
class FlipIntervals(Result):
    """Open intervals of t, sorted by ray and then by start; a ray has any number of them.

    rays: how many rays there are; ray (k,) whose interval it is; start, stop (k,).

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> both = bt.attacks.FlipIntervals(2, torch.tensor([0, 1]), torch.tensor([1.0, 2.0]), torch.tensor([4.0, 3.0]))
        >>> both.overlap(), both.share(torch.tensor([0.5, 1.5, 2.5])).tolist()
        ((2.0, 3.0), [0.0, 0.5, 1.0])
    """

    rays: int
    ray: Tensor
    start: Tensor
    stop: Tensor

    def first(self) -> Tensor:
        """The start of each ray's first interval, infinity where it has none: (rays,)."""
        first = torch.full((self.rays,), torch.inf, dtype=torch.float64)
        return first.scatter_reduce(0, self.ray, self.start, "amin")

    def share(self, sizes: Tensor) -> Tensor:
        """The share of rays that are flipped at each size, a size at the very start of an interval counted as in it."""
        begun = (self.start <= sizes[:, None]).sum(1)
        ended = (self.stop <= sizes[:, None]).sum(1)
        return (begun - ended).double() / max(self.rays, 1)

    def widest_overlap(self) -> tuple[int, float, float]:
        """The largest number of rays flipped at one size, and the first interval on which so many are."""
        if not len(self.start):
            return 0, torch.inf, torch.inf
        where = torch.cat([self.stop, self.start])
        change = torch.cat([-torch.ones_like(self.stop), torch.ones_like(self.start)]).long()
        where, order = where.sort(stable=True)  # the intervals are open: what ends at t ends before what begins there
        flipped = change[order].cumsum(0)
        # a count counts only where the next change comes later than this one
        lasting = torch.cat([where[1:] > where[:-1], torch.tensor([False])])
        flipped = torch.where(lasting & (change[order] > 0), flipped, 0)
        index = int(flipped.argmax())
        return int(flipped[index]), float(where[index]), float(where[min(index + 1, len(where) - 1)])

    def overlap(self) -> tuple[float, float]:
        """The first interval on which every ray is flipped; infinite where there is none."""
        most, start, stop = self.widest_overlap()
        return (start, stop) if most == self.rays else (torch.inf, torch.inf)


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


# The linear pieces of a deep ReLU network along rays: each layer splits the pieces of the layer before it.


@dataclass(frozen=True, eq=False)
class _Segments:
    """One row per linear piece, sorted by ray and start: Z the layer's inputs at the start, D their slopes."""

    ray: Tensor
    start: Tensor
    Z: Tensor
    D: Tensor

    def lengths(self, limit: Tensor) -> Tensor:
        last = torch.cat([self.ray[1:] != self.ray[:-1], torch.tensor([True])])
        following = torch.cat([self.start[1:], self.start[:1]])
        return torch.where(last, limit[self.ray], following) - self.start

    def split(self, limit: Tensor) -> "_Segments":
        """Every piece cut where a neuron changes sign inside it."""
        crosses = ((self.Z > 0) & (self.D < 0)) | ((self.Z < 0) & (self.D > 0))
        shift = torch.where(crosses, -self.Z / self.D, torch.inf)
        row, neuron = (shift < self.lengths(limit)[:, None]).nonzero(as_tuple=True)
        shift = shift[row, neuron]
        Z = self.Z[row] + shift[:, None] * self.D[row]
        Z[torch.arange(len(row)), neuron] = 0
        ray, start = torch.cat([self.ray, self.ray[row]]), torch.cat([self.start, self.start[row] + shift])
        order = start.argsort()
        order = order[ray[order].argsort(stable=True)]
        return _Segments(
            ray[order], start[order], torch.cat([self.Z, Z])[order], torch.cat([self.D, self.D[row]])[order]
        )

    def active(self, limit: Tensor) -> Tensor:
        """Judged in the middle of the piece: at its ends a neuron that changes there is zero up to rounding."""
        lengths = self.lengths(limit)[:, None]
        endless = lengths.isinf()
        middle = self.Z + self.D * torch.where(endless, 0.0, lengths / 2) > 0
        return torch.where(endless & (self.D != 0), self.D > 0, middle)


@rays_at_once.register
def _(network: Layered) -> int:
    hidden = network.widths
    return max(1, 8 * NUMBERS_AT_ONCE // (sum(hidden) * max(network.shape[1:])))


@pieces.register
def deep_pieces(network: Layered, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> Pieces:
    rays, first = torch.arange(len(X)), network.layers[0]
    segments = _Segments(rays, torch.zeros_like(limit), first.apply(X), first.linear(directions))
    scale, drift = _magnitudes(network, X, directions)
    for layer in network.layers[1:]:
        segments = segments.split(limit)
        active = segments.active(limit)
        Z, D = layer.apply(torch.where(active, segments.Z, 0.0)), layer.linear(torch.where(active, segments.D, 0.0))
        segments = _Segments(segments.ray, segments.start, Z, D)
    value, slope = _margins(network, y[segments.ray], segments.Z), _slopes(network, y[segments.ray], segments.D)
    return _padded(segments, value, slope, limit, scale, drift)


def _margins(network: Layered, y: Tensor, logits: Tensor) -> Tensor:
    """Against every rival: (k, 1) for a sign network, otherwise (k, C-1)."""
    if network.classes == 1:
        return y[:, None] * logits
    own = logits.gather(1, y[:, None])
    rivals = torch.arange(network.classes) != y[:, None]
    return (own - logits)[rivals].reshape(len(y), network.classes - 1)


_slopes = _margins  # both are linear in the logits


def _magnitudes(network: Layered, X: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Rounding errors of the logits along the ray, at t = 0 and per unit of t: (n,) each."""
    size, drift = X.abs(), directions.abs()
    for layer in (each.absolute() for each in network.layers):
        size, drift = layer.apply(size), layer.linear(drift)
    grain = 4 * EPSILON * network.depth
    return grain * size.max(1).values, grain * drift.max(1).values


def _padded(segments: _Segments, value: Tensor, slope: Tensor, limit: Tensor, noise: Tensor, drift: Tensor) -> Pieces:
    """Rows of equal length: each ray's first piece is preceded by copies of length 0."""
    count = segments.ray.bincount(minlength=len(limit))
    offset = count.cumsum(0) - count
    column = torch.arange(int(count.max()))[None]
    index = offset[:, None] + (column - (count.max() - count)[:, None]).clamp(min=0)
    start = segments.start[index]
    stop = torch.cat([start[:, 1:], limit[:, None]], 1)
    return Pieces(start, stop, value[index], slope[index], noise[:, None, None], drift[:, None, None])
