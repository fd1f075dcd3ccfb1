"""Training that stays near its initialisation (wang2022 5.1)."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Generator, Tensor

from brittle.common.ending import Status
from brittle.common.errors import require_value
from brittle.common.parts import option
from brittle.data.base import Data
from brittle.networks.base import Network
from brittle.networks.deep import as_two_layer
from brittle.training.base import BALL, BATCH, PRECISION, RATE, TRAINED_BIASES, Trainer
from brittle.training.descent import Batches, BatchRun, GradientDescent, check_finite
from brittle.training.flow import TYPES
from brittle.training.losses import LOSS, Logistic, LossFunction
from brittle.training.objective import TwoLayerObjective
from brittle.training.run import Run, RunEnded
from brittle.training.stops import UNTIL, Steps, Stop


@dataclass(frozen=True)
class LazyTraining(Trainer):
    """SGD on the first layer that ends when max_s ‖w_s - w_s(0)‖ > radius/√m and returns the last iterate inside.

    The check is made in every `step`, or at the end of every `epoch`; with `inside=False` the first iterate outside
    is returned (the paper's own code).

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> rng = torch.Generator().manual_seed(0)
        >>> data = bt.data.Sphere(dim=20).sample(10, rng)
        >>> start = bt.networks.LazyInit().draw(20, width=100, rng=rng)
        >>> trained = bt.training.LazyTraining(radius=10.0, until=bt.training.Accuracy(1.0)).train(start, data, rng)
        >>> bool((trained.network.W - start.W).norm(dim=1).max() <= 10 / 100**0.5)
        True
    """

    name: ClassVar = "lazy"

    until: Stop | tuple[Stop, ...] = field(default_factory=lambda: Steps(1_000_000), metadata=UNTIL)
    radius: float = field(default=10.0, metadata=BALL)
    loss: LossFunction = field(default_factory=Logistic, metadata=LOSS)
    rate: float = field(default=0.1, metadata=RATE)
    batch: int = field(default=128, metadata=BATCH)
    check: Literal["step", "epoch"] = field(default="step", metadata=option("How often to look at the ball."))
    inside: bool = field(
        default=True, metadata=option("End with the last iterate inside the ball, or else with the first outside.")
    )
    biases: bool | None = field(default=None, metadata=TRAINED_BIASES)
    precision: Literal["float64", "float32"] = field(default="float64", metadata=PRECISION)

    def begin(self, network: Network, data: Data, rng: Generator | None) -> Run:
        network = as_two_layer(network, "lazy training")
        rng = require_value(rng, "lazy training draws batches at random: give it a torch.Generator")
        objective = TwoLayerObjective(network.to(TYPES[self.precision]), data, "first", self.biases)
        return LazyTrainingRun(objective, self, Batches(len(data), min(self.batch, len(data)), rng))


def farthest(objective: TwoLayerObjective, theta: Tensor) -> float:
    """max_s ‖w_s - w_s(0)‖."""
    return float((objective.split(theta)[0] - objective.split(objective.start)[0]).norm(dim=1).max())


class LazyTrainingRun(BatchRun):
    """Stochastic steps inside the ball round the start, in place wherever a step cannot leave it.

    A step moves a row of W by at most rate·max|v|·Σ_i |ℓ'(q_i)|·‖x_i‖ and its rounding. `moved` sums these bounds, and
    max_s ‖w_s - w_s(0)‖ is measured only where the sum is beyond the ball: the ends are those of a check in every step.
    """

    objective: TwoLayerObjective

    def __init__(self, objective: TwoLayerObjective, lazy: LazyTraining, batches: Batches) -> None:
        steps = GradientDescent(loss=lazy.loss, rate=lazy.rate, batch=batches.size, layers="first", biases=lazy.biases)
        super().__init__(objective, steps, batches)
        self.lazy, self.ball = lazy, lazy.radius / math.sqrt(objective.width)
        self.inside, self.moved = self.theta, 0.0
        self.owned = False  # whether θ may be written into
        W, _, v, _ = objective.split(objective.start)
        epsilon = torch.finfo(W.dtype).eps
        self.rate = lazy.rate / (batches.size if lazy.loss.reduction == "mean" else 1)
        self.strides = objective.X.norm(dim=1) * v.abs().max() * (1 + batches.size * epsilon)
        self.rounding = epsilon * (float(W.norm(dim=1).max()) + self.ball)

    def scalars(self) -> list[float]:
        return [*super().scalars(), self.moved]

    def restore(self, scalars: list[float]) -> None:
        super().restore(scalars[:-1])
        self.moved = scalars[-1]

    def arrays(self) -> dict[str, Tensor]:
        return super().arrays() | ({"inside": self.inside} if self.lazy.check == "epoch" else {})

    def restore_arrays(self, arrays: dict[str, Tensor]) -> None:
        super().restore_arrays(arrays)
        self.inside = arrays.get("inside", self.theta)

    def snapshot(self) -> Tensor:
        self.owned = False
        return self.theta

    def step(self) -> None:
        before = self.theta
        self.theta = self._descended()
        self.steps += 1
        self.evaluations += 1
        self.fresh = False
        if self.lazy.check == "epoch" and not self.batches.epoch_ends:
            return
        if self.moved > self.ball:
            self.moved = farthest(self.objective, self.theta)
        if self.moved > self.ball:
            self._leave(self.inside if self.lazy.check == "epoch" else before)
        if self.lazy.check == "epoch":
            self.inside = self.snapshot()

    def _descended(self) -> Tensor:
        """θ after the next batch: the same tensor if the step cannot leave the ball, another one if it might."""
        theta = self.theta
        batch, most = self.batches.next(), self.objective.chunk
        chunks = (batch,) if len(batch) <= most else torch.split(batch, most)
        self.moved += self.rounding
        for rows in chunks:
            _, q, add = self.objective.forward(self.theta, rows)
            weights = self.lazy.loss.log_slopes(q).exp_().mul_(self.rate)
            self.moved += float(weights @ self.strides[rows])
            if theta is self.theta and not (self.owned and len(chunks) == 1 and self.moved <= self.ball):
                theta = theta.clone()
            add(weights, theta)
        if not self.moved <= self.ball:
            check_finite(theta, self.lazy.rate, self.steps)
        self.owned = True
        return theta

    def _leave(self, inside: Tensor) -> None:
        if self.lazy.inside:
            self.theta = inside
        raise RunEnded(
            Status.REACHED, f"a weight moved by {self.moved:.6g}, out of the ball of {self.ball:.6g}", "ball"
        )
