"""A flip before a known one along rays of a network with too many pieces to cut every ray into them."""

import torch
from torch import Tensor

from brittle.networks import Network

LOOKS = 4  # points of each ray that are tried, the limit the last of them
STEPS = 40


def bracketed_flips(network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> Tensor:
    """Where the margin changes its sign before the first of a few points that is flipped; infinity where none is.

    The examples are classified rightly and the limits finite. It need not be the ray's first flip.
    """
    flips = torch.full_like(limit, torch.inf)
    low, above = torch.zeros_like(limit), network.margins(X, y)
    left = torch.arange(len(X))
    for look in range(1, LOOKS + 1):
        high = limit[left] * (look / LOOKS)
        below = network.margins(X[left] + high[:, None] * directions[left], y[left])
        rows, found = left[below < 0], below < 0
        bracket = low[rows], high[found], above[rows], below[found]
        flips[rows] = _between(network, X[rows], y[rows], directions[rows], *bracket)
        low[left], above[left] = high, below
        left = left[~found]
    return flips


def _between(
    network: Network, X: Tensor, y: Tensor, directions: Tensor, low: Tensor, high: Tensor, above: Tensor, below: Tensor
) -> Tensor:
    """Regula falsi as of Illinois: the value of an end that stays twice is halved. The margins bracket zero."""
    low, high, above, below = (each.clone() for each in (low, high, above, below))
    side, live = torch.zeros(len(X), dtype=torch.int64), torch.arange(len(X))
    for _ in range(STEPS):
        span = high[live] - low[live]
        live = live[(span > 4 * torch.finfo(span.dtype).eps * high[live]) & (above[live] > 0)]
        if not len(live):
            break
        a, b = above[live], below[live]
        at = torch.minimum(low[live] + (high[live] - low[live]) * (a / (a - b)), high[live])
        margin = network.margins(X[live] + at[:, None] * directions[live], y[live])
        flipped = margin < 0
        now = torch.where(flipped, -1, 1)
        again = now == side[live]
        low[live], high[live] = torch.where(flipped, low[live], at), torch.where(flipped, at, high[live])
        above[live] = torch.where(flipped, torch.where(again, a / 2, a), margin)
        below[live] = torch.where(flipped, margin, torch.where(again, b / 2, b))
        side[live] = now
    return torch.where(above > 0, high, low)
