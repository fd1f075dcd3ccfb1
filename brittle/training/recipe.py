"""The schedule of vardi2022 section 6 in plain PyTorch: the reference that gradient flow is measured against."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.ending import Status
from brittle.common.errors import require_count, require_positive, require_value
from brittle.common.parts import option
from brittle.data.base import Data
from brittle.networks.base import Network
from brittle.training.base import BATCH, Trainer
from brittle.training.descent import LARGEST_LOG_LOSS, Batches, check_finite
from brittle.training.losses import LOSS, Exponential, LossFunction
from brittle.training.objective import ModuleObjective, margins_of
from brittle.training.run import Run, RunEnded
from brittle.training.stops import UNTIL, Loss, Stop


@dataclass(frozen=True)
class SgdSchedule(Trainer):
    """SGD with batches of 5,000 and a rate of 1e-5 that grows by 1.1 every 100 iterations, until the loss is 1e-30.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> rng = torch.Generator().manual_seed(0)
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=10, rng=rng)
        >>> bt.training.SgdSchedule(until=bt.training.Steps(300)).train(start, data, rng).steps
        300
    """

    name: ClassVar = "recipe"

    until: Stop | tuple[Stop, ...] = field(default_factory=lambda: Loss(1e-30), metadata=UNTIL)
    loss: LossFunction = field(default_factory=Exponential, metadata=LOSS)
    rate: float = field(default=1e-5, metadata=option("Size of the first steps.", check=require_positive))
    growth: float = field(
        default=1.1, metadata=option("Factor of the rate, every --every steps.", check=require_positive)
    )
    every: int = field(
        default=100, metadata=option("Steps from one raise of the rate to the next.", check=require_count)
    )
    batch: int = field(default=5000, metadata=BATCH)

    def begin(self, network: Network, data: Data, rng: Generator | None) -> Run:
        objective = ModuleObjective(network, data)
        if self.batch >= len(data):
            return SgdScheduleRun(objective, self, None)
        rng = require_value(rng, f"{len(data)} examples make batches of {self.batch}: give it a torch.Generator")
        return SgdScheduleRun(objective, self, Batches(len(data), self.batch, rng))


class SgdScheduleRun(Run):
    """The module's own parameters, changed in place; θ is made from them only when it is asked for."""

    def __init__(self, objective: ModuleObjective, recipe: SgdSchedule, batches: Batches | None) -> None:
        self.module = objective.module
        self.parameters: list[Tensor] = [p for p in self.module.parameters() if p.requires_grad]
        super().__init__(objective)
        self.recipe, self.batches, self.X, self.y = recipe, batches, objective.X, objective.y
        self.rng = None if batches is None else batches.rng

    @property
    def theta(self) -> Tensor:
        return torch.cat([p.detach().reshape(-1) for p in self.parameters])

    @theta.setter
    def theta(self, theta: Tensor) -> None:
        with torch.no_grad():
            parts = torch.split(theta, [p.numel() for p in self.parameters])
            for p, part in zip(self.parameters, parts, strict=True):
                p.copy_(part.view_as(p))

    def scalars(self) -> list[float]:
        return [] if self.batches is None else [float(self.batches.position), float(self.fresh)]

    def restore(self, scalars: list[float]) -> None:
        if self.batches is not None:
            self.batches.position, self.fresh = int(scalars[0]), bool(scalars[1])

    def arrays(self) -> dict[str, Tensor]:
        return {} if self.batches is None else {"order": self.batches.order}

    def restore_arrays(self, arrays: dict[str, Tensor]) -> None:
        if self.batches is not None:
            self.batches.order = arrays["order"]

    def measure(self) -> None:
        if self.batches is None:
            self.evaluations += self.steps == 0
            self._evaluate(self.X, self.y)
        else:
            self._judge(self.objective.margins(self.theta))

    def _evaluate(self, X: Tensor, y: Tensor) -> None:
        q, soft = margins_of(self.module(X), y)
        if isinstance(self.recipe.loss, Exponential):
            values = torch.exp(-soft)
        else:
            values = torch.nn.functional.softplus(-soft)
        total = values.sum() if self.recipe.loss.reduction == "sum" else values.mean()
        self.gradients = torch.autograd.grad(total, self.parameters)
        self.margins, self.log_loss = q.detach(), _log(total.item())
        self.log_loss_sum = self.log_loss + (math.log(len(y)) if self.recipe.loss.reduction == "mean" else 0.0)

    def _judge(self, q: Tensor) -> None:
        self.margins, self.log_loss = q, self.recipe.loss.total(q)
        self.log_loss_sum = float(torch.logsumexp(self.recipe.loss.log_values(q), 0))

    def step(self) -> None:
        raises = self.steps // self.recipe.every
        rate = self.recipe.rate * math.exp(min(raises * math.log(self.recipe.growth), LARGEST_LOG_LOSS))
        if self.batches is not None:
            index = self.batches.next()
            self._evaluate(self.X[index], self.y[index])
        before, used = (self.log_loss, self.log_loss_sum, self.margins), self.gradients
        with torch.no_grad():
            torch._foreach_add_(self.parameters, used, alpha=-rate)
        self.fresh = self.batches is None or self.batches.epoch_ends
        if self.batches is None:
            self._evaluate(self.X, self.y)
        elif self.fresh:
            self._judge(self.objective.margins(self.theta))
        if not math.isfinite(self.log_loss):
            self._step_back(rate, used)
            found, (self.log_loss, self.log_loss_sum, self.margins) = self.log_loss, before
            check_finite(self.margins, rate, self.steps, found)
            raise RunEnded(
                Status.STALLED, f"the loss underflowed after step {self.steps}: use the regime 'flow' to go on"
            )
        self.evaluations += 1
        self.steps += 1

    def _step_back(self, rate: float, used: tuple[Tensor, ...]) -> None:
        with torch.no_grad():
            torch._foreach_add_(self.parameters, used, alpha=rate)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf if value == 0 else math.nan
