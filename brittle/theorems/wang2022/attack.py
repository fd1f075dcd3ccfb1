"""One gradient step against a network: its sizes, and the part of the proof of Theorem 3.1 without constants."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, TypeVar

import torch
from torch import Generator, Tensor

from brittle.attacks import first_flip
from brittle.networks import TwoLayer
from brittle.theorems.base import Theorem
from brittle.theorems.comparison import LARGEST_MARGIN, Comparison, Promise, Witness, at_least, at_most, promise_at_most
from brittle.theorems.instance import Instance
from brittle.theorems.wang2022.ball import EXACTLY, lazy_instance

OUTPUT = "|f|"
AFTER = "margin after δ over |f(x)|"
CHANGED, MOVED = "predictions that change", "largest relative change of the distance to a flip"


@dataclass(frozen=True, eq=False)
class OneStep:
    """The smallest step δ = ηg along g = ±∇f that flips each example: `size` ‖δ‖, `gradient` ‖∇f‖ and `output` |f|,
    (n,) each."""

    size: Tensor
    gradient: Tensor
    output: Tensor

    @property
    def rate(self) -> Tensor:
        """|η| = ‖δ‖/‖∇f‖."""
        return self.size / self.gradient

    @property
    def per_output(self) -> Tensor:
        """‖δ‖/|f|."""
        return self.size / self.output

    def named(self) -> dict[str, Tensor]:
        """All of it, under the papers' symbols."""
        symbols = {"‖δ‖": self.size, "η": self.rate, "‖∇f‖": self.gradient}
        return {**symbols, OUTPUT: self.output, "‖δ‖/|f|": self.per_output}


Step = TypeVar("Step", bound=OneStep)


def one_step(network: TwoLayer, X: Tensor) -> OneStep:
    """The smallest gradient step that flips each row."""
    output = network.logits(X)
    gradient = network.logit_gradients(X, output.sign())
    length = gradient.norm(dim=1)
    size = first_flip(network, X, output.sign(), -gradient / length[:, None])
    return OneStep(size, length, output.abs())


def together(steps: Sequence[Step]) -> Step:
    """The steps of several networks in a row."""
    kind = type(steps[0])
    return kind(*(torch.cat([getattr(step, field.name) for step in steps]) for field in fields(kind)))


@dataclass(frozen=True)
class OneStepWithoutConstants(Theorem, id="wang2022/3.1-proof"):
    """If ρ = sup ‖∇f(x+tδ) - ∇f(x)‖/‖∇f(x)‖ < 1 over the segment t in [0, 1], then δ = η∇f(x) with
    η = -2f(x)/((1-ρ)‖∇f(x)‖²) takes f(x) to the other side: y f(x+δ) ≤ -|f(x)|, y = sign f(x). No probability.

    Default: `examples` in R^`dim` and a lazy network of width `width`, C0 = `radius`.
    """

    claim: ClassVar = "where the gradient changes by less than itself, the step η = -2f/((1-ρ)‖∇f‖²) flips"
    applies_to: ClassVar = "any two-layer ReLU network and any examples"
    note: ClassVar = (
        "the paper takes the supremum over a ball; its integral only meets the segment, where it is exact. "
        "The displayed η̃ writes ‖∇f(x+δ)‖ - ‖f(x)‖ for ‖∇f(x+δ) - ∇f(x)‖"
    )

    dim: int = 3000
    width: int = 2000
    radius: float = 1.0
    examples: int = 5

    def default(self, rng: Generator) -> Instance:
        return lazy_instance(self.dim, self.width, self.radius, self.examples, 2, rng)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        network, X = instance.two_layer, instance.data.X
        yield at_least("smallest |f(x)|", float(network.logits(X).abs().min()), 1e-300)
        gradient = network.logit_gradients(X, torch.ones(len(X), dtype=torch.float64))
        yield at_least("smallest ‖∇f(x)‖", float(gradient.norm(dim=1).min()), 1e-300)
        yield at_most("ρ on the segment", max(segment_change(network, x) for x in X), 1 - EXACTLY)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(AFTER, -1.0), promise_at_most(LARGEST_MARGIN, 0.0, tolerance=0.0)]

    def witness(self, instance: Instance) -> Witness:
        network, X = instance.two_layer, instance.data.X
        output = network.logits(X)
        gradient = network.logit_gradients(X, torch.ones(len(X), dtype=torch.float64))
        rho = torch.tensor([segment_change(network, x) for x in X], dtype=torch.float64)
        eta = -2 * output / ((1 - rho) * gradient.square().sum(1))
        D = eta[:, None] * gradient
        after = float((network.logits(X + D) / output).max())
        measures = {AFTER: after, "largest ρ": float(rho.max()), "largest |η|": float(eta.abs().max())}
        return Witness(measures, D, X, output.sign())


def segment_change(network: TwoLayer, x: Tensor) -> float:
    """The smallest ρ with ‖∇f(x+δ) - ∇f(x)‖ ≤ ρ‖∇f(x)‖ up to ‖δ‖ = 2|f|/((1-ρ)‖∇f‖); infinite where ρ passes 7/8.

    Along the ray the gradient changes at the kinks only: sort them, and add up the neurons that they switch.
    """
    z = network.preactivations(x[None])[0]
    output, active = float(z.relu() @ network.v + network.c), z > 0
    gradient = (active * network.v) @ network.W
    length = float(gradient.norm())
    if output == 0 or length == 0:
        return math.inf
    speed = network.W @ gradient * (-math.copysign(1 / length, output))
    kinks = torch.where((speed != 0) & (active != (speed > 0)), -z / speed, torch.inf)
    nearest = 2 * abs(output) / length
    order = kinks.argsort()
    order = order[: max(1, int((kinks <= 8 * nearest).sum()))]
    switched = torch.where(active[order], -1.0, 1.0) * network.v[order]
    changes = (switched[:, None] * network.W[order]).cumsum(0).norm(dim=1).cummax(0).values / length
    rho = torch.cat([torch.zeros(1, dtype=changes.dtype), changes])
    ends = nearest / (1 - rho).clamp(min=1e-12)
    beyond = torch.cat([kinks[order], torch.tensor([8 * nearest], dtype=kinks.dtype)])
    reached = (rho < 1) & (ends <= beyond)
    return float(rho[reached.to(torch.uint8).argmax()]) if bool(reached.any()) else math.inf


@dataclass(frozen=True)
class Cone(Theorem, id="wang2022/cone"):
    """f(x; rW) = r f(x; W) for r > 0: scaling the first layer changes no prediction and no distance to a flip, so 3.1
    holds on the cone {W: rW in the ball for some r > 0}.

    Default: `examples` in R^`dim` and a lazy network of width `width`; `scale` is r.
    """

    claim: ClassVar = "positive rescaling of a lazy network changes no prediction and no robustness"
    applies_to: ClassVar = "a two-layer ReLU network without biases"

    dim: int = 200
    width: int = 2000
    scale: float = 7.5
    examples: int = 20

    def default(self, rng: Generator) -> Instance:
        return lazy_instance(self.dim, self.width, 1.0, self.examples, 2, rng)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        network = instance.two_layer
        yield at_least("scale r", self.scale, 1e-300)
        yield at_most("largest bias", float(torch.cat([network.b, network.c[None]]).abs().max()), 0)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(CHANGED, 0.0, tolerance=0.0), promise_at_most(MOVED, 1e-9)]

    def witness(self, instance: Instance) -> Witness:
        network, X = instance.two_layer, instance.data.X
        scaled = TwoLayer(self.scale * network.W, network.b, network.v)
        changed = int((network.predict(X) != scaled.predict(X)).sum())
        before, after = one_step(network, X).size, one_step(scaled, X).size
        return Witness({CHANGED: changed, MOVED: float(((after - before).abs() / before).max())})
