"""One gradient step flips a lazy network (Theorem 3.1): its exponents, and the part of the proof without constants."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.attacks import first_flip
from brittle.networks import TwoLayer
from brittle.theorems.base import ScalingClaim, Solution, Theorem
from brittle.theorems.comparison import Comparison, Promise, at_least, at_most, promise_at_most
from brittle.theorems.instance import Facts, Instance
from brittle.theorems.scaling import Scaling, fitted
from brittle.theorems.wang2022.ball import APPLIES, EXACTLY, Ball, about_ball, lazy_instance
from brittle.theorems.witness import LARGEST_MARGIN, Witness

OUTPUT = "|f|"
RADIUS_90 = "radius that flips 90 % of the examples"
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


def one_step(network: TwoLayer, X: Tensor) -> OneStep:
    """The smallest gradient step that flips each row."""
    output = network.logits(X)
    gradient = network.logit_gradients(X, output.sign())
    length = gradient.norm(dim=1)
    size = first_flip(network, X, output.sign(), -gradient / length[:, None])
    return OneStep(size, length, output.abs())


def together(steps: Sequence[OneStep]) -> OneStep:
    """The steps of several networks in a row."""
    sizes, gradients, outputs = zip(*((step.size, step.gradient, step.output) for step in steps), strict=True)
    return OneStep(torch.cat(sizes), torch.cat(gradients), torch.cat(outputs))


@dataclass(frozen=True, eq=False)
class OneStepSweep(Facts):
    """The `steps` against the networks of several dimensions `dims`."""

    dims: tuple[int, ...]
    steps: tuple[OneStep, ...]

    def exponent(self, name: str, claimed: float, values: Sequence[float]) -> Scaling:
        """How a quantity with these values grows with the dimension."""
        return fitted(name, "d", claimed, self.dims, values)

    def mean_exponent(self, name: str, claimed: float) -> Scaling:
        """How the mean of one of the named quantities grows."""
        return self.exponent(name, claimed, [float(step.named()[name].mean()) for step in self.steps])


@dataclass(frozen=True)
class Sweep(ScalingClaim):
    """Lazy networks of width ⌈d^2.4⌉ at several dimensions `dims`.

    `radius` is C0; there are `networks` of `examples` each at every dimension, trained for `steps`.
    """

    applies_to: ClassVar = APPLIES

    dims: tuple[int, ...] = (36, 49, 64, 81, 100)
    radius: float = 10.0
    examples: int = 10
    networks: int = 10
    steps: int = 1

    def default(self, rng: Generator) -> Instance:
        """The largest network of the sweep, with what was measured at every dimension as facts."""
        instance, sweep = None, []
        for dim in self.dims:
            width, steps = math.ceil(dim**2.4), []
            for _ in range(self.networks):
                instance = lazy_instance(dim, width, self.radius, self.examples, self.steps, rng)
                steps.append(one_step(instance.two_layer, instance.data.X))
            sweep.append(together(steps))
        assert instance is not None
        return Instance(instance.data, instance.network, OneStepSweep(self.dims, tuple(sweep)))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        ball = Ball(instance, self.radius)
        yield from about_ball(ball)
        yield at_least("width beside d^2.4", ball.width, ball.dim**2.4)

    def witness(self, instance: Instance) -> Witness:
        sizes = one_step(instance.two_layer, instance.data.X).named()
        return Witness({f"mean {name}": float(values.mean()) for name, values in sizes.items()})

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        sweep = instance.known(OneStepSweep)
        return () if sweep is None else self.exponents(sweep)

    @abstractmethod
    def exponents(self, sweep: OneStepSweep) -> tuple[Scaling, ...]:
        """The fitted exponents, beside the claimed ones."""


@dataclass(frozen=True)
class OneStepFlips(Sweep, id="wang2022/3.1"):
    """‖x‖ = 1, max{d^2.4, C3 ln(1/γ)} ≤ m ≤ C4 exp(d^0.24) ⇒ δ = η∇_x f(x), |η| = C2/‖∇f‖², flips x for all W in
    the ball at once, w.p. ≥ 1-γ. So ‖∇f‖ = Ω(√d), η = O(1/d), ‖δ‖ = O(1/√d). C0, C2, C3, C4 are not given.

    `dim` is d for `solve_for`, `gamma` is γ.
    """

    claim: ClassVar = "one gradient step of size O(1/√d) flips every network in the lazy ball"
    unknowns: ClassVar = ("width",)
    note: ClassVar = (
        "section 5.1 prints δ = η∇_w f for ∇_x f; ‖δ‖ ≈ |f|/‖∇f‖ moves with |f|, whose own exponent is fitted too"
    )

    dim: int = 784
    gamma: float = 0.01

    def exponents(self, sweep: OneStepSweep) -> tuple[Scaling, ...]:
        claims = {"‖δ‖": -0.5, "η": -1.0, "‖∇f‖": 0.5, "‖δ‖/|f|": -0.5, OUTPUT: math.nan}
        return tuple(sweep.mean_exponent(name, claimed) for name, claimed in claims.items())

    def solve_for(self, unknown: str) -> Solution:
        """With C3 = C4 = 1, for want of others."""
        if unknown != "width":
            return super().solve_for(unknown)
        least = max(self.dim**2.4, math.log(1 / self.gamma))
        room, given = self.dim**0.24, {"dim": self.dim, "gamma": self.gamma}
        opens = f"C3 = C4 = 1; d^2.4 ≤ exp(d^0.24) holds from d = {first_open_dim():.4g} on (and below 5)"
        if math.log(least) > room:
            why = f"there is none: d^2.4 = {least:.6g} > exp(d^0.24) = {math.exp(room):.6g}"
            return Solution(self.id, unknown, math.nan, math.nan, given, f"{why}; {opens}")
        most = math.exp(room) if room < 700 else math.inf
        return Solution(self.id, unknown, math.ceil(least), most, given, f"d^2.4 ≤ m ≤ exp(d^0.24); {opens}")


def first_open_dim() -> float:
    """The larger root of 2.4 ln d = d^0.24."""
    low, high = 100.0, 1e12
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if 2.4 * math.log(middle) <= middle**0.24 else (middle, high)
    return high


@dataclass(frozen=True)
class NoRobustLazyNetwork(Sweep, id="wang2022/C3.2"):
    """For data on the unit sphere, R = Õ(1/√d): L_R(W) ≥ 0.9 for all W in the ball at once, w.p. ≥ 1-10γ."""

    claim: ClassVar = "no lazy network is robust: at R = Õ(1/√d) its robust error is at least 0.9"
    note: ClassVar = (
        "'for all W' needs an infimum over the ball where the proof writes a supremum; Markov's inequality then "
        "gives 1-10γ as stated. The radius is that of one gradient step, an upper bound on the robust radius"
    )

    def exponents(self, sweep: OneStepSweep) -> tuple[Scaling, ...]:
        radii = [float(step.size.quantile(0.9)) for step in sweep.steps]
        return sweep.exponent(RADIUS_90, -0.5, radii), sweep.mean_exponent(OUTPUT, math.nan)

    def witness(self, instance: Instance) -> Witness:
        radius = float(one_step(instance.two_layer, instance.data.X).size.quantile(0.9))
        return Witness({RADIUS_90: radius, f"{RADIUS_90} times √d": radius * math.sqrt(instance.data.dim)})


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
    """The smallest ρ with ‖∇f(x+δ) - ∇f(x)‖ ≤ ρ‖∇f(x)‖ up to ‖δ‖ = 2|f|/((1-ρ)‖∇f‖); infinite where ρ reaches 1.

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
