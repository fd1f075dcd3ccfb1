"""A network trained inside its lazy ball, and the smallest gradient step that flips its predictions.

A change in this file makes every finished cell of the family stale: claims and drawings live in `lazy_claims` and
`lazy_figures`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Generator

from brittle.attacks import GradientStep
from brittle.data import Data
from brittle.experiments.cell import Cell, Point
from brittle.experiments.images import zeros_and_ones
from brittle.networks import LazyInit, TwoLayer
from brittle.training import LazyTraining as LazyTraining
from brittle.training import Steps
from brittle.training.stops import RunStatus, Stop

EPOCHS = 10  # over which the fall of the loss is taken: that of a single one is noisy


@dataclass(frozen=True)
class LossConverged(Stop):
    """The loss fell by less than this share in an epoch, on average since the last recorded point of the path."""

    value: float  # the share
    epoch: int  # steps

    def __str__(self) -> str:
        return f"converged={self.value:g}"

    def reached(self, look: RunStatus, path: Sequence[Any]) -> bool:
        before = [point for point in path if point.steps <= look.steps - EPOCHS * self.epoch]
        if not before:
            return False
        fallen: float = (before[-1].log_loss - look.log_loss) / (look.steps - before[-1].steps)
        return fallen * self.epoch < self.value


@dataclass(frozen=True, kw_only=True)
class LazyCell(Cell):
    """One network inside its lazy ball, and the gradient steps that flip it.

    Networks on examples of unit norm have no biases, the others have (appendix A). Training ends at the ball's edge,
    or where the loss hardly falls any more. The setting `code` is what the paper's own code does: the first iterate
    outside the ball, misclassified examples counted as 0.
    """

    family = "wang2022/lazy"
    data: str  # mnist or digits, of which 0 and 1 are taken
    steps: int  # at most
    stall: float = 0.005  # the loss has converged where it falls by a smaller share in an epoch
    points: int  # test examples that are attacked
    histogram: bool = False  # keep every example's numbers
    setting: Literal["text", "code"] = "text"  # of the paper's text, or of its code
    side: int  # of a picture: d = side²
    width: int  # m
    radius: float  # C0
    seed: int  # of start, batches and attacked examples
    unit: bool  # examples of unit norm

    def measure(self) -> Point:
        rng = Generator().manual_seed(self.seed)
        data = zeros_and_ones(self.data, self.side, self.unit)
        as_coded = self.setting == "code"
        start = LazyInit(biases=not self.unit).draw(data.dim, self.width, rng).to(torch.float32)
        stops = LossConverged(self.stall, max(1, len(data) // LazyTraining.batch)), Steps(self.steps)
        regime = LazyTraining(until=stops, radius=self.radius, inside=not as_coded, precision="float32")
        training = regime.train(start, data, rng)
        network, left = training.network, training.stopped_by == "ball"
        test = data.test
        chosen = test.take(torch.randperm(len(test), generator=rng)[: self.points])
        return {
            "dim": data.dim,
            "taken": training.steps - (left and regime.inside),
            "left": left,
            "converged": str(training.stopped_by) == str(stops[0]),
            "moved": float((network.W - start.W).norm(dim=1).max()) * self.width**0.5,
            "error": 1 - network.accuracy(test.X, test.y),
            **flips(network, chosen, as_coded, self.histogram),
        }

    def cost(self) -> float:
        """As many steps as leaving the ball took: they grow with C0, and with the norms of the examples."""
        d, m = self.side**2, self.width
        leaving = (850 if self.unit else 700 + 2.6 * d) * (self.radius / 10) ** 3
        usual = min(leaving, 11_000)  # by then the loss has converged
        training = min(usual, self.steps) * (6e-9 * m * d + 1e-4)
        return (0.02 if self.data == "digits" else 0.5) + training + self.points * m * 2.5e-7


def flips(network: TwoLayer, data: Data, as_coded: bool, histogram: bool) -> Point:
    """‖δ‖, ‖∇f‖ and η of δ = η∇f(x) with f(x) f(x + δ) < 0: means over the examples that some step flips."""
    outputs = network.logits(data.X).double()
    labels = data.y if as_coded else torch.where(outputs >= 0, 1.0, -1.0).double()
    found = GradientStep().run(network, Data(data.X, labels))
    flipped, norms = found.success, data.X.norm(dim=1)
    numbers = {
        "size": found.norms,
        "relative_size": found.norms / norms,
        "gradient": found.gradient_norms,
        "step": found.step.abs(),
        "relative_step": found.step.abs() / norms,
        "output": outputs.abs(),
    }
    point: Point = {name: float(value[flipped].mean()) for name, value in numbers.items()}
    point |= {"flipped": found.rate, "norm": float(norms.mean())}
    kept = ("relative_size", "gradient", "step") if histogram else ()
    return point | {f"all_{name}": [float(f"{x:.5g}") for x in numbers[name][flipped].tolist()] for name in kept}
