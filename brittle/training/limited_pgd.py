"""Adversarial training within what the data allow: PGD examples with ‖δ_i‖ ≤ κρ_i, by their own loss or by TRADES'.

One ε for all examples asks the impossible of those that have a close rival; ε_i = κρ_i does not. Margins are measured
in units of the median ρ times their slope at the start, so that the logistic loss sees numbers near 1.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from brittle.common.errors import require_count, require_positive
from brittle.common.parts import option
from brittle.data.base import Data
from brittle.geometry import into_ball, unit_rows
from brittle.training.descent import Batches
from brittle.training.guarded import GuardedRun, GuardedTrainer, attainable
from brittle.training.normal_form import TrainingForm
from brittle.training.objective import margins_of

LONG = 2.5  # the way that the steps of PGD can go, in radii of the ball
SMALL = 1e-3  # of the ball: where TRADES' attack begins, because its slope at the example is zero


@dataclass(frozen=True)
class LimitedPGD(GuardedTrainer):
    """SGD on the logistic loss of PGD examples within κρ, by Adam with the schedule and the guard of `GuardedTrainer`.

    PGD takes `inner_steps`. With `trades` the loss is that of TRADES: the loss of the example itself, and so many times
    the divergence between its probabilities and those of the point near it where they differ most.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> rng = torch.Generator().manual_seed(0)
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> hard = bt.training.LimitedPGD(until=bt.training.Steps(20), inner_steps=3).train(start, data, rng).network
        >>> hard.accuracy(data.X, data.y)
        1.0
    """

    name: ClassVar = "limited-pgd"

    target: float = field(default=0.5, metadata=option("κ at the end, in shares of ρ.", check=require_positive))
    inner_steps: int = field(default=10, metadata=option("Steps T of PGD.", check=require_count))
    trades: float | None = field(
        default=None, metadata=option("Weight of TRADES' divergence; its loss only if given.", check=require_positive)
    )

    def guarded(self, form: TrainingForm, data: Data, batches: Batches) -> GuardedRun:
        return LimitedRun(form, data, self, batches)


class LimitedRun(GuardedRun):
    """The examples are attacked anew in every step."""

    regime: LimitedPGD

    def __init__(self, form: TrainingForm, data: Data, regime: LimitedPGD, batches: Batches) -> None:
        super().__init__(form, data, regime, batches)
        self.limits, _ = attainable(self.objective.X, self.objective.y)
        self.unit = float(self.limits.median()) * form.slope

    def share(self, rows: Tensor) -> float:
        """The margin over its slope at the example: what the radius is about where the network is linear."""
        margins, gradients = self.objective.slopes_at(self.theta, self.objective.X[rows], self.objective.y[rows])
        return float((margins / gradients.norm(dim=1).clamp(min=1e-12) / self.limits[rows]).median())

    def ascent(self, rows: Tensor) -> Tensor:
        points = self.objective.X[rows] + self._attacked(rows)
        with torch.enable_grad():
            theta = self.theta.detach().requires_grad_(True)
            gradient: Tensor = torch.autograd.grad(self._loss(theta, rows, points), theta)[0]
        return -gradient

    def _attacked(self, rows: Tensor) -> Tensor:
        """δ with ‖δ‖ ≤ κρ that make the loss large."""
        X, reach = self.objective.X[rows], self.kappa * self.limits[rows]
        delta = torch.zeros_like(X)
        if self.regime.trades is not None:
            delta = SMALL * reach[:, None] * unit_rows(torch.randn(X.shape, generator=self.rng))
        for _ in range(self.regime.inner_steps):
            step = LONG / self.regime.inner_steps * reach[:, None] * unit_rows(self._uphill(rows, X + delta))
            delta = into_ball(delta + step, reach)
        return delta

    def _uphill(self, rows: Tensor, points: Tensor) -> Tensor:
        """Along which the loss rises, at each of the points."""
        if self.regime.trades is None:
            return -self.objective.slopes_at(self.theta, points, self.objective.y[rows])[1]
        with torch.enable_grad():
            points = points.detach().requires_grad_(True)
            far = self._divergence(self.theta.detach(), rows, points).sum()
            gradient: Tensor = torch.autograd.grad(far, points)[0]
        return gradient

    def _loss(self, theta: Tensor, rows: Tensor, points: Tensor) -> Tensor:
        trades = self.regime.trades
        at = points if trades is None else self.objective.X[rows]
        soft = margins_of(self.objective.logits_at(theta, at) / self.unit, self.objective.y[rows])[1]
        loss = functional.softplus(-soft).mean()
        return loss if trades is None else loss + trades * self._divergence(theta, rows, points).mean()

    def _divergence(self, theta: Tensor, rows: Tensor, points: Tensor) -> Tensor:
        """Σ p ln(p/q), p at the example and q at the point, (n,)."""
        p, q = (self._log_probabilities(theta, each) for each in (self.objective.X[rows], points))
        return (p.exp() * (p - q)).sum(1)

    def _log_probabilities(self, theta: Tensor, points: Tensor) -> Tensor:
        """Of every class, (n, C); of one logit for and against."""
        logits = self.objective.logits_at(theta, points) / self.unit
        if logits.ndim == 1 or logits.shape[1] == 1:
            logits = torch.stack([logits.new_zeros(len(points)), logits.reshape(len(points))], 1)
        return functional.log_softmax(logits, dim=1)
