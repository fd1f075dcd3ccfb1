"""The shortest perturbation that can be found: several starts, linearisation at the boundary, exact rays."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.attacks.base import Attack, AttackResult, AttackTarget, Attempt, Bounds
from brittle.attacks.flips import CLEAR, sooner_flip, step_past
from brittle.attacks.pgd import PGD
from brittle.attacks.pieces import EPSILON, has_many_pieces, rays_at_once, windows
from brittle.attacks.projection import DEPTH, Fold, region_bounds
from brittle.attacks.restriction import FREE, LIMIT, SUBSPACE, Restriction
from brittle.common.errors import require, require_count, require_positive
from brittle.common.kinds import check_kinds
from brittle.common.parts import option
from brittle.common.progress import Progress, silent
from brittle.common.time_limit import TimeLimitReached, limit_time
from brittle.data import Data
from brittle.geometry import unit_rows
from brittle.networks import Layered, Network, TwoLayer

PIVOTS = 100
FEW_DIMENSIONS = 32
SEEKING_STEPS = 30
SEEKING_STARTS = 16  # at random points of the box
WALKING_STEPS = 20
STEP = 1e-12  # a flip that is shorter by less than this share is the same flip
BOUNDARY_STEPS = 100  # along the boundary
IN_OR_OUT = 0.05  # of its length, that such a walk goes in after a flip and out after none
FEW_PLANES = 3
LAST_STEP = 0.01  # of the first one's size
HOPEFUL = 1.02  # times the shortest flip: what is no longer than this when planes have shortened it is worth more


class MinimumNormSearch:
    """The shortest flips found so far: unit vectors `rays` (n, dim) and `norms` (n,), infinite where none is known."""

    def __init__(self, target: AttackTarget, subspace: Restriction, limit: float) -> None:
        self.target, self.subspace, self.limit = target, subspace, limit
        self.rays = torch.zeros_like(target.X)
        self.norms = torch.full((len(target.X),), torch.inf, dtype=torch.float64)
        self.norms[target.margins < 0] = 0

    def begin(self, flips: Tensor) -> None:
        """From perturbations (n, dim) that are known to flip."""
        rows = (self.norms > 0).nonzero()[:, 0]
        self.norms[rows], self.rays[rows] = flips[rows].norm(dim=1), unit_rows(flips[rows])

    def start(self, probes: Tensor, steps: int) -> None:
        """On the sphere of the shortest known flip go against the gradient, first that at x + probe.

        The ray through x + probe itself is worth a look where no flip is known yet, and in few dimensions.
        """
        rows = (self.norms > 0).nonzero()[:, 0]
        X, y, delta, norms = self.target.X[rows], self.target.y[rows], probes[rows], self.norms[rows]
        few = norms.isinf() | (X.shape[1] <= FEW_DIMENSIONS)
        self._try(rows[few], unit_rows(self.subspace.project(delta[few])), norms[few])
        sizes, rays = torch.where(norms.isfinite(), norms, X.norm(dim=1) + 1)[:, None], torch.zeros_like(X)
        for _ in range(steps):
            rays = -unit_rows(self.subspace.project(self.target.network.margin_gradients(X + delta, y).double()))
            delta = sizes * rays
        self._try(rows, rays, self.norms[rows])

    def start_in_box(self) -> None:
        """A ray against the gradient may leave the box too soon: aim where a linear margin would flip inside it."""
        if self.target.bounds is None or not self.subspace.free:
            return
        rows = (self.norms > 0).nonzero()[:, 0]
        X, y = self.target.X[rows], self.target.y[rows]
        gradients = self.target.network.margin_gradients(X, y).double()
        margins = self.target.margins[rows, None]
        low, high = self.target.bounds
        for excess in (1.01, 2.0, 1e9):
            goals = project_in_box(gradients, -excess * margins, low - X, high - X)
            self._try(rows, unit_rows(goals), self.norms[rows])

    def walk(self) -> None:
        """Small steps downhill in the ball of the shortest known flip, and the ray to where they lead."""
        if len(windows(self.target.network)) == 1:  # two layers have so few bends that the ray is good enough
            return
        rows, steps = self._found(), WALKING_STEPS
        X, y, norms = self.target.X[rows], self.target.y[rows], self.norms[rows, None]
        delta = torch.zeros_like(X)
        for _ in range(steps):
            gradients = self.subspace.project(self.target.network.margin_gradients(X + delta, y).double())
            delta = delta - 2 / steps * norms * unit_rows(gradients)
            delta = delta * (norms / delta.norm(dim=1, keepdim=True).clamp(min=1e-300)).clamp(max=1)
        self._try(rows, unit_rows(delta), self.norms[rows])

    def along_boundary(self) -> "MinimumNormSearch":
        """Another search that begins where a walk along the boundary, with smaller and smaller steps, flips soonest.

        Each step goes downhill, and then in or out to the size of the last one and a little less after a flip, a
        little more after none (as Rony et al. 2019 decouple direction and norm).
        """
        other, rows = MinimumNormSearch(self.target, self.subspace, self.limit), self._found()
        X, y, first = self.target.X[rows], self.target.y[rows], self.norms[rows]
        delta, sizes, best = torch.zeros_like(X), first, torch.full_like(first, torch.inf)
        for step in range(BOUNDARY_STEPS):
            gradients = self.subspace.project(self.target.network.margin_gradients(X + delta, y).double())
            share = LAST_STEP + (1 - LAST_STEP) * (1 + math.cos(math.pi * step / BOUNDARY_STEPS)) / 2
            delta = sizes[:, None] * unit_rows(delta - share * first[:, None] * unit_rows(gradients))
            delta = self.target.clip(delta, rows) if self.subspace.free else delta
            flipped, lengths = self.target.network.margins(X + delta, y) < 0, delta.norm(dim=1)
            sooner = flipped & (lengths < best)
            best = torch.where(sooner, lengths, best)
            other.rays[rows[sooner]] = unit_rows(delta[sooner])
            sizes = lengths * torch.where(flipped, 1 - IN_OR_OUT, 1 + IN_OR_OUT)
        found = best.isfinite()
        other._try(rows[found], other.rays[rows[found]], best[found] * (1 + IN_OR_OUT))
        other.shorten_by_planes(FEW_PLANES, 0.0)
        other.norms[other.norms > HOPEFUL * self.norms] = torch.inf
        return other

    def take_shorter(self, other: "MinimumNormSearch") -> Tensor:
        """The shorter flip of both searches; returns whose is the other's."""
        better = other.norms < self.norms * (1 - STEP)
        self.norms, self.rays = torch.where(better, other.norms, self.norms), self.rays.clone()
        self.rays[better] = other.rays[better]
        return better

    def seek(self) -> None:
        """Where no ray flipped, walk downhill and take the ray to where that leads: by Polyak's steps, then by PGD."""
        self._walk_down(torch.zeros_like(self.target.X))
        rows = self.norms.isinf().nonzero()[:, 0]
        if len(rows):
            target = replace(self.target, data=self.target.data.take(rows))
            attempt = PGD(steps=SEEKING_STEPS, subspace=self.subspace, limit=self.limit).propose(target)
            self._try(rows, attempt.direction, self.norms[rows])
        low, high = self.target.bounds or (-torch.inf, torch.inf)
        for _ in range(SEEKING_STARTS if math.isfinite(high - low) else 0):
            points = torch.rand(self.target.X.shape, generator=self.target.rng, dtype=torch.float64)
            self._walk_down(self.subspace.project(low + (high - low) * points - self.target.X))

    def _walk_down(self, start: Tensor) -> None:
        """From x + start (n, dim), by Polyak's steps inside the box, for the rows without a flip."""
        rows = self.norms.isinf().nonzero()[:, 0]
        if not len(rows):
            return
        X, y, delta = self.target.X[rows], self.target.y[rows], start[rows]
        goal = -0.02 * self.target.margins[rows, None]
        for _ in range(SEEKING_STEPS):
            gradients = self.subspace.project(self.target.network.margin_gradients(X + delta, y).double())
            above = (self.target.network.margins(X + delta, y)[:, None] - goal).clamp(min=0)
            delta = delta - above * gradients / gradients.square().sum(1, keepdim=True).clamp(min=1e-300)
            if self.subspace.free:  # clipping would leave a subspace
                delta = self.target.clip(delta, rows)
        self._try(rows, unit_rows(torch.where(delta.isfinite().all(1, keepdim=True), delta, 0.0)), self.norms[rows])

    def descend(self) -> None:
        """Go from every flip to the shortest point of the plane that touches the margin there."""
        rows = self._found()
        self._try(rows, unit_rows(self._linearised(rows)), self.norms[rows])

    def shorten(self, rounds: int, tolerance: float) -> Tensor:
        """Improve the shortest flips until nothing helps; returns what is proved about them, 0 where nothing is."""
        if not isinstance(self.target.network, TwoLayer) or self.target.bounds is not None:
            self.shorten_by_planes(rounds, tolerance)
        return self.finish(rounds, tolerance)

    def finish(self, rounds: int, tolerance: float) -> Tensor:
        """From region to region, to the shortest flip of each; returns what is proved about the last one."""
        network = self.target.network
        if isinstance(network, TwoLayer):
            return self._shorten_at_kinks(network, rounds)
        if isinstance(network, Layered):
            return self._shorten_in_regions(network, rounds, tolerance)
        return torch.zeros_like(self.norms)

    def shorten_by_planes(self, rounds: int, tolerance: float) -> None:
        """From every flip to the shortest point of the plane that touches the margin there, while that helps."""
        live = self._found()
        for _ in range(rounds):
            if not len(live):
                break
            before = self.norms[live]
            self._move(live, self._linearised(live))
            live = live[self.norms[live] < before * (1 - tolerance)]

    def perturbations(self) -> tuple[Tensor, Tensor]:
        """Just beyond the flips, where the margin is measured below zero; 0 where there is no flip."""
        rows = torch.arange(len(self.rays))
        return self._past(rows, self.rays, self.norms)[0], self.rays

    def _past(self, rows: Tensor, rays: Tensor, flips: Tensor) -> tuple[Tensor, Tensor]:
        """Perturbations just beyond the flips, inside the box, and whether they are measured to flip."""
        X, y, limits = self.target.X[rows], self.target.y[rows], self.target.limits(rays, self.limit, rows)
        sizes = step_past(self.target.network, X, y, rays, flips, limits)
        moves = self.target.clip(torch.where(sizes.isfinite(), sizes, 0.0)[:, None] * rays, rows)
        return moves, sizes.isfinite() & (self.target.network.margins(X + moves, y) < 0)

    def _shorten_at_kinks(self, network: TwoLayer, rounds: int) -> Tensor:
        """Go to the shortest flip with these concave neurons active, then with those active there, and so on."""
        W = self.subspace.project(network.W)
        bound = torch.zeros_like(self.norms)
        for live in torch.split(self._found(), rays_at_once(network)):
            for _ in range(rounds):
                if not len(live):
                    break
                fold = Fold.of(network, self.target.X[live], self.target.y[live], W)
                goals, bounds = fold.shortest(self.norms[live, None] * self.rays[live], PIVOTS)
                moved = self._move(live, goals)
                bound[live] = torch.where(moved, 0.0, bounds)  # the bound is about the δ before the move
                live = live[moved]
        return torch.minimum(bound, self.norms)

    def _shorten_in_regions(self, network: Layered, rounds: int, tolerance: float) -> Tensor:
        """Go to the shortest flip of the region, then to that of the region where this leads, and so on."""
        bound, live = torch.zeros_like(self.norms), self._found()
        for _ in range(rounds):
            if not len(live):
                break
            X, y, delta = self.target.X[live], self.target.y[live], self.norms[live, None] * self.rays[live]
            goals, bounds = region_bounds(network, X, y, delta, self.subspace)
            before = self.norms[live]
            moved = self._move(live, goals)
            bound[live] = torch.where(moved, 0.0, bounds)
            live = live[self.norms[live] < before * (1 - tolerance)]
        return torch.minimum(self._about_perturbations(network, bound), self.norms)

    def _about_perturbations(self, network: Layered, bound: Tensor) -> Tensor:
        """At a corner the point just beyond the flip, which is given away, lies in another region: what holds there."""
        X, y, beyond = self.target.X, self.target.y, self.perturbations()[0]
        flips = torch.where(self.norms.isfinite(), self.norms, 0.0)[:, None] * self.rays
        others = torch.zeros(len(X), dtype=torch.bool)
        for here, there in zip(*(network.values(X + delta)[:-1] for delta in (flips, beyond)), strict=True):
            others |= ((here > 0) != (there > 0)).any(1)
        rows = (others & (bound > 0)).nonzero()[:, 0]
        bound[rows] = region_bounds(network, X[rows], y[rows], beyond[rows], self.subspace)[1]
        return bound

    def _move(self, rows: Tensor, goals: Tensor) -> Tensor:
        """Try the rays through `goals`, then nearer ones where that is no shorter; returns who moved."""
        moved = torch.zeros(len(rows), dtype=torch.bool)
        here = self.norms[rows, None] * self.rays[rows]
        for share in (1.0, 0.5, 0.1):
            left = (~moved).nonzero()[:, 0]
            if not len(left):
                break
            before = self.norms[rows[left]]
            self._try(rows[left], unit_rows(here[left] + share * (goals[left] - here[left])), before)
            moved[left] = self.norms[rows[left]] < before
        return moved

    def _found(self) -> Tensor:
        """The rows with a flip that may be shortened."""
        return (self.norms.isfinite() & (self.norms > 0)).nonzero()[:, 0]

    def _linearised(self, rows: Tensor) -> Tensor:
        """The shortest δ' on the plane that touches the margin at δ, within the box where there is one."""
        network, X, y = self.target.network, self.target.X[rows], self.target.y[rows]
        delta = self.norms[rows, None] * self.rays[rows]
        gradients = self.subspace.project(network.margin_gradients(X + delta, y).double())
        along = (gradients * delta).sum(1, keepdim=True)
        if self.target.bounds is not None and self.subspace.free:
            low, high = self.target.bounds
            depth = DEPTH * self.target.margins[rows].abs() + 16 * CLEAR * network.rounding(X + delta)
            goal = project_in_box(gradients, along - depth[:, None], low - X, high - X)
        else:
            goal = gradients * along / gradients.square().sum(1, keepdim=True).clamp(min=1e-300)
        return torch.where(along < 0, goal, delta)

    def _try(self, rows: Tensor, rays: Tensor, limit: Tensor) -> None:
        """Follow new unit rays up to the limit (n,); they become the best known ones where they flip sooner."""
        X, y = self.target.X[rows], self.target.y[rows]
        limits = torch.minimum(self.target.limits(rays, self.limit, rows), limit)
        flips = sooner_flip(self.target.network, X, y, rays, limits)
        better = flips < self.norms[rows] * (1 - STEP) - 64 * EPSILON * X.norm(dim=1)
        if self.target.bounds is not None:  # the box may end just where the margin is zero
            better[better.clone()] = self._past(rows[better], rays[better], flips[better])[1]
        self.norms[rows[better]], self.rays[rows[better]] = flips[better], rays[better]


def project_in_box(g: Tensor, along: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The shortest δ of the box with g·δ ≤ along < 0: clip(-λ g) for the smallest λ that reaches it, or the corner.

    Coordinate j stops at its wall when λ = wall_j/|g_j|; between two stops g·clip(-λ g) is linear in λ.
    """
    steep = g.abs()
    wall = torch.where(g > 0, -low, torch.where(g < 0, high, 0.0))
    stops, order = (wall / steep.clamp(min=1e-300)).sort(1)
    steep, wall = steep.gather(1, order), wall.gather(1, order)
    moving = steep.square().flip(1).cumsum(1).flip(1)  # before each stop, that coordinate among them
    stopped = torch.nn.functional.pad((steep * wall).cumsum(1), (1, -1))
    reached = stopped + stops * moving >= -along
    first = torch.where(reached.any(1), reached.to(torch.uint8).argmax(1), -1)[:, None] % g.shape[1]
    rate = (-along - stopped.gather(1, first)) / moving.gather(1, first).clamp(min=1e-300)
    rate = torch.minimum(rate.clamp(min=0), stops.gather(1, first))
    return (-rate * g).clamp(low, high)


EQUAL = 1e-9  # relative: two norms that differ by less are the same
HURRIED = 1e-3  # relative: the gain for which a large network is not worth another look


@dataclass(frozen=True, eq=False)
class MinimumNormResult(AttackResult):
    """bound (n,): no shorter flip exists in the final region; stationary (n,): the norm found is that bound.

    The region of a two-layer network is every x + δ' with the same concave neurons (y v_j < 0) active as at x + δ;
    that of a deep network is every x + δ' with all neurons as at x + δ. The bound is 0 where none was proved.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
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
        >>> data = bt.data.Orthogonal(4).sample(4)
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

    def propose(self, target: AttackTarget) -> Attempt:
        with limit_time(None):
            search = MinimumNormSearch(target, self.subspace, self.limit)
        bound = torch.zeros_like(search.norms)
        with suppress(TimeLimitReached):
            bound = self._searched(search, target)
        norms = search.norms
        stationary = norms.isfinite() & (norms - bound <= EQUAL * norms)
        with limit_time(None):
            perturbations, direction = search.perturbations()
        return Attempt(perturbations, direction, {"bound": bound, "stationary": stationary})

    def _searched(self, search: MinimumNormSearch, target: AttackTarget) -> Tensor:
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

    def _finish(self, search: MinimumNormSearch, network: Network) -> Tensor:
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

    def _probes(self, target: AttackTarget, search: MinimumNormSearch) -> Iterator[Tensor]:
        """Where the gradients of the further starts are taken, as perturbations (n, dim)."""
        others = list(_towards_others(target, self.starts // 2))
        yield from others
        for _ in range(self.starts - 1 - len(others)):
            noise = torch.randn(target.X.shape, generator=target.rng, dtype=torch.float64)
            known = search.norms.isfinite()
            sizes = 2 * torch.where(known, search.norms, target.X.norm(dim=1))
            yield noise * (sizes / noise.norm(dim=1))[:, None]


@check_kinds
def shorten_perturbations(
    network: Network, data: Data, flips: Tensor, bounds: Bounds | None = None, rounds: int = 20
) -> Tensor:
    """Flips (n, dim) of a float64 network's examples finished as `MinimumNorm` finishes its own: none gets longer.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> far = bt.attacks.GradientStep().run(network, data).perturbations
        >>> bool((bt.attacks.shorten_perturbations(network, data, far).norm(dim=1) < far.norm(dim=1)).all())
        True
    """
    wanted, given = tuple(data.X.shape), tuple(flips.shape)
    require(given == wanted, f"flips has the shape {given}; it must be {wanted}, a flip for every example")
    target = AttackTarget(network, data, bounds, Generator(), silent)
    search = MinimumNormSearch(target, FREE, torch.inf)
    with torch.no_grad():
        search.begin(flips)
        search.shorten(rounds, HURRIED if has_many_pieces(network) else EQUAL)
        found, _ = search.perturbations()
        better = (found.norm(dim=1) < flips.norm(dim=1)) & (network.margins(data.X + found, data.y) < 0)
    return torch.where(better[:, None], found, flips)


def _towards_others(target: AttackTarget, count: int) -> Iterator[Tensor]:
    """The ways to the nearest, second nearest, ... example of another label."""
    count = min(count, len(target.X))
    blocks = [_nearest_others(target, rows, count) for rows in torch.split(torch.arange(len(target.X)), 1000)]
    nearest, index = (torch.cat(each) for each in zip(*blocks, strict=True))
    for rank in range(count):
        if nearest[:, rank].isfinite().any():
            yield torch.where(nearest[:, rank, None].isfinite(), target.X[index[:, rank]] - target.X, 0.0)


def _nearest_others(target: AttackTarget, rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    distances = torch.cdist(target.X[rows], target.X)
    distances = torch.where(target.y[rows, None] == target.y, torch.inf, distances)
    nearest, index = distances.topk(count, 1, largest=False)
    return nearest, index
