"""One gradient step flips a lazy network (Theorem 3.1): its exponents, and the part of the proof without constants."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.attacks import first_flip
from brittle.networks import TwoLayer
from brittle.theorems.base import (
    LARGEST_MARGIN,
    Comparison,
    Instance,
    Promise,
    Solution,
    Theorem,
    Witness,
    at_least,
    at_most,
    promise_at_most,
)
from brittle.theorems.scaling import Scaling, fitted
from brittle.theorems.wang2022.ball import EXACTLY, Ball, about_ball, lazy_instance
from brittle.theorems.wang2022.output import APPLIES

SIZE, STEP, GRADIENT, OUTPUT, PER_OUTPUT = "‖δ‖", "η", "‖∇f‖", "|f|", "‖δ‖/|f|"
RADIUS_90 = "radius that flips 90 % of the examples"
CHANGED, MOVED = "predictions that change", "largest relative change of the distance to a flip"


def one_step(network: TwoLayer, X: Tensor) -> dict[str, Tensor]:
    """The smallest step along ±∇f that flips each example, with the sizes that it is made of, (n,) each."""
    output = network.logits(X)
    gradient = network.logit_gradients(X, output.sign())
    length = gradient.norm(dim=1)
    size = first_flip(network, X, output.sign(), -gradient / length[:, None])
    per_output = size / output.abs()
    return {SIZE: size, STEP: size / length, GRADIENT: length, OUTPUT: output.abs(), PER_OUTPUT: per_output}


@dataclass(frozen=True)
class Sweep(Theorem):
    """Lazy networks of width ⌈d^2.4⌉ at several dimensions."""

    applies_to: ClassVar = APPLIES
    explicit_constants: ClassVar = False

    dims: tuple[int, ...] = (36, 49, 64, 81, 100)
    radius: float = 10.0  # C0
    examples: int = 10
    networks: int = 10
    steps: int = 1

    def default(self, rng: Generator) -> Instance:
        """The largest network of the sweep, with what was measured at every dimension as facts."""
        instance, rows = None, []
        for dim in self.dims:
            width, sizes = math.ceil(dim**2.4), []
            for _ in range(self.networks):
                instance = lazy_instance(dim, width, self.radius, self.examples, self.steps, rng)
                sizes.append(one_step(instance.two_layer, instance.data.X))
            rows.append({name: torch.cat([each[name] for each in sizes]) for name in sizes[0]})
        assert instance is not None
        return Instance(instance.data, instance.network, {"dims": self.dims, "sweep": rows})

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        ball = Ball(instance, self.radius)
        yield from about_ball(ball)
        yield at_least("width beside d^2.4", ball.width, ball.dim**2.4)

    def bound(self, instance: Instance) -> list[Promise]:
        return []

    def witness(self, instance: Instance) -> Witness:
        sizes = one_step(instance.two_layer, instance.data.X)
        return Witness({f"mean {name}": float(values.mean()) for name, values in sizes.items()})

    def exponent(self, instance: Instance, name: str, claimed: float, values: Sequence[float]) -> Scaling:
        return fitted(name, "d", claimed, instance.facts["dims"], values)


@dataclass(frozen=True)
class OneStepFlips(Sweep):
    """‖x‖ = 1, max{d^2.4, C3 ln(1/γ)} ≤ m ≤ C4 exp(d^0.24) ⇒ δ = η∇_x f(x), |η| = C2/‖∇f‖², flips x for all W in
    the ball at once, w.p. ≥ 1-γ. So ‖∇f‖ = Ω(√d), η = O(1/d), ‖δ‖ = O(1/√d). C0, C2, C3, C4 are not given."""

    id: ClassVar = "wang2022/3.1"
    claim: ClassVar = "one gradient step of size O(1/√d) flips every network in the lazy ball"
    unknowns: ClassVar = ("width",)

    dim: int = 784  # for `solve_for`
    gamma: float = 0.01

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        rows = instance.facts.get("sweep")
        if rows is None:
            return ()
        claims = ((SIZE, -0.5), (STEP, -1.0), (GRADIENT, 0.5), (PER_OUTPUT, -0.5), (OUTPUT, math.nan))
        return tuple(self.exponent(instance, name, claimed, means(rows, name)) for name, claimed in claims)

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

    def note(self) -> str:
        return (
            "section 5.1 prints δ = η∇_w f for ∇_x f; ‖δ‖ ≈ |f|/‖∇f‖ moves with |f|, whose own exponent is fitted too"
        )


def means(rows: list[dict[str, Tensor]], name: str) -> list[float]:
    return [float(row[name].mean()) for row in rows]


def first_open_dim() -> float:
    """The larger root of 2.4 ln d = d^0.24."""
    low, high = 100.0, 1e12
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if 2.4 * math.log(middle) <= middle**0.24 else (middle, high)
    return high


@dataclass(frozen=True)
class NoRobustLazyNetwork(Sweep):
    """For data on the unit sphere, R = Õ(1/√d): L_R(W) ≥ 0.9 for all W in the ball at once, w.p. ≥ 1-10γ."""

    id: ClassVar = "wang2022/C3.2"
    claim: ClassVar = "no lazy network is robust: at R = Õ(1/√d) its robust error is at least 0.9"

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        rows = instance.facts.get("sweep")
        if rows is None:
            return ()
        radii = [float(row[SIZE].quantile(0.9)) for row in rows]
        confounder = self.exponent(instance, OUTPUT, math.nan, means(rows, OUTPUT))
        return self.exponent(instance, RADIUS_90, -0.5, radii), confounder

    def witness(self, instance: Instance) -> Witness:
        size = one_step(instance.two_layer, instance.data.X)[SIZE]
        radius = float(size.quantile(0.9))
        return Witness({RADIUS_90: radius, f"{RADIUS_90} times √d": radius * math.sqrt(instance.data.dim)})

    def note(self) -> str:
        return (
            "'for all W' needs an infimum over the ball where the proof writes a supremum; Markov's inequality then "
            "gives 1-10γ as stated. The radius is that of one gradient step, an upper bound on the robust radius"
        )


@dataclass(frozen=True)
class OneStepWithoutConstants(Theorem):
    """If ρ = sup ‖∇f(x+tδ) - ∇f(x)‖/‖∇f(x)‖ < 1 over the segment t in [0, 1], then δ = η∇f(x) with
    η = -2f(x)/((1-ρ)‖∇f(x)‖²) takes f(x) to the other side: y f(x+δ) ≤ -|f(x)|, y = sign f(x). No probability."""

    id: ClassVar = "wang2022/3.1-proof"
    claim: ClassVar = "where the gradient changes by less than itself, the step η = -2f/((1-ρ)‖∇f‖²) flips"
    applies_to: ClassVar = "any two-layer ReLU network and any examples"

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
        return [
            promise_at_most("margin after δ over |f(x)|", -1.0),
            promise_at_most(LARGEST_MARGIN, 0.0, tolerance=0.0),
        ]

    def witness(self, instance: Instance) -> Witness:
        network, X = instance.two_layer, instance.data.X
        output = network.logits(X)
        gradient = network.logit_gradients(X, torch.ones(len(X), dtype=torch.float64))
        rho = torch.tensor([segment_change(network, x) for x in X], dtype=torch.float64)
        eta = -2 * output / ((1 - rho) * gradient.square().sum(1))
        D = eta[:, None] * gradient
        after = float((network.logits(X + D) / output).max())
        known = {
            "margin after δ over |f(x)|": after,
            "largest ρ": float(rho.max()),
            "largest |η|": float(eta.abs().max()),
        }
        return Witness(known, D, X, output.sign())

    def note(self) -> str:
        return (
            "the paper takes the supremum over a ball; its integral only meets the segment, where it is exact. "
            "The displayed η̃ writes ‖∇f(x+δ)‖ - ‖f(x)‖ for ‖∇f(x+δ) - ∇f(x)‖"
        )


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
class Cone(Theorem):
    """f(x; rW) = r f(x; W) for r > 0: scaling the first layer changes no prediction and no distance to a flip, so 3.1
    holds on the cone {W: rW in the ball for some r > 0}."""

    id: ClassVar = "wang2022/cone"
    claim: ClassVar = "positive rescaling of a lazy network changes no prediction and no robustness"
    applies_to: ClassVar = "a two-layer ReLU network without biases"

    dim: int = 200
    width: int = 2000
    scale: float = 7.5  # r
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
        before, after = one_step(network, X)[SIZE], one_step(scaled, X)[SIZE]
        return Witness({CHANGED: changed, MOVED: float(((after - before).abs() / before).max())})
