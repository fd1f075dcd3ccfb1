"""Gradient flow converges in direction to a KKT point (Theorem 2.1, from Lyu and Li, Ji and Telgarsky)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from torch import Generator

from brittle.margin import residual
from brittle.networks import PyTorch
from brittle.settings import Sphere
from brittle.theorems.base import Theorem
from brittle.theorems.comparison import Comparison, Promise, at_most, promise_at_least, promise_at_most
from brittle.theorems.instance import Instance
from brittle.theorems.witness import Witness
from brittle.training import Exponential, Flow, Logistic, LogLoss, LossFunction, PathPoint

FALL = "largest relative fall of γ̃"
BELOW = "smallest min q + ln L over the path"
ABOVE = "largest min q + ln L over the path"
SLACK = 0.1  # an example within 10 % of the margin may carry a multiplier, as in the paper's experiments


@dataclass(frozen=True)
class FlowFindsKKT(Theorem, id="vardi2022/2.1"):
    """L is the sum of the losses. The network is θ(t0); gradient flow is walked on from it to a log-loss of `until`.

    Convergence itself is a statement about t -> ∞: what is promised at every finite time is that γ̃ = -ln L/‖θ‖² does
    not fall and that min q stays within ln n of -ln L. The distance from a KKT point is measured at both ends.

    Default: a network of width `width` on `examples` of the sphere in R^`dim`, with the exponential loss or, where
    `logistic`, the other one. γ̃ may seem to fall by the share `fidelity`, which is the integrator's.
    """

    claim: ClassVar = "once Σ e^{-q} < 1, flow tends to a KKT direction: γ̃ never falls, the loss vanishes, ‖θ‖ grows"
    applies_to: ClassVar = "two-layer networks that classify every example, under gradient flow"
    note: ClassVar = (
        "The paper asks L < 1 for both losses. For the logistic loss with the natural logarithm one wrong example "
        "costs ln 2 = 0.693, so L < ln 2 is what gives q > 0 (with log base 2 the printed 1 is right)."
    )

    dim: int = 60
    examples: int = 6
    width: int = 40
    until: float = -1e3
    logistic: bool = False
    fidelity: float = 1e-4

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        q = instance.two_layer.margins(instance.data.X, instance.data.y)
        total = math.exp(min(700.0, self._loss.total(q)))
        yield at_most("sum of the losses", total, math.nextafter(math.log(2) if self.logistic else 1.0, 0.0))

    @property
    def _loss(self) -> LossFunction:
        return Logistic("sum") if self.logistic else Exponential("sum")

    def bound(self, instance: Instance) -> list[Promise]:
        under = -math.log(2) if self.logistic else 0.0  # ln(1 + e^{-q}) ≥ e^{-q}/2 for q ≥ 0
        return [
            promise_at_most(FALL, 0, tolerance=self.fidelity),
            promise_at_least(BELOW, under, tolerance=1e-6),
            promise_at_most(ABOVE, math.log(len(instance.data)), tolerance=1e-6),
            promise_at_most("log-loss at the end", self.until),
            promise_at_least("‖θ‖ at the end over the beginning", 1),
        ]

    def witness(self, instance: Instance) -> Witness:
        training = Flow(until=LogLoss(self.until), loss=self._loss).train(instance.two_layer, instance.data)
        end = training.network
        falls, gaps = _falls(training.path), [_gap(point) for point in training.path]
        ends = (instance.two_layer, end)
        before, after = (residual(network, instance.data, margin_tolerance=SLACK) for network in ends)
        return Witness(
            {
                FALL: max(falls, default=0.0),
                BELOW: min(gaps),
                ABOVE: max(gaps),
                "log-loss at the end": training.log_loss,
                "‖θ‖ at the end over the beginning": training.path[-1].norm / training.path[0].norm,
                "distance from a KKT point at the beginning": before.stationarity,
                "distance from a KKT point at the end": after.stationarity,
                "complementarity at the end": after.complementarity,
            }
        )

    def default(self, rng: Generator) -> Instance:
        """A network that flow has just brought to Σ e^{-q} < 1."""
        data = Sphere(self.dim).sample(self.examples, rng)
        start = PyTorch().draw(self.dim, self.width, rng)
        training = Flow(until=LogLoss(-1.0), loss=self._loss).train(start, data)
        return Instance(data, training.network)


def _falls(path: tuple[PathPoint, ...]) -> list[float]:
    return [1 - after.smoothed_margin / before.smoothed_margin for before, after in pairwise(path)]


def _gap(point: PathPoint) -> float:
    """min q - (-ln L) = ‖θ‖² (γ - γ̃)."""
    return (point.normalised_margin - point.smoothed_margin) * point.norm**2
