"""Projected adversarial training in a ball round the start, and the robust accuracy that it leaves.

A change in this file makes every finished cell of the family stale: claims and drawings live in `robust_figures`.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator

from brittle.attacks import PGD
from brittle.experiments.cell import Cell, Point
from brittle.experiments.images import zeros_and_ones
from brittle.networks import LazyInit
from brittle.training import Adversarial, Steps


@dataclass(frozen=True, kw_only=True)
class RobustCell(Cell):
    """One network after projected adversarial training, and its accuracy under attack."""

    family = "wang2022/robust"
    data: str  # mnist or digits, of which 0 and 1 are taken
    project: Literal["epoch", "step"] = "epoch"  # how often the weights are pulled back into the ball
    patience: int = 5  # epochs without a gain, after which training ends
    examples: int  # to train on, 0 for all
    batch: int  # examples in a step of SGD
    rate: float  # of SGD
    points: int  # test examples that are attacked
    inner: int  # PGD steps
    epochs: int  # at most
    side: int  # of a picture: d = side²
    width: int  # m
    radius: float  # V, by which a weight may move
    budget: float  # ‖δ‖
    seed: int  # of examples, start, batches and attacked examples

    def measure(self) -> Point:
        rng = Generator().manual_seed(self.seed)
        data = zeros_and_ones(self.data, self.side, True)
        test = data.test
        some = data.take(torch.randperm(len(data), generator=rng)[: self.examples or len(data)])
        start = LazyInit().draw(data.dim, self.width, rng).to(torch.float32)
        training = Adversarial(
            until=Steps(self.epochs),
            budget=self.budget,
            radius=self.radius * math.sqrt(self.width),  # the paper's V is absolute
            inner_steps=self.inner,
            project=self.project,
            rate=self.rate,
            batch=self.batch,
            patience=self.patience,
        ).train(start, some, rng)
        chosen = test.take(torch.randperm(len(test), generator=rng)[: self.points])
        attacked = PGD(budget=self.budget, steps=self.inner).run(training.network, chosen)
        return {
            "dim": data.dim,
            "taken": training.steps,
            "still_rising": training.status == "reached" and training.stopped_by != "robust_accuracy",
            "accuracy": training.network.accuracy(test.X, test.y),
            "robust_training_accuracy": training.robust_accuracy,
            "robust_accuracy": 1 - attacked.rate,
        }

    def cost(self) -> float:
        """Fifteen epochs, and an attack in float64."""
        once = 4.5e-11 * self.width * self.side**2 * self.inner
        return (0.02 if self.data == "digits" else 0.5) + once * (15 * (self.examples or 12_665) + 3 * self.points)
