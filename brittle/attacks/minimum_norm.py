"""The shortest perturbation that can be found: several starts, linearisation at the boundary, exact rays."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.attacks.base import Attack, AttackResult, Attempt, Bounds, Target
from brittle.attacks.pieces import has_many_pieces, windows
from brittle.attacks.restriction import FREE, LIMIT, SUBSPACE, Restriction
from brittle.attacks.search import Search
from brittle.common.errors import require, require_count, require_positive
from brittle.common.kinds import kinds_checked
from brittle.common.parts import option
from brittle.common.progress import Progress, silent
from brittle.common.time_limit import TimeLimitReached, limited
from brittle.networks import Network
from brittle.settings import Data

EQUAL = 1e-9  # relative: two norms that differ by less are the same
HURRIED = 1e-3  # relative: the gain for which a large network is not worth another look


@dataclass(frozen=True, eq=False)
class MinimumNormResult(AttackResult):
    """bound (n,): no shorter flip exists in the final region; stationary (n,): the norm found is that bound.

    The region of a two-layer network is every x + δ' with the same concave neurons (y v_j < 0) active as at x + δ;
    that of a deep network is every x + δ' with all neurons as at x + δ. The bound is 0 where none was proved.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(4).sample(4)
        >>> found = bt.attacks.MinimumNorm().run(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> bool((found.bound <= found.norms + 1e-9).all())
        True
    """

    bound: Tensor
    stationary: Tensor


@dataclass(frozen=True)
class MinimumNorm(Attack[MinimumNormResult]):
    """Shortens the flip of the gradient ray, looks for a shorter one from `starts` - 1 other starts, and finishes it.

    The other starts take their gradient at the nearest examples of other labels and at random points around x, and
    follow it for `descents` steps; in deep networks small steps downhill are tried too, and the flip of a walk along
    the boundary is finished likewise. No perturbation is longer than the gradient ray's. `rounds` limits the finish,
    which ends by itself where a round gains less than `tolerance`, by default 1e-9. In large networks, whose rays have
    many pieces, that is 1e-3 and rays are looked at in a few points. A time limit (`brittle.common.time_limit`) that
    is reached on the way ends the search with the shortest flips so far.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(4).sample(4)
        >>> found = bt.attacks.MinimumNorm().run(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> [round(norm, 4) for norm in found.norms.tolist()]
        [1.0, 1.0, 1.0, 1.0]
    """

    name: ClassVar = "minimum-norm"
    result: ClassVar[type[AttackResult]] = MinimumNormResult

    starts: int = field(default=4, metadata=option("How many.", check=require_count))
    descents: int = field(default=2, metadata=option("Steps from each.", check=partial(require_count, least=0)))
    rounds: int = field(default=20, metadata=option("Of the finish, at most.", check=partial(require_count, least=0)))
    subspace: Restriction = field(default=FREE, metadata=SUBSPACE)
    limit: float = field(default=torch.inf, metadata=LIMIT)
    tolerance: float | None = field(
        default=None,
        metadata=option("Relative gain that ends the finish.", check=require_positive),
    )

    def propose(self, target: Target) -> Attempt:
        with limited(None):
            search = Search(target, self.subspace, self.limit)
        bound = torch.zeros_like(search.norms)
        with suppress(TimeLimitReached):
            bound = self._searched(search, target)
        norms = search.norms
        stationary = norms.isfinite() & (norms - bound <= EQUAL * norms)
        with limited(None):
            perturbations, direction = search.perturbations()
        return Attempt(perturbations, direction, {"bound": bound, "stationary": stationary})

    def _searched(self, search: Search, target: Target) -> Tensor:
        """Every start and the finish; returns what is proved in the end."""
        search.start(torch.zeros_like(target.X), steps=1)
        search.start_in_box()
        for _ in range(self.descents):
            search.descend()
        if self.starts > 1:
            search.walk()
        for step, probes in enumerate(self._probes(target, search)):
            target.watch(Progress((step + 1) / (self.starts + 1), f"start {step + 2} of {self.starts}"))
            search.start(probes, self.descents + 1)
        search.seek()
        return self._finish(search, target.network)

    def _finish(self, search: Search, network: Network) -> Tensor:
        """What is proved in the end. In deep networks a walk along the boundary gives a second flip to finish.

        In large ones the shorter of both is finished alone: regions cost most there, and hardly change the order.
        """
        twice = self.starts > 1 and len(windows(network)) > 1
        if self.tolerance is None and has_many_pieces(network):
            search.shorten_by_planes(self.rounds, HURRIED)
            if twice:
                other = search.along_boundary()
                other.shorten_by_planes(self.rounds, HURRIED)
                search.take_shorter(other)
            return search.finish(self.rounds, HURRIED)
        tolerance = EQUAL if self.tolerance is None else self.tolerance
        bound = search.shorten(self.rounds, tolerance)
        if twice:
            other = search.along_boundary()
            others_bound = other.shorten(self.rounds, tolerance)
            bound = torch.where(search.take_shorter(other), others_bound, bound)
        return bound

    def _probes(self, target: Target, search: Search) -> Iterator[Tensor]:
        """Where the gradients of the further starts are taken, as perturbations (n, dim)."""
        others = list(_towards_others(target, self.starts // 2))
        yield from others
        for _ in range(self.starts - 1 - len(others)):
            noise = torch.randn(target.X.shape, generator=target.rng, dtype=torch.float64)
            known = search.norms.isfinite()
            sizes = 2 * torch.where(known, search.norms, target.X.norm(dim=1))
            yield noise * (sizes / noise.norm(dim=1))[:, None]


@kinds_checked
def shortened(network: Network, data: Data, flips: Tensor, bounds: Bounds | None = None, rounds: int = 20) -> Tensor:
    """Flips (n, dim) of a float64 network's examples finished as `MinimumNorm` finishes its own: none gets longer.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(4).sample(4)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> far = bt.attacks.GradientStep().run(network, data).perturbations
        >>> bool((bt.attacks.shortened(network, data, far).norm(dim=1) < far.norm(dim=1)).all())
        True
    """
    wanted, given = tuple(data.X.shape), tuple(flips.shape)
    require(given == wanted, f"flips has the shape {given}; it must be {wanted}, a flip for every example")
    target = Target(network, data, bounds, Generator(), silent)
    search = Search(target, FREE, torch.inf)
    with torch.no_grad():
        search.begin(flips)
        search.shorten(rounds, HURRIED if has_many_pieces(network) else EQUAL)
        found, _ = search.perturbations()
        better = (found.norm(dim=1) < flips.norm(dim=1)) & (network.margins(data.X + found, data.y) < 0)
    return torch.where(better[:, None], found, flips)


def _towards_others(target: Target, count: int) -> Iterator[Tensor]:
    """The ways to the nearest, second nearest, ... example of another label."""
    count = min(count, len(target.X))
    blocks = [_nearest_others(target, rows, count) for rows in torch.split(torch.arange(len(target.X)), 1000)]
    nearest, index = (torch.cat(each) for each in zip(*blocks, strict=True))
    for rank in range(count):
        if nearest[:, rank].isfinite().any():
            yield torch.where(nearest[:, rank, None].isfinite(), target.X[index[:, rank]] - target.X, 0.0)


def _nearest_others(target: Target, rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    distances = torch.cdist(target.X[rows], target.X)
    distances = torch.where(target.y[rows, None] == target.y, torch.inf, distances)
    nearest, index = distances.topk(count, 1, largest=False)
    return nearest, index
