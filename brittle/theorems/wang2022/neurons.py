"""How many neurons can change sign: by moving the weights (B.4), by moving the example (B.6)."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import scipy
import torch
from torch import Generator, Tensor

from brittle.data import Sphere
from brittle.theorems.base import Failures, Theorem
from brittle.theorems.comparison import Comparison, Promise, Witness, at_least, at_most, promise_at_most
from brittle.theorems.helpers import clopper_pearson
from brittle.theorems.instance import Facts, Instance
from brittle.theorems.wang2022.ball import DRAWS_AT_ONCE, EXACTLY, BallClaim

AT_X, AT_MOVED = "neurons that can change sign at x", "neurons that can change sign at x + δ"
TOO_MANY = "share of draws with too many, lower end of its 99 % interval"
CHANGES = "exact probability of a sign change"


def most_unstable(width: int, reach: float, gamma: float) -> float:
    """Vm + √(m ln(1/γ)/2)."""
    return reach * width + math.sqrt(width * math.log(1 / gamma) / 2)


def displace_examples(x: Tensor, size: float) -> Tensor:
    """x + δ with a fixed δ of this size, orthogonal to x: the choice may not depend on the weights."""
    across = torch.roll(x, 1, dims=-1)
    across = across - (across * x).sum(-1, keepdim=True) * x / x.square().sum(-1, keepdim=True)
    return x + size * across / across.square().sum(-1, keepdim=True).sqrt()


@dataclass(frozen=True)
class Unstable(BallClaim):
    """S_v at x, and S_v' at x + δ for a perturbation of size R, which is `size`."""

    steps: int = 0
    size: float = 1 / 28

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().hypotheses(instance)
        yield at_most("size of δ", self.size, 0.5)


@dataclass(frozen=True)
class FewUnstable(Unstable, id="wang2022/B.4"):
    """|S_v| ≤ Vm + √(m ln(1/γ)/2) at a fixed x, and |S_v'| ≤ (1+R)(Vm + √(m ln(1/γ)/2)) at x + δ for a *fixed* δ,
    ‖δ‖ ≤ R ≤ ½; each w.p. ≥ 1-γ. S_v: neurons whose sign differs from the start's somewhere in the ball."""

    claim: ClassVar = "at most Vm + √(m ln(1/γ)/2) neurons can change sign in the ball, at x and at a fixed x + δ"
    note: ClassVar = (
        "the paper defines S_v' with 'there is a δ' inside the set; that is false (wang2022/B.4-printed), "
        "for a fixed δ it holds, even without the factor 1+R"
    )

    def bound(self, instance: Instance) -> list[Promise]:
        ball = self.ball(instance)
        most = most_unstable(ball.width, ball.reach, self.gamma)
        return [promise_at_most(AT_X, most), promise_at_most(AT_MOVED, (1 + self.size) * most)]

    def witness(self, instance: Instance) -> Witness:
        ball = self.ball(instance)
        moved = displace_examples(instance.data.X, self.size)
        near = (moved @ ball.start.W.T).abs() <= ball.reach * moved.norm(dim=1, keepdim=True)
        return Witness({AT_X: float(ball.unstable().sum(1).max()), AT_MOVED: float(near.sum(1).max())})

    def probability(self, instance: Instance) -> float:
        return 1 - 2 * len(instance.data) * self.gamma

    def failures(self, trials: int, rng: Generator) -> Failures:
        """|S_v| is binomial: how many of m independent N(0, 1) inputs lie within V."""
        failures, V = 0, self.radius / math.sqrt(self.width)
        most, rows = most_unstable(self.width, V, self.gamma), max(1, DRAWS_AT_ONCE // self.width)
        for first in range(0, trials, rows):
            z = torch.randn(min(rows, trials - first), self.width, generator=rng, dtype=torch.float64)
            failures += int(((z.abs() <= V).sum(1) > most).sum())
        return Failures(failures, 0, self.gamma)


@dataclass(frozen=True, eq=False)
class CrossedCounts(Facts):
    """`counts` (draws,): how many neurons some δ crosses, for several draws of the start."""

    counts: Tensor


@dataclass(frozen=True)
class PrintedUnstable(Unstable, id="wang2022/B.4-printed"):
    """|S_v'| ≤ (1+R)(Vm + √(m ln(1/γ)/2)) where every neuron may choose a δ, ‖δ‖ ≤ R, of its own.

    Judged over `draws` of the start.
    """

    claim: ClassVar = "at most (1+R)(Vm + √(m ln(1/γ)/2)) neurons change sign for some δ and some W (as printed)"
    flaw: ClassVar = "false: a neuron is crossed by some δ as soon as |w(0)·x| ≤ R‖w(0)‖, and at R ~ 1/√d most are"
    repaired: ClassVar = "wang2022/B.4"

    draws: int = 50

    def default(self, rng: Generator) -> Instance:
        """Further draws of the start by what matters of it: w·x, and the χ² rest of ‖w‖²."""
        z = torch.randn(self.draws, self.width, generator=rng, dtype=torch.float64)
        seed = int(torch.randint(2**31, (), generator=rng))
        rest = torch.from_numpy(scipy.stats.chi2(self.dim - 1).rvs(z.shape, random_state=seed))
        data = Sphere(self.dim, radius=1.0).sample(1, rng)
        return Instance(data, facts=CrossedCounts(find_crossed_neurons(z, z.square() + rest, self.size)))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        if instance.network is not None:
            yield from super().hypotheses(instance)
        else:
            yield at_most("size of δ", self.size, 0.5)

    def counts(self, instance: Instance) -> Tensor:
        """Those of further draws, else of the network's own start."""
        drawn = instance.known(CrossedCounts)
        if drawn is not None:
            return drawn.counts
        ball = self.ball(instance)
        return find_crossed_neurons(ball.inputs, ball.start.W.square().sum(1), self.size)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(TOO_MANY, self.gamma, certain=True)]

    def witness(self, instance: Instance) -> Witness:
        counts = self.counts(instance)
        width = self.width if instance.network is None else instance.two_layer.width
        most = (1 + self.size) * most_unstable(width, self.radius / math.sqrt(width), self.gamma)
        many = int((counts > most).sum())
        low = clopper_pearson(many, len(counts))[0]
        return Witness({TOO_MANY: low, "fewest neurons that change sign": float(counts.min()), "printed limit": most})

    def probability(self, instance: Instance) -> float:
        return 1 - self.gamma


def find_crossed_neurons(inputs: Tensor, squared_norms: Tensor, size: float) -> Tensor:
    """Neurons with a zero of w(0)·(x + δ) within ‖δ‖ ≤ R: any W near them then differs in sign there, (draws,)."""
    return (inputs.abs() <= size * squared_norms.sqrt()).sum(1)


@dataclass(frozen=True)
class SignCrossing(Theorem):
    """One neuron w(0) ~ N(0, I), an example x on the unit sphere of R^`dim` and a fixed δ, ‖δ‖ ≤ R ≤ ½; `size` is R."""

    applies_to: ClassVar = "a unit example and a fixed perturbation; one neuron drawn from N(0, I)"

    dim: int = 784
    size: float = 1 / 28

    @abstractmethod
    def allowed(self, dim: float) -> float:
        """The stated probability."""

    def default(self, rng: Generator) -> Instance:
        return Instance(Sphere(self.dim, radius=1.0).sample(1, rng))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_most("deviation of ‖x‖ from 1", float((instance.data.X.norm(dim=1) - 1).abs().max()), EXACTLY)
        yield at_most("size of δ", self.size, 0.5)
        yield at_least("size of δ", self.size, 0)


@dataclass(frozen=True)
class RareCrossing(SignCrossing, id="wang2022/B.6"):
    """P(sign w(0)·x ≠ sign w(0)·(x+δ)) ≤ R√(2 ln d) + 1/d; exactly it is the angle between x and x+δ over π."""

    claim: ClassVar = "a fixed δ changes the sign of a neuron with probability at most R√(2 ln d) + 1/d"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(CHANGES, self.allowed(instance.data.dim), certain=True)]

    def witness(self, instance: Instance) -> Witness:
        """The worst δ of this size is tangent to the sphere round x: the angle is arcsin R."""
        return Witness({CHANGES: math.asin(self.size) / math.pi})

    def failures(self, trials: int, rng: Generator) -> Failures:
        """In the plane of x and x + δ the neuron has two independent N(0, 1) coordinates."""
        z = torch.randn(trials, 2, generator=rng, dtype=torch.float64)
        angle = math.asin(self.size)
        moved = math.cos(angle) * z[:, 0] + math.sin(angle) * z[:, 1]
        return Failures(int(((z[:, 0] > 0) != (moved > 0)).sum()), 0, self.allowed(self.dim))

    def allowed(self, dim: float) -> float:
        return self.size * math.sqrt(2 * math.log(dim)) + 1 / dim


@dataclass(frozen=True)
class RareCrossingNearby(SignCrossing, id="wang2022/B.6-net"):
    """P(∃ δ' in B(δ, ε), ∃ w in B(w(0), V): sign w·(x+δ) ≠ sign w·(x+δ')) ≤ 2ε(√d + 2√(d ln(2/ε))) + (1+R+ε)V.

    `epsilon` is ε, `reach` is V.
    """

    claim: ClassVar = "between x+δ and its ε-neighbours a neuron near w(0) rarely changes sign (equation 4)"
    note: ClassVar = (
        "the proof takes the variance of w·(x+δ) to be at least ½ where ‖δ‖ ≤ ½ gives ¼; the factor 2 covers it"
    )

    epsilon: float = 1e-4
    reach: float = 0.01

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().hypotheses(instance)
        yield at_most("ε", self.epsilon, 1)
        yield at_least("ε", self.epsilon, 1e-300)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(CHANGES, self.allowed(instance.data.dim), certain=True, trivial=1.0)]

    def witness(self, instance: Instance) -> Witness:
        """P|g| ≤ g*, averaged over the χ rest of ‖w(0)‖; the shortest x + δ, of norm 1-R, is the worst."""
        rest = scipy.stats.chi(instance.data.dim - 1)
        return Witness({CHANGES: float(rest.expect(lambda c: 2 * scipy.stats.norm.cdf(self._edge(c)) - 1))})

    def failures(self, trials: int, rng: Generator) -> Failures:
        g = torch.randn(trials, generator=rng, dtype=torch.float64).abs()
        seed = int(torch.randint(2**31, (), generator=rng))
        c = torch.from_numpy(scipy.stats.chi(self.dim - 1).rvs(trials, random_state=seed))
        return Failures(int((g <= self._edge(c)).sum()), 0, self.allowed(self.dim))

    def allowed(self, dim: float) -> float:
        near = 2 * self.epsilon * (math.sqrt(dim) + 2 * math.sqrt(dim * math.log(2 / self.epsilon)))
        return near + (1 + self.size + self.epsilon) * self.reach

    def _edge(self, c: Any) -> Any:
        """The largest |g| with |g|A ≤ V(A+ε) + ε√(g²+c²), A = ‖x+δ‖: beyond it no pair (w, δ') changes sign."""
        A, e = 1 - self.size, self.epsilon
        B = self.reach * (A + e)
        return (A * B + (A * A * B * B - (A * A - e * e) * (B * B - e * e * c * c)) ** 0.5) / (A * A - e * e)
