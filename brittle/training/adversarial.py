"""Projected adversarial training (wang2022 Algorithm 1)."""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Generator, Tensor

from brittle.attacks.pgd import iterate_pgd
from brittle.common.ending import Status
from brittle.common.errors import require_count, require_positive, require_value
from brittle.common.parts import option
from brittle.data.base import Data
from brittle.geometry import into_ball, unit_rows
from brittle.networks.base import Network
from brittle.networks.deep import as_two_layer
from brittle.networks.two_layer import TwoLayer
from brittle.training.base import BALL, BATCH, RATE, TRAINED_BIASES, Trainer
from brittle.training.descent import Batches, check_finite
from brittle.training.losses import LOSS, Logistic, LossFunction
from brittle.training.objective import TwoLayerObjective
from brittle.training.run import Run, RunEnded
from brittle.training.stops import UNTIL, Steps, Stop


@dataclass(frozen=True)
class Adversarial(Trainer):
    """Every step is an epoch: PGD examples within `budget`, SGD on them, hidden weights projected to the ball.

    The ball is ‖w_s - w_s(0)‖ ≤ radius/√m, as in `LazyTraining`, None for no projection; it is applied per `epoch` (as
    printed) or per `step`. Ends when the robust training accuracy has not risen for `patience` epochs, and returns the
    best network. With `normalised=False` the inner steps use the raw gradient of the loss.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> rng = torch.Generator().manual_seed(0)
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=10, rng=rng)
        >>> regime = bt.training.Adversarial(budget=0.1, rate=0.1, inner_steps=5, until=bt.training.Steps(60))
        >>> trained = regime.train(start, data, rng)
        >>> trained.robust_accuracy <= trained.accuracy
        True
    """

    name: ClassVar = "adversarial"

    until: Stop | tuple[Stop, ...] = field(default_factory=lambda: Steps(1000), metadata=UNTIL)
    budget: float = field(default=0.2, metadata=option("ℓ2 norm R of the perturbations.", check=require_positive))
    radius: float | None = field(default=None, metadata=BALL)
    loss: LossFunction = field(default_factory=lambda: Logistic("sum"), metadata=LOSS)
    rate: float = field(default=0.01, metadata=RATE)
    batch: int = field(default=128, metadata=BATCH)
    inner_steps: int = field(default=100, metadata=option("Steps T of PGD.", check=require_count))
    inner_rate: float | None = field(
        default=None, metadata=option("Step size of PGD; 2.5 R/T unless given.", check=require_positive)
    )
    normalised: bool = field(default=True, metadata=option("PGD along unit gradients, or else along the loss's own."))
    project: Literal["epoch", "step"] = field(default="epoch", metadata=option("How often back into the ball."))
    patience: int = field(
        default=3, metadata=option("Epochs in which robust accuracy may fail to rise.", check=require_count)
    )
    biases: bool | None = field(default=None, metadata=TRAINED_BIASES)

    @property
    def inner_length(self) -> float:
        """α = 2.5 R/T2 unless given."""
        return self.inner_rate if self.inner_rate is not None else 2.5 * self.budget / self.inner_steps

    def begin(self, network: Network, data: Data, rng: Generator | None) -> Run:
        network = as_two_layer(network, "projected adversarial training")
        rng = require_value(rng, "adversarial training draws batches at random: give it a torch.Generator")
        return AdversarialRun(network, data, self, Batches(len(data), min(self.batch, len(data)), rng))


def perturb_examples(network: Network, data: Data, regime: Adversarial) -> Tensor:
    """Examples within the budget that PGD makes the network doubt most (lines 3-6): the last iterates."""

    def stride(points: Tensor, gradients: Tensor) -> Tensor:
        if regime.normalised:
            return regime.inner_length * unit_rows(gradients)
        slopes = regime.loss.log_slopes(network.margins(points, data.y).to(points)).exp()
        return regime.inner_length * slopes[:, None] * gradients

    def back(delta: Tensor) -> Tensor:
        return into_ball(delta, regime.budget)

    iterates = iterate_pgd(network, data.X, data.y, regime.inner_steps, stride, back)
    (last,) = deque(iterates, maxlen=1)
    return data.X + last


class AdversarialRun(Run):
    """θ with the PGD examples against it; a step trains on them and makes new ones."""

    objective: TwoLayerObjective

    def __init__(self, network: TwoLayer, data: Data, regime: Adversarial, batches: Batches) -> None:
        super().__init__(TwoLayerObjective(network, data, "first", regime.biases))
        self.data, self.regime, self.batches, self.rng = data, regime, batches, batches.rng
        self.best, self.best_accuracy, self.waited = self.theta, -1.0, 0

    def scalars(self) -> list[float]:
        return [self.best_accuracy, float(self.waited), self.robust_accuracy or 0.0]

    def restore(self, scalars: list[float]) -> None:
        self.best_accuracy, self.waited, self.robust_accuracy = scalars[0], int(scalars[1]), scalars[2]

    def arrays(self) -> dict[str, Tensor]:
        return {"best": self.best}

    def restore_arrays(self, arrays: dict[str, Tensor]) -> None:
        self.best = arrays["best"]

    def measure(self) -> None:
        """Margins on the clean examples, robust accuracy on the perturbed ones."""
        self.margins = self.objective.margins(self.theta)
        self.log_loss = self.regime.loss.total(self.margins)
        self.log_loss_sum = float(torch.logsumexp(self.regime.loss.log_values(self.margins), 0))
        self.attacked = perturb_examples(self.network(), self.data, self.regime)
        self.robust_accuracy = self.network().accuracy(self.attacked, self.data.y)

    def step(self) -> None:
        self._remember()
        theta = self._epoch(self.theta)
        check_finite(theta, self.regime.rate, self.steps, self.regime.loss.total(self.objective.margins(theta)))
        self.theta = theta
        self.steps += 1
        self.measure()

    def _remember(self) -> None:
        """Keep the most robust network so far; end where it has not improved for long enough."""
        assert self.robust_accuracy is not None
        if self.robust_accuracy > self.best_accuracy:
            self.best, self.best_accuracy, self.waited = self.theta, self.robust_accuracy, 0
            return
        self.waited += 1
        if self.waited >= self.regime.patience:
            self.theta, self.fresh = self.best, False
            raise RunEnded(
                Status.REACHED, f"robust accuracy no longer rises above {self.best_accuracy:.4g}", "robust_accuracy"
            )

    def _epoch(self, theta: Tensor) -> Tensor:
        """Lines 7-11: batches of perturbed examples, then the projection."""
        objective = TwoLayerObjective(
            self.objective.network(theta), Data(self.attacked, self.data.y), "first", self.objective.trains_biases
        )
        for _ in range(self.batches.per_epoch):
            at = objective.evaluate(theta, self.regime.loss, self.batches.next())
            theta = torch.add(theta, at.direction, alpha=self.regime.rate * math.exp(at.log_loss))
            self.evaluations += 1
            if self.regime.project == "step":
                theta = self._projected(theta)
        return self._projected(theta)

    def _projected(self, theta: Tensor) -> Tensor:
        if self.regime.radius is None:
            return theta
        theta = theta.clone()
        W, W0 = self.objective.split(theta)[0], self.objective.split(self.objective.start)[0]
        W.copy_(W0 + into_ball(W - W0, self.regime.radius / math.sqrt(self.objective.width)))
        return theta
