"""Gradient descent, with or without batches, on the loss itself."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Generator, Tensor

from brittle.common.ending import Status
from brittle.common.errors import require_not_negative, require_value
from brittle.common.parts import option
from brittle.data.base import Data
from brittle.networks.base import Network
from brittle.training.base import BATCH, LAYERS, RATE, TRAINED_BIASES, Trainer
from brittle.training.losses import LOSS, Logistic, LossFunction
from brittle.training.objective import Evaluation, Objective, objective_for
from brittle.training.run import Run, RunEnded
from brittle.training.stops import UNTIL, Loss, Steps, Stop

EPOCHS_PER_POINT = 10  # of the path, where nothing but the path asks for it
LARGEST_LOG_LOSS = 700.0  # e^700 is about the largest float64


@dataclass(frozen=True)
class GradientDescent(Trainer):
    """θ ← θ - rate·∇(L + (decay/2)‖θ_part‖²); without `batch` on all examples at once.

    `decay_on` is the part that is regularised: the first layer's weights, the first layer with its biases, or all;
    with `squared=False` the penalty is decay·‖θ_part‖ (melamed2023's own scripts).

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=10, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.GradientDescent(rate=0.5, until=bt.training.Accuracy(1.0)).train(start, data)
        >>> trained.accuracy, trained.status
        (1.0, <Status.REACHED: 'reached'>)
    """

    name: ClassVar = "descent"

    until: Stop | tuple[Stop, ...] = field(default_factory=lambda: (Loss(0.01), Steps(100_000)), metadata=UNTIL)
    loss: LossFunction = field(default_factory=Logistic, metadata=LOSS)
    rate: float = field(default=0.1, metadata=RATE)
    batch: int | None = field(default=None, metadata=BATCH)
    layers: Literal["all", "first"] = field(default="all", metadata=LAYERS)
    biases: bool | None = field(default=None, metadata=TRAINED_BIASES)
    decay: float = field(default=0.0, metadata=option("λ of (λ/2)‖W‖².", check=require_not_negative))
    decay_on: Literal["weights", "first", "all"] = field(
        default="weights", metadata=option("What is kept small: the first layer's weights, that layer, or everything.")
    )
    squared: bool = field(default=True, metadata=option("The penalty is (λ/2)‖W‖², or else λ‖W‖."))

    def begin(self, network: Network, data: Data, rng: Generator | None) -> Run:
        objective = objective_for(network, data, self.layers, self.biases)
        if self.batch is None or self.batch >= len(data):
            return DescentRun(objective, self)
        rng = require_value(rng, "descent with batches draws them at random: give it a torch.Generator")
        return BatchRun(objective, self, Batches(len(data), self.batch, rng))


def take_step(theta: Tensor, at: Evaluation, descent: GradientDescent, objective: Objective) -> Tensor:
    """θ after one step from an evaluation there."""
    loss = math.exp(at.log_loss)
    if descent.decay == 0:
        return torch.add(theta, at.direction, alpha=descent.rate * loss)
    after = theta.clone()
    for part in objective.part(descent.decay_on):
        norm = 1.0 if descent.squared else max(float(theta[part].norm()), 1e-300)
        after[part] *= 1 - descent.rate * descent.decay / norm
    return after.add_(at.direction, alpha=descent.rate * loss)


def check_finite(theta: Tensor, rate: float, steps: int, log_loss: float = 0.0) -> None:
    """End the run where a step was so long that the loss is no number any more."""
    if log_loss < LARGEST_LOG_LOSS and math.isfinite(float(theta.sum())):
        return
    raise RunEnded(
        Status.DIVERGED, f"the loss left the floating-point numbers at step {steps + 1}: rate {rate:g} is too large"
    )


class DescentRun(Run):
    """Full gradients: the one that judges θ is also the next step's."""

    def __init__(self, objective: Objective, descent: GradientDescent) -> None:
        super().__init__(objective)
        self.descent = descent

    def measure(self) -> None:
        self.evaluations += self.steps == 0
        self._arrive(self.theta, self.objective.evaluate(self.theta, self.descent.loss))

    def _arrive(self, theta: Tensor, at: Evaluation) -> None:
        self.theta, self.at, self.margins = theta, at, at.margins
        self.log_loss, self.log_loss_sum = at.log_loss, at.log_loss_sum

    def step(self) -> None:
        theta = take_step(self.theta, self.at, self.descent, self.objective)
        at = self.objective.evaluate(theta, self.descent.loss)
        check_finite(theta, self.descent.rate, self.steps, at.log_loss)
        self._arrive(theta, at)
        self.evaluations += 1
        self.steps += 1


class Batches:
    """Every example once per epoch, in an order of its own; an incomplete last batch is left out."""

    def __init__(self, examples: int, size: int, rng: Generator) -> None:
        self.examples, self.size, self.rng = examples, size, rng
        self.per_epoch = max(1, examples // size)
        self.order = torch.empty(0, dtype=torch.int64)
        self.position = self.per_epoch

    def next(self) -> Tensor:
        if self.position == self.per_epoch:
            self.order = torch.randperm(self.examples, generator=self.rng)
            self.position = 0
        self.position += 1
        return self.order[(self.position - 1) * self.size : self.position * self.size]

    @property
    def epoch_ends(self) -> bool:
        return self.position == self.per_epoch


class BatchRun(Run):
    """Stochastic steps; θ is judged on all examples at the end of every epoch."""

    def __init__(self, objective: Objective, descent: GradientDescent, batches: Batches) -> None:
        super().__init__(objective)
        self.descent, self.batches, self.rng = descent, batches, batches.rng

    def scalars(self) -> list[float]:
        return [float(self.batches.position), float(self.fresh)]

    def restore(self, scalars: list[float]) -> None:
        self.batches.position, fresh = int(scalars[0]), scalars[1]
        self.fresh = bool(fresh)

    def arrays(self) -> dict[str, Tensor]:
        return {"order": self.batches.order}

    def restore_arrays(self, arrays: dict[str, Tensor]) -> None:
        self.batches.order = arrays["order"]

    def may_measure(self, goal: bool) -> bool:
        """At the end of an epoch, since it takes all examples; for the path alone at the end of every tenth."""
        return self.steps % (self.batches.per_epoch * (1 if goal else EPOCHS_PER_POINT)) == 0

    def measure(self) -> None:
        self.margins = self.objective.margins(self.theta)
        self.log_loss = self.descent.loss.total(self.margins)
        self.log_loss_sum = float(torch.logsumexp(self.descent.loss.log_values(self.margins), 0))

    def step(self) -> None:
        at = self.objective.evaluate(self.theta, self.descent.loss, self.batches.next())
        theta = take_step(self.theta, at, self.descent, self.objective)
        check_finite(theta, self.descent.rate, self.steps, at.log_loss)
        self.theta = theta
        self.evaluations += 1
        self.steps += 1
        self.fresh = False
