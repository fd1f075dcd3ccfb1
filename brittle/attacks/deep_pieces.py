"""The linear pieces of a deep ReLU network along rays: each layer splits the pieces of the layer before it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.attacks.pieces import EPSILON, NUMBERS_AT_ONCE, Pieces, pieces, rays_at_once
from brittle.networks import Layered


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
