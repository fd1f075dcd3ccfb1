"""Training for the radius itself: every example is to be as far from the boundary as the data allow.

Two examples of different classes at distance d cannot both be farther than d/2 from a boundary between them, so ρ_i,
half the distance of x_i to the nearest example of another class, is the aim. With r_i the distance of x_i from the
boundary (negative where it is misclassified) the objective is

    J(θ) = mean_i (1 - r_i/(κ ρ_i))₊²,      κ growing from what the network has to 1.

At the nearest boundary point P = x + δ the margin m is 0 and dr/dθ = ∂m/∂θ(P)/‖∇ₓm(P)‖: growing weights win nothing.
Off the boundary r ≈ (m(P) - g·δ)/‖g‖, g = ∇ₓm(P), and δ ← g(g·δ - m)/‖g‖² goes to it.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.data.base import Data
from brittle.geometry import into_ball
from brittle.training.descent import Batches
from brittle.training.guarded import TINY, GuardedObjective, GuardedRun, GuardedTrainer, attainable
from brittle.training.normal_form import TrainingForm

CUT = 3.0  # longest δ, in ρ
OFF = 0.05  # a point whose distance from the boundary is more than this share of ‖δ‖ is none of it
FIRST, RENEWED, FOLLOWED = 5, 4, 3  # boundary steps: at the start, where δ is looked for anew, else
RENEWED_EVERY = 10  # epochs


@dataclass(frozen=True)
class MaximumRadius(GuardedTrainer):
    """Adam on J(θ), with the schedule and the guard of `GuardedTrainer`.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> rng = torch.Generator().manual_seed(0)
        >>> data = bt.data.Sphere(dim=20).sample(10, rng)
        >>> start = bt.networks.TorchLinearInit().draw(20, width=30, rng=rng)
        >>> trained = bt.training.Flow(until=bt.training.LogLoss(-3)).train(start, data).network
        >>> hard = bt.training.MaximumRadius(until=bt.training.Steps(60)).train(trained, data, rng).network
        >>> before, after = (bt.attacks.MinimumNorm().run(each, data).norms.median() for each in (trained, hard))
        >>> bool(after > before)
        True
    """

    name: ClassVar = "maximum-radius"

    def guarded(self, form: TrainingForm, data: Data, batches: Batches) -> GuardedRun:
        return MaximumRadiusRun(form, data, self, batches)


@dataclass(frozen=True, eq=False)
class BoundaryPath:
    """The way from examples to the boundary; `limits` are ρ (n,), `halves` (n, r) the way to half of each rival."""

    objective: GuardedObjective
    limits: Tensor
    halves: Tensor

    @classmethod
    def of(cls, objective: GuardedObjective) -> "BoundaryPath":
        limits, rivals = attainable(objective.X, objective.y)
        return cls(objective, limits, 0.5 * (objective.X[rivals] - objective.X))

    def at(self, theta: Tensor, rows: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
        """m and g at x + δ."""
        return self.objective.slopes_at(theta, self.objective.X[rows] + delta, self.objective.y[rows])

    def stepped(self, rows: Tensor, delta: Tensor, margins: Tensor, gradients: Tensor) -> Tensor:
        """The shortest δ to where the margin, as it is seen from here, is 0."""
        share = ((gradients * delta).sum(1) - margins) / gradients.square().sum(1).clamp(min=TINY**2)
        return into_ball(share[:, None] * gradients, CUT * self.limits[rows])

    def shortest(self, theta: Tensor, rows: Tensor, starts: list[Tensor], rounds: int) -> Tensor:
        """After so many steps from each start; one that has not come to the boundary is taken for want of others."""
        best, lowest = starts[0], torch.full((len(rows),), torch.inf)
        for delta in starts:
            for _ in range(rounds):
                delta = self.stepped(rows, delta, *self.at(theta, rows, delta))
            margins, gradients = self.at(theta, rows, delta)
            off, length = margins.abs() / gradients.norm(dim=1).clamp(min=TINY), delta.norm(dim=1)
            score = length + torch.where(off > OFF * length, 1e3 * off, 0.0)
            better = score < lowest
            best, lowest = torch.where(better[:, None], delta, best), torch.where(better, score, lowest)
        return best

    def starts(self, rows: Tensor) -> list[Tensor]:
        """Nothing, and half the way to the nearest rival."""
        return [torch.zeros_like(self.halves[rows]), self.halves[rows]]


def radii(delta: Tensor, margins: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    """r to first order, and ‖g‖."""
    slopes = gradients.norm(dim=1).clamp(min=TINY)
    return (margins - (gradients * delta).sum(1)) / slopes, slopes


class MaximumRadiusRun(GuardedRun):
    """With δ of every example."""

    def __init__(self, form: TrainingForm, data: Data, regime: GuardedTrainer, batches: Batches) -> None:
        super().__init__(form, data, regime, batches)
        self.boundary, everything = BoundaryPath.of(self.objective), torch.arange(len(data))
        self.delta = self.boundary.shortest(self.theta, everything, self.boundary.starts(everything), FIRST)
        self.first = self.kappa = min(regime.target, max(0.05, self.share(everything)))

    def arrays(self) -> dict[str, Tensor]:
        return {**super().arrays(), "delta": self.delta}

    def restore_arrays(self, arrays: dict[str, Tensor]) -> None:
        super().restore_arrays(arrays)
        self.delta = arrays["delta"]

    def share(self, rows: Tensor) -> float:
        delta = self.delta[rows]
        found, _ = radii(delta, *self.boundary.at(self.theta, rows, delta))
        return float((found / self.boundary.limits[rows]).median())

    def ascent(self, rows: Tensor) -> Tensor:
        """At the boundary points of these examples, which are brought up to date."""
        delta, boundary = self.delta[rows], self.boundary
        renewed = self.epoch % RENEWED_EVERY == 1
        starts = [delta, *boundary.starts(rows)] if renewed else [delta]
        delta = boundary.shortest(self.theta, rows, starts, RENEWED if renewed else FOLLOWED)
        margins, gradients = boundary.at(self.theta, rows, delta)
        found, slopes = radii(delta, margins, gradients)
        aims = self.kappa * boundary.limits[rows]
        weights = (1 - found / aims).clamp(0, 2) / (aims * slopes) / len(rows)
        self.delta = self.delta.clone()
        self.delta[rows] = boundary.stepped(rows, delta, margins, gradients)
        return self._gradient(rows, delta, weights)

    def _gradient(self, rows: Tensor, delta: Tensor, weights: Tensor) -> Tensor:
        """Of Σ weights m(x + δ) in θ."""
        with torch.enable_grad():
            theta = self.theta.detach().requires_grad_(True)
            margins = self.objective.margins_at(theta, self.objective.X[rows] + delta, self.objective.y[rows])
            gradient: Tensor = torch.autograd.grad((weights * margins).sum(), theta)[0]
        return gradient
