"""The gradient is long in the whole ball (Lemma B.7), as printed and with a last term that is sound."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.data import Sphere
from brittle.theorems.base import Failures, Theorem, chance
from brittle.theorems.comparison import (
    Comparison,
    Promise,
    Witness,
    at_least,
    at_most,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.helpers import clopper_pearson
from brittle.theorems.instance import Facts, Instance
from brittle.theorems.wang2022.ball import APPLIES, BallClaim, WeightBall, about_ball, lazy_instance
from brittle.theorems.wang2022.neurons import TOO_MANY, most_unstable
from brittle.theorems.wang2022.worst import WorstCase

SHORTEST = "smallest ‖∇f(x)‖ found in the ball"
HERE = "smallest ‖∇f(x)‖ of the network"
SWEEPS = 4


def first_term(dim: int, width: int, gamma: float) -> float:
    """A lower bound on ‖P∇f‖ at the start."""
    chance = math.log(4 / gamma)
    active = 0.5 - math.sqrt(2 * chance / width) - chance / width
    length = dim - 5 * math.sqrt(dim * math.log(8 / gamma))
    return math.sqrt(max(active, 0.0) * max(length, 0.0))


def compute_printed_last_term(dim: int, width: int, radius: float, gamma: float) -> float:
    """[(C0 + √(ln(4/γ)/2))/√m]^½ (d + 4√(d ln(8m/γ)))^½."""
    share = (radius + math.sqrt(math.log(4 / gamma) / 2)) / math.sqrt(width)
    return math.sqrt(share * (dim + 4 * math.sqrt(dim * math.log(8 * width / gamma))))


def sound_last_term(dim: int, width: int, radius: float, gamma: float) -> float:
    """Chevet's inequality over the subsets of S_v that W may flip; |S_v| by Lemma B.4.

    max_T ‖Σ_T g_s‖ over T in S_v, g_s ~ N(0, I): at most √(kd) + k/√(2π) in the mean, and √k-Lipschitz in the g_s.
    """
    k = most_unstable(width, radius / math.sqrt(width), gamma / 4)
    spread = math.sqrt(dim) + math.sqrt(2 * math.log(4 / gamma))
    return math.sqrt(k / width) * spread + k / math.sqrt(2 * math.pi * width)


@dataclass(frozen=True)
class LongGradient(BallClaim):
    """‖∇f(x; W)‖ for the worst W of the ball that a search finds: it flips neurons of S_v and shifts the others."""

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        ball = self.ball(instance)
        yield from super().hypotheses(instance)
        yield at_least("dimension beside 25 ln(8/γ)", ball.dim, 25 * math.log(8 / self.gamma))
        yield at_least("dimension beside ln(8m/γ)", ball.dim, math.log(8 * ball.width / self.gamma))
        spread = math.sqrt(2 * math.log(4 / self.gamma) / ball.width) + math.log(4 / self.gamma) / ball.width
        yield at_most("√(2ln(4/γ)/m) + ln(4/γ)/m", spread, 0.5)

    def witness(self, instance: Instance) -> Witness:
        ball = self.ball(instance)
        here = ball.network.logit_gradients(instance.data.X, torch.ones(len(instance.data), dtype=torch.float64))
        return Witness({SHORTEST: find_shortest_gradient(ball), HERE: float(here.norm(dim=1).min())})

    def bound(self, instance: Instance) -> list[Promise]:
        ball = self.ball(instance)
        return [promise_at_least(SHORTEST, self.least(ball.dim, ball.width), trivial=0.0)]

    def failures(self, trials: int, rng: Generator) -> Failures:
        least = self.least(self.dim, self.width)
        sizes = [draw_shortest_gradient(self.dim, self.width, self.radius, rng) for _ in range(trials)]
        return Failures(sum(size < least for size in sizes), 0, self.gamma)

    def least(self, dim: int, width: int) -> float:
        """The stated bound; it may be negative."""
        return first_term(dim, width, self.gamma) - self.radius - self.last_term(dim, width)

    @abstractmethod
    def last_term(self, dim: int, width: int) -> float:
        """What the neurons that W flips can take away."""


@dataclass(frozen=True)
class PrintedLongGradient(LongGradient, id="wang2022/B.7"):
    """‖∇f(x; W)‖ ≥ (½ - √(2ln(4/γ)/m) - ln(4/γ)/m)^½ (d - 5√(d ln(8/γ)))^½ - C0
    - [(C0 + √(ln(4/γ)/2))/√m]^½ (d + 4√(d ln(8m/γ)))^½ for all W in the ball, w.p. ≥ 1-γ."""

    claim: ClassVar = "in the whole lazy ball ‖∇f(x)‖ = Ω(√d), with the paper's constants"
    note: ClassVar = (
        "its equation (7) is false (wang2022/B.7-eq7), and no search broke the bound itself; Chevet's inequality "
        "proves nearly as much (wang2022/B.7-repaired). It is vacuous at d=784, m=1e5, C0=10 (-1.1 at γ = .1)"
    )

    def last_term(self, dim: int, width: int) -> float:
        return compute_printed_last_term(dim, width, self.radius, self.gamma)


@dataclass(frozen=True)
class SoundLongGradient(LongGradient, id="wang2022/B.7-repaired"):
    """The same with the last term √(k/m)(√d + √(2 ln(4/γ))) + k/√(2πm), k = C0√m + √(m ln(4/γ)/2) ≥ |S_v|: Chevet's
    inequality over the 2^k subsets of S_v that W may flip."""

    claim: ClassVar = "in the whole lazy ball ‖∇f(x)‖ = Ω(√d), with Chevet's inequality for the neurons that W flips"

    def last_term(self, dim: int, width: int) -> float:
        return sound_last_term(dim, width, self.radius, self.gamma)


def find_shortest_gradient(ball: WeightBall) -> float:
    """The smallest ‖∇f(x; W)‖ over the examples and the networks of the ball that ascent reaches."""
    X, ones = ball.instance.data.X, torch.ones(1, dtype=torch.float64)
    networks = [WorstCase(ball, row).gradient for row in range(len(X))]
    return min(float(network.logit_gradients(x[None], ones).norm()) for network, x in zip(networks, X, strict=True))


def shortest_gradient(ball: WeightBall, row: int) -> float:
    """A short ‖∇f(x; W)‖ over the ball at one example, by descent over the subsets of S_v, then by shifting."""
    z, W, v = ball.inputs[row], ball.start.W, ball.start.v
    x = ball.instance.data.X[row]
    unstable = ball.unstable()[row]
    stable = (z > 0) & ~unstable
    fixed = (v * stable) @ W
    along = float(fixed @ x)
    movable = v[unstable, None] * (W[unstable] - (W[unstable] @ x)[:, None] * x)
    shift = int(stable.sum()) * ball.reach / math.sqrt(ball.width)
    return _shortest(fixed - along * x, movable, (z > 0)[unstable], shift)


def draw_shortest_gradient(dim: int, width: int, radius: float, rng: Generator) -> float:
    """The same for a start that is drawn anew by its law: the stable neurons only count by their sum."""
    V = radius / math.sqrt(width)
    unstable = _binomial(width, math.erf(V / math.sqrt(2)), rng)
    stable = _binomial(width - unstable, 0.5, rng)
    fixed = math.sqrt(stable / width) * torch.randn(dim - 1, generator=rng)
    movable = torch.randn(unstable, dim - 1, generator=rng) / math.sqrt(width)
    active = torch.rand(unstable, generator=rng) < 0.5
    return _shortest(fixed, movable, active, stable * V / math.sqrt(width))


def _binomial(count: int, share: float, rng: Generator) -> int:
    return int(torch.binomial(torch.tensor(float(count)), torch.tensor(share), generator=rng))


def _shortest(fixed: Tensor, movable: Tensor, chosen: Tensor, shift: float) -> float:
    """min ‖fixed + Σ_chosen movable‖ over subsets, greedily; then the stable neurons move against what is left."""
    total, gram = fixed + chosen.to(movable.dtype) @ movable, movable.square().sum(1)
    for _ in range(SWEEPS):
        along = movable @ total
        gain = torch.where(chosen, -2 * along + gram, 2 * along + gram)
        if not len(gain) or float(gain.min()) >= 0:
            break
        worst = gain.argsort()[: max(1, len(gain) // 8)]
        worst = worst[gain[worst] < 0]
        flipped = chosen.clone()
        flipped[worst] = ~flipped[worst]
        moved = fixed + flipped.to(movable.dtype) @ movable
        if float(moved.norm()) >= float(total.norm()):
            break
        chosen, total = flipped, moved
    return max(float(total.norm()) - shift, 0.0)


@dataclass(frozen=True)
class Reach:
    """The longest `part` of a gradient that a search over W found, beside the `limit` of equation (7)."""

    part: float
    limit: float


@dataclass(frozen=True)
class Reaches(Facts):
    """`starts`: one search for each of several draws of the start."""

    starts: tuple[Reach, ...]


@dataclass(frozen=True)
class SubsetOfFlips(Theorem, id="wang2022/B.7-eq7"):
    """Equation (7) of the proof of B.7: sup_W ‖(1/√m) Σ_s a_s P w_s(0) (σ'(w_s·x) - σ'(w_s(0)·x))‖
    ≤ [(C0 + √(ln(1/γ)/2))/√m]^½ √(d + 4√(d ln(2m/γ))), as if W had no choice of which neurons of S_v flip.

    `draws` of a start of width `width` in R^`dim`; `radius` is C0, `gamma` is γ.
    """

    claim: ClassVar = (
        "whatever W flips, its part of the gradient is at most √(|S_v|/m)·‖z‖, ‖z‖ ~ √d (equation 7, as printed)"
    )
    applies_to: ClassVar = APPLIES
    flaw: ClassVar = "false: W chooses which neurons of S_v flip, and the worst choice is not distributed as a Gaussian"
    repaired: ClassVar = "wang2022/B.7-repaired"

    dim: int = 200
    width: int = 10_000
    radius: float = 20.0
    gamma: float = chance(0.01)
    draws: int = 10

    def default(self, rng: Generator) -> Instance:
        reaches = Reaches(tuple(self._drawn(rng) for _ in range(self.draws)))
        return Instance(Sphere(self.dim, radius=1.0).sample(1, rng), facts=reaches)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_least("dimension beside ln(2m/γ)", instance.data.dim, math.log(2 * self.width / self.gamma))

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(TOO_MANY, self.gamma, certain=True)]

    def witness(self, instance: Instance) -> Witness:
        drawn = instance.known(Reaches)
        starts = self._seeded() if drawn is None else drawn.starts
        low = clopper_pearson(sum(reach.part > reach.limit for reach in starts), len(starts))[0]
        worst = max(starts, key=lambda reach: reach.part / reach.limit)
        parts = {"largest part that a W reached": worst.part, "limit of equation (7) there": worst.limit}
        return Witness({TOO_MANY: low, **parts})

    def _seeded(self) -> tuple[Reach, ...]:
        return tuple(self._drawn(torch.Generator().manual_seed(seed)) for seed in range(self.draws))

    def _drawn(self, rng: Generator) -> Reach:
        """For one start."""
        V = self.radius / math.sqrt(self.width)
        k = int((torch.randn(self.width, generator=rng, dtype=torch.float64).abs() <= V).sum())
        G = torch.randn(k, self.dim - 1, generator=rng, dtype=torch.float64) / math.sqrt(self.width)
        total = G.sum(0)
        for _ in range(25):
            total = (G @ total > 0).double() @ G
        length = self.dim + 4 * math.sqrt(self.dim * math.log(2 * self.width / self.gamma))
        limit = math.sqrt(most_unstable(self.width, V, self.gamma) / self.width * length)
        return Reach(float(total.norm()), limit)


@dataclass(frozen=True)
class QuarterRoot(LongGradient, id="wang2022/L4.2"):
    """‖∇f(x; W)‖ ≥ √d/4 for all W in the ball, w.p. ≥ 1-γ, wherever the bound of B.7-repaired is at least √d/4: that
    needs d ≥ C(C0² + ln(1/γ)), and m large beside C0² and ln(1/γ)."""

    claim: ClassVar = "in the whole lazy ball ‖∇f(x)‖ ≥ √d/4, provided that d and m are large beside C0² and ln(1/γ)"
    note: ClassVar = "the paper asks for d ≥ C ln(8m/γ)/m only, which is false (wang2022/L4.2-printed)"

    dim: int = 600
    width: int = 1000
    radius: float = 0.25
    gamma: float = chance(0.5)
    examples: int = 1

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().hypotheses(instance)
        ball = self.ball(instance)
        least = first_term(ball.dim, ball.width, self.gamma) - self.radius - self.last_term(ball.dim, ball.width)
        yield at_least("bound of B.7-repaired beside √d/4", least, math.sqrt(ball.dim) / 4)

    def least(self, dim: int, width: int) -> float:
        return math.sqrt(dim) / 4

    def last_term(self, dim: int, width: int) -> float:
        return sound_last_term(dim, width, self.radius, self.gamma)


@dataclass(frozen=True)
class PrintedQuarterRoot(Theorem, id="wang2022/L4.2-printed"):
    """m ≥ C ln(4/γ) and d ≥ C ln(8m/γ)/m ⇒ ‖∇f(x; W)‖ ≥ √d/4 for all W in the ball, w.p. ≥ 1-γ, whatever C0 is.

    Judged over `draws` of a start of width `width` in R^`dim`, by a search in each ball; `radius` is C0, `gamma` is γ,
    `constant` is C.
    """

    claim: ClassVar = "in every lazy ball ‖∇f(x)‖ ≥ √d/4 once m ≥ C ln(4/γ) and d ≥ C ln(8m/γ)/m (as printed)"
    applies_to: ClassVar = APPLIES
    flaw: ClassVar = "false: W shortens the gradient by a multiple of C0, so that d must be large beside C0²"
    repaired: ClassVar = "wang2022/L4.2"

    dim: int = 100
    width: int = 2000
    radius: float = 10.0
    gamma: float = chance(0.01)
    constant: float = 100.0
    draws: int = 6

    def default(self, rng: Generator) -> Instance:
        drawn = [lazy_instance(self.dim, self.width, self.radius, 1, 0, rng) for _ in range(self.draws)]
        found = [find_shortest_gradient(WeightBall(each, self.radius)) for each in drawn]
        reaches = Reaches(tuple(Reach(length, math.sqrt(self.dim) / 4) for length in found))
        return replace(drawn[-1], facts=reaches)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        ball = WeightBall(instance, self.radius)
        yield from about_ball(ball)
        yield at_least("width beside C ln(4/γ)", ball.width, self.constant * math.log(4 / self.gamma))
        least = self.constant * math.log(8 * ball.width / self.gamma) / ball.width
        yield at_least("dimension beside C ln(8m/γ)/m", ball.dim, least)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(TOO_MANY, self.gamma, certain=True)]

    def witness(self, instance: Instance) -> Witness:
        drawn = instance.known(Reaches)
        alone = (Reach(find_shortest_gradient(WeightBall(instance, self.radius)), math.sqrt(instance.data.dim) / 4),)
        starts = alone if drawn is None else drawn.starts
        low = clopper_pearson(sum(reach.part < reach.limit for reach in starts), len(starts))[0]
        return Witness({TOO_MANY: low, SHORTEST: min(reach.part for reach in starts), "√d/4": starts[0].limit})
