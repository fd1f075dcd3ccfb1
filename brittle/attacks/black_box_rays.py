"""Sign changes along rays of a network that is only known by its values: brackets on a grid, then bisection."""

import torch
from torch import Tensor

from brittle.attacks.intervals import Intervals
from brittle.networks import Network

GRID = 256
BISECTIONS = 60
NUMBERS_AT_ONCE = 2**22


def scanned_flips(network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> Tensor:
    """The first sign change that the grid shows; a dip between two of its points goes unseen."""
    return scanned_intervals(network, X, y, directions, limit).first()


def scanned_intervals(network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> Intervals:
    grid = _grid(X, directions, limit)
    flipped = _flipped_on(grid, network, X, y, directions)
    turns = flipped[:, 1:] != flipped[:, :-1]
    ray, cell = turns.nonzero(as_tuple=True)
    at = _bisected(network, X[ray], y[ray], directions[ray], grid[ray, cell], grid[ray, cell + 1])
    opens = flipped[ray, cell + 1]
    first, last = flipped[:, 0].nonzero()[:, 0], flipped[:, -1].nonzero()[:, 0]
    starts = torch.cat([at[opens], torch.zeros(len(first), dtype=torch.float64)])
    begins, start = _by_ray(torch.cat([ray[opens], first]), starts)
    _, stop = _by_ray(torch.cat([ray[~opens], last]), torch.cat([at[~opens], grid[last, -1]]))
    return Intervals(len(X), begins, start, stop)


def _grid(X: Tensor, directions: Tensor, limit: Tensor) -> Tensor:
    """(n, GRID): half of it even, half of it geometric; an infinite limit becomes ten times ‖x‖ + 1."""
    sizes = directions.norm(dim=1).clamp(min=1e-300)
    limit = torch.where(limit.isinf(), 10 * (X.norm(dim=1) + 1) / sizes, limit)
    even = torch.linspace(0, 1, GRID // 2, dtype=torch.float64)
    geometric = torch.logspace(-8, 0, GRID - GRID // 2, dtype=torch.float64)
    return limit[:, None] * torch.cat([even, geometric]).sort().values


def _flipped_on(grid: Tensor, network: Network, X: Tensor, y: Tensor, directions: Tensor) -> Tensor:
    """(n, GRID), many grid points in one call of the network."""
    parts = []
    for columns in torch.split(grid, max(1, NUMBERS_AT_ONCE // max(1, X.numel())), 1):
        count = columns.shape[1]
        points = X[:, None] + columns[..., None] * directions[:, None]
        labels = y[:, None].expand(-1, count).reshape(-1)
        parts.append(network.margins(points.reshape(-1, X.shape[1]), labels).reshape(-1, count) < 0)
    return torch.cat(parts, 1)


def _flipped(network: Network, X: Tensor, y: Tensor, directions: Tensor, t: Tensor) -> Tensor:
    return network.margins(X + t[:, None] * directions, y) < 0


def _bisected(network: Network, X: Tensor, y: Tensor, directions: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Where the sign changes between low and high, from the side of `high` when it is the flipped one."""
    if not len(X):
        return low
    opens = _flipped(network, X, y, directions, high)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        same = _flipped(network, X, y, directions, middle) == opens
        low, high = torch.where(same, low, middle), torch.where(same, middle, high)
    return high


def _by_ray(ray: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    order = t.argsort()
    order = order[ray[order].argsort(stable=True)]
    return ray[order], t[order]
