"""How much the gradient changes within ‖δ‖ ≤ R ≤ C1/√d: in a fixed direction (B.8), and at all (B.9)."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.theorems.base import ScalingClaim, Solution, Theorem, chance
from brittle.theorems.comparison import Comparison, Promise, at_least, at_most, promise_at_most
from brittle.theorems.instance import Facts, Instance
from brittle.theorems.scaling import Scaling, fitted
from brittle.theorems.wang2022.ball import APPLIES, Ball, BallClaim, about_ball, lazy_instance
from brittle.theorems.wang2022.farthest import gradient, largest_change, switched
from brittle.theorems.wang2022.neurons import displaced
from brittle.theorems.witness import Witness

IN_DIRECTION = "largest r·(∇f(x) - ∇f(x+δ)) over the ball, from above"
ANYWHERE = "largest ‖∇f(x) - ∇f(x+δ)‖ found"


def gradients(instance: Instance, X: Tensor) -> Tensor:
    """∇f at every row, (n, columns)."""
    return instance.two_layer.logit_gradients(X, torch.ones(len(X), dtype=torch.float64))


def at_the_start(size: float, dim: float, width: float, chance: float) -> float:
    """Bernstein's bound on (1/√m) Σ X_s at the start: 2√t((4R√ln d)^¼ + √(t/m))."""
    return 2 * math.sqrt(chance) * (math.pow(4 * size * math.sqrt(math.log(dim)), 0.25) + math.sqrt(chance / width))


@dataclass(frozen=True)
class ChangeNearby(BallClaim):
    """How much the gradient changes at one example within ‖δ‖ ≤ C1/√d; `size_constant` is C1."""

    gamma: float = chance(0.05)
    examples: int = 1
    size_constant: float = 1.0

    def size(self, dim: int) -> float:
        """‖δ‖ at most."""
        return self.size_constant / math.sqrt(dim)


@dataclass(frozen=True)
class FixedDirection(ChangeNearby):
    """Φ = r·(∇f(x; W) - ∇f(x+δ; W)) for a fixed unit r and a fixed δ of size C1/√d, over all W in the ball.

    Every neuron's share is bounded over the ball on its own, so that the measured value is at least the supremum.
    """

    steps: int = 0

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        ball = self.ball(instance)
        yield from super().hypotheses(instance)
        size = self.size(ball.dim)
        yield at_most("1/d beside R√(2 ln d)", 1 / ball.dim, size * math.sqrt(2 * math.log(ball.dim)))
        logs = math.log(ball.width / self.gamma) * math.log(1 / self.gamma)
        yield at_least("dimension beside ln(m/γ)ln(1/γ)", ball.dim, logs)

    def bound(self, instance: Instance) -> list[Promise]:
        ball, X = self.ball(instance), instance.data.X
        moved = gradients(instance, displaced(X, self.size(ball.dim)))
        anyway = float((gradients(instance, X).norm(dim=1) + moved.norm(dim=1)).max())
        return [promise_at_most(IN_DIRECTION, self.most(ball), trivial=anyway)]

    @abstractmethod
    def most(self, ball: Ball) -> float:
        """The stated bound."""

    def witness(self, instance: Instance) -> Witness:
        ball, X = self.ball(instance), instance.data.X
        moved, r = displaced(X, self.size(ball.dim)), torch.roll(X, 2, dims=1)
        here = (r * (gradients(instance, X) - gradients(instance, moved))).sum(1)
        rows = range(len(X))
        found = [switched(ball, row, moved[row] - X[row], r[row]) for row in rows]
        attained = [float(r[i] @ (gradient(W, X[i]) - gradient(W, moved[i]))) for i, W in zip(rows, found, strict=True)]
        largest = {"largest of the network": float(here.max()), "largest that a W was found to have": max(attained)}
        return Witness({IN_DIRECTION: float(from_above(ball, moved, r).max()), **largest})


def from_above(ball: Ball, moved: Tensor, r: Tensor) -> Tensor:
    """Σ_s of the largest share that a neuron can have within its ball, whatever the others do, (n,)."""
    V, sign = ball.reach, ball.start.v.sign()
    reach = V * moved.norm(dim=1, keepdim=True)
    z, after, along = ball.inputs, moved @ ball.start.W.T, sign * (r @ ball.start.W.T)
    on, off, on_after, off_after = z > -V, z <= V, after > -reach, after <= reach
    never = torch.full_like(z, -torch.inf)
    same = torch.where((on & on_after) | (off & off_after), torch.zeros_like(z), never)
    closes = torch.where(on & off_after, along + V, never)
    opens = torch.where(off & on_after, V - along, never)
    return torch.maximum(same, torch.maximum(closes, opens)).sum(1) / math.sqrt(ball.width)


@dataclass(frozen=True)
class PrintedFixedDirection(FixedDirection, id="wang2022/B.8"):
    """Φ ≤ 2√t((4R√ln d)^¼ + √(t/m)) + C0 + 3[(C0 + √(t/2))/√m]^½ √(d + 4√(d ln(8m/γ))) + 5(C0 + √t)√ln(4m/γ),
    t = ln(4/γ), for all W in the ball, w.p. ≥ 1-γ."""

    claim: ClassVar = "in a fixed direction the gradient changes by at most an explicit Õ(d^½ m^-¼ + 1) (as printed)"
    flaw: ClassVar = "vacuous at desk scale: it exceeds the sum of the two gradients' norms"
    repaired: ClassVar = "wang2022/B.8-repaired"
    note: ClassVar = (
        "the statement drops a '+3' of its last line, √ln(m/γ) should be √(2 ln(2m/γ)), and the proof uses "
        "S_v' with a δ of its own for every neuron (wang2022/B.4-printed)"
    )

    def most(self, ball: Ball) -> float:
        t, m, d, C0 = math.log(4 / self.gamma), ball.width, ball.dim, self.radius
        share = (C0 + math.sqrt(t / 2)) / math.sqrt(m)
        flips = 3 * math.sqrt(share * (d + 4 * math.sqrt(d * math.log(8 * m / self.gamma))))
        along = 5 * (C0 + math.sqrt(t)) * math.sqrt(math.log(4 * m / self.gamma))
        return at_the_start(self.size(ball.dim), d, m, t) + C0 + flips + along


@dataclass(frozen=True)
class SoundFixedDirection(FixedDirection, id="wang2022/B.8-repaired"):
    """Φ ≤ 2√t((4R√ln d)^¼ + √(t/m)) + C0 + 2(C0 + √(t/2))√(2 ln(8m/γ)), t = ln(4/γ), w.p. ≥ 1-γ: for a fixed r the
    flipped neurons, |S_v| + |S_v'| of Lemma B.4, weigh max_s |w_s(0)·r| each, and no supremum over r is needed."""

    claim: ClassVar = "in a fixed direction the gradient changes by at most an explicit Õ(1)"
    note: ClassVar = "ours, from the lemmas B.1, B.4 and B.6; the paper's own bound is wang2022/B.8"

    def most(self, ball: Ball) -> float:
        t, m = math.log(4 / self.gamma), ball.width
        flips = 2 * (self.radius + math.sqrt(t / 2)) * math.sqrt(2 * math.log(8 * m / self.gamma))
        return at_the_start(self.size(ball.dim), ball.dim, m, t) + self.radius + flips


def found_change(ball: Ball, row: int, size: float, rays: Sequence[Tensor] = ()) -> float:
    """The largest ‖∇f(x) - ∇f(x+δ)‖ that a W of the ball and a δ of this size are found to have."""
    x, (network, delta) = ball.instance.data.X[row], largest_change(ball, row, size, rays)
    return float((gradient(network, x) - gradient(network, x + delta)).norm())


def change_bound(dim: float, log_width: float, radius: float, size_constant: float) -> float:
    """9(C1 d² ln²(md) √(ln d/d))^¼ + 15 d ln(md)/√m + 327 max(1, C0) C0 d^¼."""
    logs = log_width + math.log(dim)
    first = 9 * math.pow(size_constant * dim**2 * logs**2 * math.sqrt(math.log(dim) / dim), 0.25)
    return first + 15 * dim * logs * math.exp(-log_width / 2) + 327 * max(1.0, radius) * radius * math.pow(dim, 0.25)


@dataclass(frozen=True)
class GradientChange(ChangeNearby, id="wang2022/B.9"):
    """‖∇f(x) - ∇f(x+δ)‖ ≤ 9(C1 d² ln²(md)√(ln d/d))^¼ + 15 d ln(md)/√m + 327 max(1,C0) C0 d^¼ for all ‖δ‖ ≤ C1/√d
    and all W in the ball, w.p. ≥ 1-γ, provided that m ≥ d^2.4 and d ≥ ln²(4/γ).

    The largest change over the ball and over δ is searched for, from `directions` random δ besides the gradient's own.
    """

    claim: ClassVar = "within C1/√d the gradient changes by at most 9(C1 d² ln²(md)√(ln d/d))^¼ + ... + 327·C0·d^¼"
    flaw: ClassVar = "vacuous at every dimension that fits a computer (solve for dim to see where it begins to bite)"
    repaired: ClassVar = "wang2022/B.9-repaired"
    unknowns: ClassVar = ("dim",)
    note: ClassVar = (
        "its proof rests on B.8's slips and on wang2022/B.9-step-printed; 3.1 is therefore checked without it "
        "(wang2022/3.1-proof)"
    )

    dim: int = 49
    width: int = 12_000
    directions: int = 4

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        ball = self.ball(instance)
        yield from super().hypotheses(instance)
        yield at_least("width beside d^2.4", ball.width, ball.dim**2.4)
        yield at_least("dimension beside ln²(4/γ)", ball.dim, math.log(4 / self.gamma) ** 2)

    def bound(self, instance: Instance) -> list[Promise]:
        ball = self.ball(instance)
        most = change_bound(ball.dim, math.log(ball.width), self.radius, self.size_constant)
        return [promise_at_most(ANYWHERE, most, trivial=held_anyway(ball))]

    def witness(self, instance: Instance) -> Witness:
        """Over the ball and over δ: by ascent from the gradient's own direction and from a few others."""
        ball, size = self.ball(instance), self.size(instance.data.dim)
        rays = torch.randn(self.directions, ball.dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        found = max(found_change(ball, row, size, list(rays)) for row in range(len(instance.data)))
        here = gradients(instance, instance.data.X)
        return Witness({ANYWHERE: found, "smallest ‖∇f(x)‖ of the network": float(here.norm(dim=1).min())})

    def solve_for(self, unknown: str) -> Solution:
        if unknown != "dim":
            return super().solve_for(unknown)
        first = bites_from(lambda d, m: change_bound(d, math.log(m), self.radius, self.size_constant))
        given = {"radius": self.radius, "size_constant": self.size_constant}
        why = "from here on the bound at m = d^2.4 is below √d/4, what B.7 gives for the gradient itself"
        return Solution(self.id, unknown, first, math.inf, given, why)


def held_anyway(ball: Ball) -> float:
    """2(‖W(0)‖‖v‖ + C0): twice the longest gradient of the ball."""
    return 2 * (float(torch.linalg.matrix_norm(ball.start.W, 2) * ball.network.v.norm()) + ball.radius)


def bites_from(bound: Callable[[float, float], float]) -> float:
    """The first d at which a bound in d and m, taken at m = d^2.4, falls below √d/4; infinite where none does."""
    low, high = 1.0, 290.0  # ln d
    if bound(math.exp(high), math.exp(2.4 * high)) >= math.exp(high / 2) / 4:
        return math.inf
    while high - low > 1e-6:
        middle = (low + high) / 2
        bites = bound(math.exp(middle), math.exp(2.4 * middle)) < math.exp(middle / 2) / 4
        low, high = (low, middle) if bites else (middle, high)
    return math.exp(high)


@dataclass(frozen=True, eq=False)
class ChangeSweep(Facts):
    """`changes`: the largest that was found at one start of each dimension in `dims`, `gradients`: ‖∇f(x)‖ there."""

    dims: tuple[int, ...]
    changes: tuple[float, ...]
    gradients: tuple[float, ...]


@dataclass(frozen=True)
class SmallChange(ScalingClaim, id="wang2022/L4.4"):
    """sup_δ ‖∇f(x; W) - ∇f(x+δ; W)‖ = o(√d) for all W in the ball, ‖δ‖ ≤ C1/√d and d^2.4 ≤ m ≤ O(exp(d^0.24)); the
    second form of B.9 says c√d for every c > 0.

    The largest change that a search over W and δ finds is fitted over `dims` at m = ⌈d^2.4⌉; `radius` is C0,
    `size_constant` is C1.
    """

    claim: ClassVar = "within C1/√d the gradient changes by o(√d), for every network of the ball"
    applies_to: ClassVar = APPLIES
    note: ClassVar = "o(√d) has no exponent: any fitted one below ½ agrees with it"

    dims: tuple[int, ...] = (16, 25, 36, 49)
    radius: float = 0.5
    size_constant: float = 1.0

    def default(self, rng: Generator) -> Instance:
        instance, changes, lengths = None, [], []
        for dim in self.dims:
            instance = lazy_instance(dim, math.ceil(dim**2.4), self.radius, 1, 0, rng)
            changes.append(found_change(Ball(instance, self.radius), 0, self.size_constant / math.sqrt(dim)))
            lengths.append(float(gradients(instance, instance.data.X).norm()))
        assert instance is not None
        return replace(instance, facts=ChangeSweep(self.dims, tuple(changes), tuple(lengths)))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        ball = Ball(instance, self.radius)
        yield from about_ball(ball)
        yield at_least("width beside d^2.4", ball.width, ball.dim**2.4)

    def witness(self, instance: Instance) -> Witness:
        size = self.size_constant / math.sqrt(instance.data.dim)
        found = found_change(Ball(instance, self.radius), 0, size)
        return Witness({ANYWHERE: found, f"{ANYWHERE} over √d": found / math.sqrt(instance.data.dim)})

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        sweep = instance.known(ChangeSweep)
        if sweep is None:
            return ()
        own = fitted("‖∇f(x)‖", "d", 0.5, sweep.dims, sweep.gradients)
        return fitted(ANYWHERE, "d", 0.5, sweep.dims, sweep.changes), own


@dataclass(frozen=True)
class CountingStep(Theorem):
    """The step of B.9's proof that counts neurons crossed near a net of δ: ln g ≤ -√m wherever m ≥ max(58, d^2.4).

    A quantity called `measure` is at most `limit` at `dim` and `width`.
    """

    applies_to: ClassVar = "a dimension and a width; neither data nor a network"
    measure: ClassVar[str]
    limit: ClassVar[float]

    dim: int = 784
    width: int = 9_000_000

    @abstractmethod
    def value(self, d: int, m: int) -> float:
        """The quantity."""

    def default(self, rng: Generator) -> Instance:
        return lazy_instance(self.dim, 1, 1.0, 1, 0, rng)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_least("width beside max(58, d^2.4)", self.width, max(58.0, instance.data.dim**2.4))
        yield at_least("dimension", instance.data.dim, 2)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(self.measure, self.limit)]

    def witness(self, instance: Instance) -> Witness:
        return Witness({self.measure: self.value(instance.data.dim, self.width)})


@dataclass(frozen=True)
class PrintedCountingStep(CountingStep, id="wang2022/B.9-step-printed"):
    """m ≥ d^2.4 ⇒ √m ≥ 0.33 d ln(md), by which the proof goes from -8√m + 2.3 d ln(md) to -√m."""

    claim: ClassVar = "m ≥ d^2.4 implies √m ≥ 0.33 d ln(md) (a step of B.9's proof, as printed)"
    flaw: ClassVar = "false: at m = d^2.4 it fails for every d from 5 to 8e5"
    repaired: ClassVar = "wang2022/B.9-step"
    measure: ClassVar = "0.33 d ln(md)/√m"
    limit: ClassVar = 1.0

    def value(self, d: int, m: int) -> float:
        return 0.33 * d * math.log(m * d) / math.sqrt(m)


@dataclass(frozen=True)
class SoundCountingStep(CountingStep, id="wang2022/B.9-step"):
    """The same step with p at its largest, 11C̄/√m, and the term 44C̄√m ln(e/4) that the proof drops:
    ln g ≤ -11C̄√m + 44C̄√m ln(e/4) + 2d ln(10 (md)^(4/7)) ≤ -√m."""

    claim: ClassVar = "m ≥ d^2.4 suffices for the counting step of B.9 when no term is dropped"
    measure: ClassVar = "ln g/√m"
    limit: ClassVar = -1.0

    def value(self, d: int, m: int) -> float:
        """At C̄ = 1, the worst: g falls as C̄ grows."""
        root = math.sqrt(m)
        log_g = -11 * root + 44 * root * math.log(math.e / 4) + 2 * d * math.log(10 * (m * d) ** (4 / 7))
        return log_g / root
