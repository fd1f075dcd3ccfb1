"""Where rays x + t u flip: exact for ReLU networks, by bracketed bisection for any other."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from brittle.attacks.pieces import (
    FlipIntervals,
    Pieces,
    has_many_pieces,
    is_piecewise_linear,
    pieces,
    rays_at_once,
    windows,
)
from brittle.common.errors import require
from brittle.common.kinds import check_kinds
from brittle.networks import Network

GRID = 256
BISECTIONS = 60
NUMBERS_AT_ONCE = 2**22


def scan_for_flips(network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> Tensor:
    """The first sign change that the grid shows; a dip between two of its points goes unseen."""
    return scan_for_intervals(network, X, y, directions, limit).first()


def scan_for_intervals(network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> FlipIntervals:
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
    return FlipIntervals(len(X), begins, start, stop)


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


# A flip before a known one along rays of a network with too many pieces to cut every ray into them.


LOOKS = 4  # points of each ray that are tried, the limit the last of them
STEPS = 40


def bracket_flips(network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> Tensor:
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


CLEAR = 4  # units of rounding that a measured margin lies below zero
Within = Callable[[Network, Tensor, Tensor, Tensor, Tensor], Tensor]
REACH = 1e-3  # of the flip's length and the example's: the longest step past a flip


@check_kinds
def first_flip(network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: float | Tensor = torch.inf) -> Tensor:
    """inf {t ≥ 0: margin(x + t u) < 0} for every ray, infinity where there is none up to the limit: (n,).

    The margin is zero there, or the example is misclassified and t is 0; `step_past` goes to the flipped side.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> one, W = torch.ones(1), torch.tensor([[1.0], [-1.0]])
        >>> absolute = bt.networks.TwoLayer(W, torch.zeros(2), torch.ones(2), torch.tensor(-1.0))  # |x| - 1
        >>> bt.attacks.first_flip(absolute, 3 * one[None], one, -one[None]).tolist()
        [2.0]
    """
    network, X, directions, limits = _checked(network, X, y, directions, limit)
    right = network.margins(X, y) >= 0
    flips = torch.where(right, torch.inf, torch.zeros_like(limits))
    rows = right.nonzero()[:, 0]
    flips[rows] = first_flip_of_right(network, X[rows], y[rows], directions[rows], limits[rows])
    return flips


def first_flip_of_right(network: Network, X: Tensor, y: Tensor, directions: Tensor, limits: Tensor) -> Tensor:
    """`first_flip` for a float64 network, rays (n, dim), limits (n,) and examples that it classifies rightly."""
    flips = torch.full_like(limits, torch.inf)
    possible = ((directions != 0).any(1) & (limits > 0)).nonzero()[:, 0]
    for rows in _chunks(network, possible):
        rays = X[rows], y[rows], directions[rows], limits[rows]
        flips[rows] = _first(network, *rays) if is_piecewise_linear(network) else scan_for_flips(network, *rays)
    return flips


@check_kinds
def sooner_flip(network: Network, X: Tensor, y: Tensor, directions: Tensor, limits: Tensor) -> Tensor:
    """`first_flip_of_right`, or where rays have many pieces a flip that a few points show, perhaps a later one.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> one, W = torch.ones(1).double(), torch.tensor([[1.0], [-1.0]])
        >>> absolute = bt.networks.TwoLayer(W, torch.zeros(2), torch.ones(2), torch.tensor(-1.0)).to(one.dtype)
        >>> bt.attacks.sooner_flip(absolute, 3 * one[None], one, -one[None], 9 * one).tolist()
        [2.0]
    """
    if not has_many_pieces(network):
        return first_flip_of_right(network, X, y, directions, limits)
    return _first(network, X, y, directions, limits, _seen_within)


@check_kinds
def flip_intervals(
    network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: float | Tensor = torch.inf
) -> FlipIntervals:
    """{0 ≤ t ≤ limit: margin(x + t u) < 0} for every ray, as open intervals.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> one, W = torch.ones(1), torch.tensor([[1.0], [-1.0]])
        >>> absolute = bt.networks.TwoLayer(W, torch.zeros(2), torch.ones(2), torch.tensor(-1.0))  # |x| - 1
        >>> found = bt.attacks.flip_intervals(absolute, 3 * one[None], one, -one[None])
        >>> found.start.tolist(), found.stop.tolist()
        ([2.0], [4.0])
    """
    network, X, directions, limits = _checked(network, X, y, directions, limit)
    empty = torch.zeros(0, dtype=torch.float64)
    parts = [(empty.long(), empty, empty)]
    for rows in _chunks(network, torch.arange(len(X))):
        rays = X[rows], y[rows], directions[rows], limits[rows]
        found = _intervals(network, *rays) if is_piecewise_linear(network) else scan_for_intervals(network, *rays)
        parts.append((rows[found.ray], found.start, found.stop))
    ray, start, stop = (torch.cat(each) for each in zip(*parts, strict=True))
    return FlipIntervals(len(X), ray, start, stop)


@check_kinds
def step_past(network: Network, X: Tensor, y: Tensor, directions: Tensor, flips: Tensor, limit: Tensor) -> Tensor:
    """The first of a few sizes just above `flips` at which the margin is measured below zero; infinity where none is.

    At the flip itself the margin is zero up to rounding, so the step starts at one unit of rounding and doubles, until
    the margin is so far below zero that the rounding of another batch size or processor would not lift it again; where
    it never is, the first size with a negative margin has to do.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> W, v = torch.tensor([[1.0], [-1.0]]).double(), torch.tensor([1.0, -1.0]).double()
        >>> line = bt.networks.TwoLayer(W, torch.zeros(2).double(), v)  # x itself
        >>> ray = torch.tensor([[3.0]]).double(), torch.tensor([1.0]).double(), torch.tensor([[-1.0]]).double()
        >>> size = bt.attacks.step_past(line, *ray, torch.tensor([3.0]).double(), torch.tensor([9.0]).double())
        >>> 3 < float(size) < 3 + 1e-6
        True
    """
    sizes, first = torch.where(flips.isfinite(), flips, torch.inf), torch.full_like(flips, torch.inf)
    pending = (sizes.isfinite() & (directions != 0).any(1)).nonzero()[:, 0]
    epsilon = torch.finfo(network.dtype).eps
    unit = epsilon * (flips + X.norm(dim=1) / directions.norm(dim=1).clamp(min=1e-300))
    clear = torch.zeros_like(flips)
    clear[pending] = CLEAR * network.rounding(X[pending] + sizes[pending, None] * directions[pending])
    for doubling in range(int(math.log2(REACH / epsilon))):
        margins = network.margins(X[pending] + sizes[pending, None] * directions[pending], y[pending])
        first[pending] = torch.where(margins < 0, torch.minimum(first[pending], sizes[pending]), first[pending])
        pending = pending[~(margins < -clear[pending])]
        if not len(pending):
            break
        sizes[pending] = torch.minimum(flips[pending] + unit[pending] * 2.0**doubling, limit[pending])
    sizes[pending] = first[pending]
    return sizes


def _checked(
    network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: float | Tensor
) -> tuple[Network, Tensor, Tensor, Tensor]:
    network.check(X, y)
    X = X.double()
    require(
        tuple(directions.shape) in (tuple(X.shape), tuple(X.shape[1:])),
        f"directions has shape {tuple(directions.shape)}; {tuple(X.shape[1:])} or {tuple(X.shape)} is needed",
    )
    require(bool(directions.isfinite().all()), "directions holds NaN or infinity")
    limits = torch.as_tensor(limit, dtype=torch.float64).expand(len(X))
    require(bool((limits >= 0).all()), "limit is negative or NaN; it must be at least 0")
    return network.to(torch.float64), X, directions.double().expand_as(X), limits.clone()


def _chunks(network: Network, rows: Tensor) -> tuple[Tensor, ...]:
    return torch.split(rows, rays_at_once(network)) if len(rows) else ()


def _first(
    network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor, within: Within | None = None
) -> Tensor:
    """Networks with many pieces are looked at near x first: the linear estimate tells how near."""
    within = within or _first_within
    if len(windows(network)) == 1:
        return within(network, X, y, directions, limit)
    slope = (network.margin_gradients(X, y) * directions).sum(1).abs()
    near = network.margins(X, y) / slope.clamp(min=1e-300)
    flips, left = torch.full_like(limit, torch.inf), torch.arange(len(X))
    for reach in windows(network):
        window = torch.minimum(limit[left], near[left] * reach) if reach < torch.inf else limit[left]
        flips[left] = within(network, X[left], y[left], directions[left], window)
        left = left[flips[left].isinf() & (window < limit[left])]
        if not len(left):
            break
    return flips


def _seen_within(network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> Tensor:
    """Endless rays are cut into their pieces all the same."""
    flips, near, far = torch.full_like(limit, torch.inf), limit.isfinite(), limit.isinf()
    flips[near] = bracket_flips(network, X[near], y[near], directions[near], limit[near])
    flips[far] = first_flip_of_right(network, X[far], y[far], directions[far], limit[far])
    return flips


def _first_within(network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> Tensor:
    found = pieces(network, X, y, directions, limit)
    entered = found.flipped_at_stop()
    any_rival = entered.any(2)
    hit = any_rival.any(1)
    piece = any_rival.to(torch.uint8).argmax(1)  # the first one: argmax returns the first of equal values
    rows, rivals = torch.arange(len(X)), torch.arange(entered.shape[2])
    zeros = found.zeros(rows[:, None], piece[:, None], rivals)
    flips, rival = torch.where(entered[rows, piece], zeros, torch.inf).min(1)
    crossing = found.value[rows, piece, rival] > 0
    slope = found.slope[rows, piece, rival]
    polish = (hit & crossing).nonzero()[:, 0]
    ends = found.start[rows, piece][polish], found.stop[rows, piece][polish]
    flips[polish] = _polished(network, X[polish], y[polish], directions[polish], flips[polish], slope[polish], *ends)
    return torch.where(hit, flips, torch.inf)


def _polished(
    network: Network, X: Tensor, y: Tensor, directions: Tensor, at: Tensor, slope: Tensor, low: Tensor, high: Tensor
) -> Tensor:
    """One Newton step with a freshly evaluated margin: the accumulated sums may have lost digits."""
    margin = network.margins(X + at[:, None] * directions, y)
    step = torch.where(slope == 0, 0.0, margin / torch.where(slope == 0, 1.0, slope))
    return torch.minimum(torch.maximum(at - step, low), high)


def _intervals(network: Network, X: Tensor, y: Tensor, directions: Tensor, limit: Tensor) -> FlipIntervals:
    found = pieces(network, X, y, directions, limit)
    at_stop = found.flipped_at_stop()
    at_start = found.flipped_at_start(at_stop)
    starts = _events(network, X, y, directions, found, ~at_start & at_stop)
    stops = _events(network, X, y, directions, found, at_start & ~at_stop)
    from_zero, to_limit = at_start[:, 0].nonzero(), at_stop[:, -1].nonzero()
    start = _sorted(starts, from_zero, torch.zeros(len(from_zero), dtype=torch.float64))
    stop = _sorted(stops, to_limit, limit[to_limit[:, 0]])
    ray, begin, end = start[0], start[2], stop[2]
    if found.value.shape[2] > 1:
        ray, begin, end = _united(ray, begin, end)
    lasting = end > begin
    return FlipIntervals(len(X), ray[lasting], begin[lasting], end[lasting])


def _events(
    network: Network, X: Tensor, y: Tensor, directions: Tensor, found: Pieces, happens: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Ray, rival and t of every sign change."""
    ray, piece, rival = happens.nonzero(as_tuple=True)
    at, slope = found.zeros(ray, piece, rival), found.slope[ray, piece, rival]
    if found.value.shape[2] == 1:
        ends = found.start[ray, piece], found.stop[ray, piece]
        inner = (at > ends[0]) & (at < ends[1])
        better = _polished(network, X[ray], y[ray], directions[ray], at, slope, *ends)
        at = torch.where(inner, better, at)
    return ray, rival, at


def _sorted(events: tuple[Tensor, Tensor, Tensor], where: Tensor, at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Events and those at an end of the ray together, by ray, rival and t."""
    ray, rival, t = torch.cat([events[0], where[:, 0]]), torch.cat([events[1], where[:, 1]]), torch.cat([events[2], at])
    order = t.argsort()
    order = order[(ray[order] * (int(rival.max()) + 1 if len(rival) else 1) + rival[order]).argsort(stable=True)]
    return ray[order], rival[order], t[order]


def _united(ray: Tensor, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The union of each ray's intervals, whichever rival they belong to."""
    order = start.argsort()
    order = order[ray[order].argsort(stable=True)]
    rays, starts, stops = ray[order].tolist(), start[order].tolist(), stop[order].tolist()
    merged: list[list[float]] = []
    for which, begin, end in zip(rays, starts, stops, strict=True):
        if merged and merged[-1][0] == which and begin < merged[-1][2]:
            merged[-1][2] = max(merged[-1][2], end)
        else:
            merged.append([which, begin, end])
    table = torch.tensor(merged, dtype=torch.float64).reshape(-1, 3)
    return table[:, 0].long(), table[:, 1], table[:, 2]
