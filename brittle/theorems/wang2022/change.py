"""How much the gradient changes within ‖δ‖ ≤ R ≤ C1/√d: in a fixed direction (B.8), and at all (B.9)."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.networks import TwoLayer
from brittle.theorems.base import ParameterRange, ScalingClaim, Theorem, chance
from brittle.theorems.comparison import (
    Comparison,
    Promise,
    Scaling,
    Witness,
    at_least,
    at_most,
    fit_scaling,
    promise_at_most,
)
from brittle.theorems.instance import Facts, Instance
from brittle.theorems.wang2022.ball import APPLIES, BallClaim, WeightBall, about_ball, lazy_instance
from brittle.theorems.wang2022.neurons import RareCrossingNearby, displace_examples

ROUNDS = 4
BEYOND = 1e-6  # how far beyond its kinks a neuron is put, beside the ball's radius


def largest_change(ball: WeightBall, row: int, size: float, rays: Sequence[Tensor] = ()) -> tuple[TwoLayer, Tensor]:
    """A network of the ball and a δ, ‖δ‖ ≤ size, with a large ‖∇f(x) - ∇f(x+δ)‖; `rays` are further δ to begin with."""
    start, x = replace(ball.start, start=None), ball.instance.data.X[row]
    g = gradient(start, x)
    best, most = (start, size * g / g.norm()), -1.0
    for ray in (g, -g, *rays):
        network, delta = start, size * ray / ray.norm().clamp(min=1e-300)
        for _ in range(ROUNDS):
            change = gradient(network, x) - gradient(network, x + delta)
            if (length := float(change.norm())) > most:
                best, most = (network, delta), length
            network = switch_neurons(ball, row, delta, change / max(length, 1e-300))
    return replace(best[0], start=start), best[1]


def gradient(network: TwoLayer, x: Tensor) -> Tensor:
    """∇f(x), (columns,)."""
    return network.logit_gradients(x[None], torch.ones(1, dtype=network.dtype))[0]


def switch_neurons(ball: WeightBall, row: int, delta: Tensor, r: Tensor) -> TwoLayer:
    """Every neuron is on at x and off at x + δ, or the other way round, as adds along r, if it can; a neuron that would
    take away by switching does not switch, if it can help it."""
    start, x, V = replace(ball.start, start=None), ball.instance.data.X[row], ball.reach * (1 - 1e-9)
    pair = torch.stack([x, x + delta])
    inputs, along = start.W @ pair.T, start.v * (start.W @ r)
    wanted = BEYOND * V * torch.where(along > 0, 1.0, -1.0)[:, None] * torch.tensor([1.0, -1.0], dtype=x.dtype)
    missing = torch.where(inputs.sign() == wanted.sign(), torch.zeros_like(inputs), wanted - inputs)
    moves = missing @ torch.linalg.solve(pair @ pair.T, pair)
    sides = (inputs + missing).sign() == wanted.sign()
    able = sides.all(1) & (moves.norm(dim=1) <= V) & (missing != 0).any(1)
    wrong = ~able & (inputs.sign().prod(1) < 0) & (inputs.sign() != wanted.sign()).all(1)
    nearer = inputs.abs().argmin(1)
    step = -inputs[torch.arange(len(inputs)), nearer] / pair.square().sum(1)[nearer] * (1 + BEYOND)
    calmed = wrong & (step.abs() * pair.norm(dim=1)[nearer] <= V)
    return replace(start, W=start.W + able[:, None] * moves + (calmed * step)[:, None] * pair[nearer])


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
        moved = gradients(instance, displace_examples(X, self.size(ball.dim)))
        anyway = float((gradients(instance, X).norm(dim=1) + moved.norm(dim=1)).max())
        return [promise_at_most(IN_DIRECTION, self.most(ball), trivial=anyway)]

    @abstractmethod
    def most(self, ball: WeightBall) -> float:
        """The stated bound."""

    def witness(self, instance: Instance) -> Witness:
        ball, X = self.ball(instance), instance.data.X
        moved, r = displace_examples(X, self.size(ball.dim)), torch.roll(X, 2, dims=1)
        here = (r * (gradients(instance, X) - gradients(instance, moved))).sum(1)
        rows = range(len(X))
        found = [switch_neurons(ball, row, moved[row] - X[row], r[row]) for row in rows]
        attained = [float(r[i] @ (gradient(W, X[i]) - gradient(W, moved[i]))) for i, W in zip(rows, found, strict=True)]
        largest = {"largest of the network": float(here.max()), "largest that a W was found to have": max(attained)}
        return Witness({IN_DIRECTION: float(from_above(ball, moved, r).max()), **largest})


def from_above(ball: WeightBall, moved: Tensor, r: Tensor) -> Tensor:
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

    def most(self, ball: WeightBall) -> float:
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

    def most(self, ball: WeightBall) -> float:
        t, m = math.log(4 / self.gamma), ball.width
        flips = 2 * (self.radius + math.sqrt(t / 2)) * math.sqrt(2 * math.log(8 * m / self.gamma))
        return at_the_start(self.size(ball.dim), ball.dim, m, t) + self.radius + flips


def find_largest_change(ball: WeightBall, row: int, size: float, rays: Sequence[Tensor] = ()) -> float:
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
        return [promise_at_most(ANYWHERE, most, trivial=bound_any_change(ball))]

    def witness(self, instance: Instance) -> Witness:
        """Over the ball and over δ: by ascent from the gradient's own direction and from a few others."""
        ball, size = self.ball(instance), self.size(instance.data.dim)
        rays = torch.randn(self.directions, ball.dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        found = max(find_largest_change(ball, row, size, list(rays)) for row in range(len(instance.data)))
        here = gradients(instance, instance.data.X)
        return Witness({ANYWHERE: found, "smallest ‖∇f(x)‖ of the network": float(here.norm(dim=1).min())})

    def solve_for(self, unknown: str) -> ParameterRange:
        if unknown != "dim":
            return super().solve_for(unknown)
        first = bites_from(lambda d, m: change_bound(d, math.log(m), self.radius, self.size_constant))
        given = {"radius": self.radius, "size_constant": self.size_constant}
        why = "from here on the bound at m = d^2.4 is below √d/4, what B.7 gives for the gradient itself"
        return ParameterRange(self.id, unknown, first, math.inf, given, why)


def bound_any_change(ball: WeightBall) -> float:
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
            changes.append(
                find_largest_change(WeightBall(instance, self.radius), 0, self.size_constant / math.sqrt(dim))
            )
            lengths.append(float(gradients(instance, instance.data.X).norm()))
        assert instance is not None
        return replace(instance, facts=ChangeSweep(self.dims, tuple(changes), tuple(lengths)))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        ball = WeightBall(instance, self.radius)
        yield from about_ball(ball)
        yield at_least("width beside d^2.4", ball.width, ball.dim**2.4)

    def witness(self, instance: Instance) -> Witness:
        size = self.size_constant / math.sqrt(instance.data.dim)
        found = find_largest_change(WeightBall(instance, self.radius), 0, size)
        return Witness({ANYWHERE: found, f"{ANYWHERE} over √d": found / math.sqrt(instance.data.dim)})

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        sweep = instance.known(ChangeSweep)
        if sweep is None:
            return ()
        own = fit_scaling("‖∇f(x)‖", "d", 0.5, sweep.dims, sweep.gradients)
        return fit_scaling(ANYWHERE, "d", 0.5, sweep.dims, sweep.changes), own


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


# Lemma B.9 with a bound that is proven for all W of the ball and all δ at once.
#
# For ‖δ‖ ≤ R take a point δ0 of an ε-net within ε of it. Put b_s and b'_s for the signs of w_s at x and at x + δ, and
# b_s(0), b'_s(0) for those of w_s(0) at x and at x + δ0. Then √m(∇f(x; W) - ∇f(x+δ; W)) = Σ a_s w_s (b_s - b'_s) has
# three parts.
#
# - Σ a_s w_s(0)(b_s(0) - b'_s(0)): at the start, at a point of the net. For one unit vector r Bernstein's inequality
#   with B.6 bounds it by 2√t((4R√ln d)^¼ + √(t/m)), w.p. 1 - e^-t. A ½-net of 5^d vectors r and the net of (1 +
#   2R/ε)^d points δ0 give its norm, up to a factor 2, with t = ln(4/γ) + d ln 5 + d ln(1 + 2R/ε).
# - Σ a_s (w_s - w_s(0))(b_s - b'_s): at most C0√m.
# - Σ ±a_s w_s(0) over the neurons whose sign W or δ - δ0 changes: those of S_v at x, k1 at most by B.4, and those
#   near x + δ0, of which W changes one with probability V (B.4) and δ - δ0 with the probability of B.6-net: k2 at
#   most for all points of the net by Chernoff's inequality (B.2), as e^-p (ep/k)^k ≤ e^-k for k ≥ e²p. W and δ choose
#   which, so all sets of k rows of W(0) are allowed: such a matrix has norm ≤ √d + √k + √(2(k ln(em/k) + ln(8/γ)))
#   for all sets at once: there are at most (em/k)^k.


def chosen_rows(count: float, dim: float, width: float, gamma: float) -> float:
    """The longest (1/√m) Σ ±w_s(0) over `count` rows that may be chosen, w.p. ≥ 1 - γ/8."""
    k = min(max(count, 1.0), width)
    ways = k * math.log(math.e * width / k)
    longest = math.sqrt(dim) + math.sqrt(k) + math.sqrt(2 * (ways + math.log(8 / gamma)))
    return math.sqrt(k / width) * longest


def bound_uniformly(dim: float, width: float, radius: float, size: float, gamma: float) -> float:
    """2·2√t((4R√ln d)^¼ + √(t/m)) + C0 and what the rows that W and δ choose can add."""
    reach, epsilon = radius / math.sqrt(width), 1 / (math.sqrt(width) * math.sqrt(dim))  # any ε is allowed
    net = dim * math.log(1 + 2 * size / epsilon)
    t = math.log(4 / gamma) + dim * math.log(5) + net
    near = RareCrossingNearby(size=size, epsilon=epsilon, reach=reach).allowed(dim) + reach
    at_x = reach * width + math.sqrt(width * math.log(4 / gamma) / 2)
    nearby = math.e**2 * near * width + math.log(4 / gamma) + net
    flips = chosen_rows(at_x, dim, width, gamma) + chosen_rows(nearby, dim, width, gamma)
    return 2 * at_the_start(size, dim, width, t) + radius + flips


@dataclass(frozen=True)
class UniformChange(GradientChange, id="wang2022/B.9-repaired"):
    """‖∇f(x) - ∇f(x+δ)‖ ≤ 4√t((4R√ln d)^¼ + √(t/m)) + C0 + chosen(k1) + chosen(k2) for all ‖δ‖ ≤ R = C1/√d and all W in
    the ball, w.p. ≥ 1-γ: t = ln(4/γ) + d ln(5 + 10R/ε), chosen(k) = √(k/m)(√d + √k + √(2(k ln(em/k) + ln(8/γ)))),
    k1 = Vm + √(m ln(4/γ)/2), k2 = e²m(V + p') + ln(4/γ) + d ln(1+2R/ε), p' that of B.6-net, ε = 1/√(md)."""

    claim: ClassVar = "within C1/√d the gradient changes by at most an explicit o(√d), for all W and all δ at once"
    flaw: ClassVar = ""
    repaired: ClassVar = ""
    note: ClassVar = (
        "ours: a net over δ and r for the start, all choices of rows for what W and δ change; no S_v' with a δ "
        "for every neuron, and no condition C0 ≥ .55. Like B.9 it says little at desk scale: t is of order d ln d"
    )

    def bound(self, instance: Instance) -> list[Promise]:
        ball = self.ball(instance)
        most = bound_uniformly(ball.dim, ball.width, self.radius, self.size(ball.dim), self.gamma)
        return [promise_at_most(ANYWHERE, most, trivial=bound_any_change(ball))]

    def solve_for(self, unknown: str) -> ParameterRange:
        if unknown != "dim":
            return super().solve_for(unknown)
        first = bites_from(
            lambda d, m: bound_uniformly(d, m, self.radius, self.size_constant / math.sqrt(d), self.gamma)
        )
        given = {"radius": self.radius, "size_constant": self.size_constant, "gamma": self.gamma}
        why = "from here on the bound at m = d^2.4 is below √d/4, what B.7 gives for the gradient itself"
        return ParameterRange(self.id, unknown, first, math.inf, given, why)
