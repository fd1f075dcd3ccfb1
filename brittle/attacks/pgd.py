"""Projected gradient descent in an ℓ2 ball, and the smallest ball in which it flips."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from brittle.attacks.base import Attack, AttackResult, AttackTarget, Attempt
from brittle.attacks.flips import first_flip, step_past
from brittle.attacks.restriction import FREE, LIMIT, SUBSPACE, Restriction
from brittle.common.errors import require_count, require_positive
from brittle.common.parts import option
from brittle.common.progress import Progress
from brittle.geometry import into_ball, unit_rows
from brittle.networks import Network


@dataclass(frozen=True, eq=False)
class PGDResult(AttackResult):
    """budgets (n,): the ball of each example; in a search the smallest that flipped it, infinity where none did.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> found = bt.attacks.PGD(rounds=6).run(network, data)  # without a budget it looks for the smallest
        >>> bool((found.norms <= found.budgets + 1e-9).all())
        True
    """

    budgets: Tensor


@dataclass(frozen=True)
class PGD(Attack[PGDResult]):
    """`steps` steps of `pace`·budget/`steps` against the unit gradient of the margin, each projected back on the ball.

    Gradient and iterate are projected on the subspace. `budget` None searches for the smallest budget of every example
    by `rounds` bisections, cutting each flip to its exact length along its ray.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> bt.attacks.PGD(budget=3.0).run(network, data).rate
        1.0
    """

    name: ClassVar = "pgd"
    result: ClassVar[type[AttackResult]] = PGDResult

    budget: float | None = field(
        default=None, metadata=option("Radius of the ball; the smallest one unless given.", check=require_positive)
    )
    steps: int = field(default=50, metadata=option("How many.", check=require_count))
    pace: float = field(default=2.5, metadata=option("All steps together, in radii.", check=require_positive))
    rounds: int = field(default=8, metadata=option("Bisections for the smallest ball.", check=require_count))
    subspace: Restriction = field(default=FREE, metadata=SUBSPACE)
    limit: float = field(default=torch.inf, metadata=LIMIT)

    def propose(self, target: AttackTarget) -> Attempt:
        if self.budget is None:
            return self._search(target)
        budgets = torch.full((len(target.X),), min(self.budget, self.limit), dtype=torch.float64)
        delta = self._descend(target, torch.arange(len(target.X)), budgets)
        return Attempt(delta, delta, {"budgets": budgets})

    def _search(self, target: AttackTarget) -> Attempt:
        """Bisect between a budget that failed and a flip; without a flip the budget doubles."""
        low = torch.zeros(len(target.X), dtype=torch.float64)
        best, high = torch.zeros_like(target.X), torch.full_like(low, torch.inf)
        high[target.margins < 0] = 0
        guess = self._first_guess(target)
        for step in range(self.rounds):
            rows = (high > 0).nonzero()[:, 0]
            if not len(rows):
                break
            budgets = torch.where(high[rows].isfinite(), (low[rows] + high[rows]) / 2, guess[rows])
            flips, rays = self._cut(target, rows, self._descend(target, rows, budgets))
            shorter = flips < high[rows]
            low[rows[~(flips <= budgets)]] = budgets[~(flips <= budgets)]
            high[rows[shorter]], best[rows[shorter]] = flips[shorter], rays[shorter]
            guess = (4 * guess).clamp(max=self.limit)
            target.watch(Progress((step + 1) / self.rounds, f"mean budget {float(high[high.isfinite()].mean()):.4g}"))
        found = torch.where(high.isfinite(), high, 0.0)
        return Attempt(best * found[:, None], best, {"budgets": high})

    def _first_guess(self, target: AttackTarget) -> Tensor:
        """Twice the distance to where a linear margin would be zero, a little where there is no gradient."""
        gradients = self.subspace.project(target.network.margin_gradients(target.X, target.y).double())
        margins, lengths = target.margins, gradients.norm(dim=1)
        linear = 2 * margins.clamp(min=0) / torch.where(lengths > 0, lengths, 1.0)
        fallback = 0.01 * (target.X.norm(dim=1) + 1)
        return torch.where((lengths > 0) & (linear > 0), linear, fallback).clamp(max=self.limit)

    def _cut(self, target: AttackTarget, rows: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
        """The exact lengths of the flips along the rays through δ, infinite where there is none, and those rays."""
        lengths = delta.norm(dim=1, keepdim=True)
        rays = unit_rows(delta)
        X, y = target.X[rows], target.y[rows]
        limits = torch.minimum(target.limits(rays, self.limit, rows), lengths[:, 0] * (1 + 1e-9))
        flips = first_flip(target.network, X, y, rays, limits)
        return step_past(target.network, X, y, rays, flips, target.limits(rays, self.limit, rows)), rays

    def _descend(self, target: AttackTarget, rows: Tensor, budgets: Tensor) -> Tensor:
        """The iterate with the smallest margin."""
        X, y = target.X[rows], target.y[rows]
        best, least = torch.zeros_like(X), target.network.margins(X, y).double()

        def stride(points: Tensor, gradients: Tensor) -> Tensor:
            return (self.pace / self.steps * budgets)[:, None] * unit_rows(self.subspace.project(gradients))

        def back(delta: Tensor) -> Tensor:
            return self._back(target, rows, delta, budgets)

        for delta in iterate_pgd(target.network, X, y, self.steps, stride, back):
            margins = target.network.margins(X + delta, y).double()
            better = margins < least
            best, least = torch.where(better[:, None], delta, best), torch.where(better, margins, least)
        return best

    def _back(self, target: AttackTarget, rows: Tensor, delta: Tensor, budgets: Tensor) -> Tensor:
        """Into the subspace, the ball and the box; on a subspace the box shortens δ, since clipping would turn it."""
        delta = into_ball(self.subspace.project(delta), budgets)
        if target.bounds is None:
            return delta
        if self.subspace.free:
            return target.clip(delta, rows)
        return delta * target.limits(delta, 1.0, rows)[:, None]


def iterate_pgd(
    network: Network,
    X: Tensor,
    y: Tensor,
    steps: int,
    stride: Callable[[Tensor, Tensor], Tensor],
    back: Callable[[Tensor], Tensor],
) -> Iterator[Tensor]:
    """The iterates δ (n, dim), from 0 on: against `stride` of the points and of the margins' gradients, then `back`."""
    delta = torch.zeros_like(X)
    for _ in range(steps):
        points = X + delta
        delta = back(delta - stride(points, network.margin_gradients(points, y).to(X)))
        yield delta
