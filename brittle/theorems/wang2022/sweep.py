"""Theorem 3.1 and Corollary 3.2, at networks as training leaves them and at the worst of the ball."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.networks import TwoLayer
from brittle.theorems.base import ParameterRange, ScalingClaim, chance
from brittle.theorems.comparison import Comparison, Scaling, Witness, at_least, fit_scaling
from brittle.theorems.instance import Facts, Instance
from brittle.theorems.wang2022.attack import OUTPUT, OneStep, one_step, together
from brittle.theorems.wang2022.ball import APPLIES, WeightBall, about_ball, lazy_instance
from brittle.theorems.wang2022.worst import WorstCase, hardest_for_all

CLAIMED = {"‖δ‖": -0.5, "η": -1.0, "‖∇f‖": 0.5}
FAILS = "smallest C0/√d at which the step C2 fails for a W of the ball"
NEVER = "share of the worst W that no step along the gradient flips, at C0/√d = {:.2g}"
RADIUS_90 = "radius that flips 90 % of the examples"


def step_constant(radius: float) -> float:
    """C2 = 2 + C0: above |f| in the whole ball for four starts in five, and independent of m and d."""
    return 2 + radius


def fails_at(network: TwoLayer, instance: Instance, radius: float) -> bool:
    """Whether δ = η∇f with |η| = C2/‖∇f‖² leaves an example its sign, or is longer than the example."""
    X = instance.data.X
    y = network.logits(X).sign()
    g = network.logit_gradients(X, y)
    D = -step_constant(radius) * g / g.square().sum(1, keepdim=True)
    flipped = network.margins(X + D, y) < 0
    return not bool((flipped & (D.norm(dim=1) < 1)).all())


@dataclass(frozen=True, eq=False)
class WorstStep(OneStep):
    """The longest flip, the shortest gradient and the largest output of a ball, at three networks; `along` is ‖∇f‖
    where the flip is longest."""

    along: Tensor

    @property
    def rate(self) -> Tensor:
        """|η| of the longest flip."""
        return self.size / self.along

    @property
    def per_output(self) -> Tensor:
        """‖δ‖/|f|, both the largest."""
        return self.size / self.output


@dataclass(frozen=True, eq=False)
class Rung:
    """Networks of one C0, which is `radius`, in every dimension: steps against `typical` ones and against the `worst`
    of the ball, and whether the step C2 fails for one of the worst in the last dimension: `failed`."""

    radius: float
    typical: tuple[OneStep, ...]
    worst: tuple[WorstStep, ...]
    failed: bool


@dataclass(frozen=True, eq=False)
class OneStepSweep(Facts):
    """`rungs` for growing C0, each over the dimensions `dims`."""

    dims: tuple[int, ...]
    rungs: tuple[Rung, ...]

    def ratio(self, rung: Rung) -> float:
        """C0/√d at the largest d."""
        return rung.radius / math.sqrt(self.dims[-1])

    @property
    def fails_from(self) -> float:
        """The smallest C0/√d at which the claim fails; infinite where it does not."""
        return min((self.ratio(rung) for rung in self.rungs if rung.failed), default=math.inf)

    @property
    def never_flipped(self) -> dict[str, float]:
        """For every C0 the share of the worst networks that no step along their gradient flips."""
        sizes = {self.ratio(rung): torch.cat([step.size for step in rung.worst]) for rung in self.rungs}
        return {NEVER.format(ratio): float(size.isinf().double().mean()) for ratio, size in sizes.items()}

    def exponents(self, name: str, claimed: float) -> Iterator[Scaling]:
        """How the mean of one of the named quantities grows with d, for every C0, typical and worst."""
        for rung in self.rungs:
            kinds: tuple[tuple[str, Sequence[OneStep]], ...] = (("typical", rung.typical), ("worst", rung.worst))
            for kind, steps in kinds:
                values = [_mean(step.named()[name]) for step in steps]
                if all(0 < value < math.inf for value in values):
                    label = f"{name} {kind} at C0/√d = {self.ratio(rung):.2g}"
                    yield fit_scaling(label, "d", claimed, self.dims, values)


def _mean(values: Tensor) -> float:
    """Of the finite ones: a step that flips nowhere is counted apart."""
    return float(values[values.isfinite()].mean())


@dataclass(frozen=True)
class LazySweep(ScalingClaim):
    """Lazy networks of width ⌈d^2.4⌉ at several dimensions `dims`.

    `radius` is C0; there are `networks` of `examples` each at every dimension, trained for `steps` that would just
    reach the ball's edge.
    """

    applies_to: ClassVar = APPLIES

    dims: tuple[int, ...] = (25, 36, 49)
    radius: float = 0.7
    examples: int = 10
    networks: int = 3
    steps: int = 2

    def drawn(self, dim: int, radius: float, rng: Generator) -> Instance:
        """One network of this C0, trained inside its ball."""
        rate = 4 * radius * math.sqrt(self.examples) / self.steps
        return lazy_instance(dim, math.ceil(dim**2.4), radius, self.examples, self.steps, rng, rate)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        ball = WeightBall(instance, self.radius)
        yield from about_ball(ball)
        yield at_least("width beside d^2.4", ball.width, ball.dim**2.4)

    @abstractmethod
    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        """Typical and worst."""


@dataclass(frozen=True)
class OneStepFlips(LazySweep, id="wang2022/3.1"):
    """‖x‖ = 1, max{d^2.4, C3 ln(1/γ)} ≤ m ≤ C4 exp(d^0.24) ⇒ δ = η∇_x f(x), |η| = C2/‖∇f‖², flips x for all W in
    the ball at once, w.p. ≥ 1-γ. So ‖∇f‖ = Ω(√d), η = O(1/d), ‖δ‖ = O(1/√d). C0, C2, C3, C4 are not given.

    For every C0 = `ratios`·√d (d the largest of `dims`, C0 the same for all), exponents are fitted at trained networks
    and at the W of the ball that a search finds worst for ‖δ‖ at one example of each. The step of fixed C2 = 2 + C0
    fails for a W where it does not flip or is longer than x. `dim` is d for `solve_for`, `gamma` is γ.
    """

    claim: ClassVar = "one gradient step of size O(1/√d) flips every network in the lazy ball"
    unknowns: ClassVar = ("width",)
    note: ClassVar = (
        "true for C0 fixed as d grows; where C0 is comparable to √d, W can turn the gradient toward x, and the flip "
        "becomes as long as x. Section 5.1 prints δ = η∇_w f for ∇_x f"
    )

    ratios: tuple[float, ...] = (0.1, 0.4, 1.0)
    dim: int = 784
    gamma: float = chance(0.01)

    def default(self, rng: Generator) -> Instance:
        """The largest network of the smallest C0, with what was measured in all balls as facts."""
        first, rungs = None, []
        for ratio in self.ratios:
            radius = ratio * math.sqrt(self.dims[-1])
            instance, rung = self._rung(radius, rng)
            first = first or instance
            rungs.append(rung)
        assert first is not None
        return replace(first, facts=OneStepSweep(self.dims, tuple(rungs)))

    def _rung(self, radius: float, rng: Generator) -> tuple[Instance, Rung]:
        typical, worst, failed = [], [], False
        for dim in self.dims:
            instances = [self.drawn(dim, radius, rng) for _ in range(self.networks)]
            typical.append(together([one_step(each.two_layer, each.data.X) for each in instances]))
            hardest = [hardest_step(each, radius) for each in instances]
            worst.append(together([step for step, _ in hardest]))
            failed = any(fails for _, fails in hardest)
        return instances[-1], Rung(radius, tuple(typical), tuple(worst), failed)

    def witness(self, instance: Instance) -> Witness:
        steps = {"mean": one_step(instance.two_layer, instance.data.X), "worst": hardest_step(instance, self.radius)[0]}
        sizes = {f"{kind} {name}": float(each.mean()) for kind, s in steps.items() for name, each in s.named().items()}
        sweep = instance.known(OneStepSweep)
        return Witness(sizes if sweep is None else {**sizes, FAILS: sweep.fails_from, **sweep.never_flipped})

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        sweep = instance.known(OneStepSweep)
        if sweep is None:
            return ()
        fits = [fit for name, claimed in CLAIMED.items() for fit in sweep.exponents(name, claimed)]
        return (*fits, *sweep.exponents(OUTPUT, math.nan))

    def solve_for(self, unknown: str) -> ParameterRange:
        """With C3 = C4 = 1, for want of others."""
        if unknown != "width":
            return super().solve_for(unknown)
        least = max(self.dim**2.4, math.log(1 / self.gamma))
        room, given = self.dim**0.24, {"dim": self.dim, "gamma": self.gamma}
        opens = f"C3 = C4 = 1; d^2.4 ≤ exp(d^0.24) holds from d = {first_open_dim():.4g} on (and at d = 1)"
        if math.log(least) > room:
            why = f"there is none: d^2.4 = {least:.6g} > exp(d^0.24) = {math.exp(room):.6g}"
            return ParameterRange(self.id, unknown, math.nan, math.nan, given, f"{why}; {opens}")
        most = math.exp(room) if room < 700 else math.inf
        return ParameterRange(self.id, unknown, math.ceil(least), most, given, f"d^2.4 ≤ m ≤ exp(d^0.24); {opens}")


def hardest_step(instance: Instance, radius: float) -> tuple[WorstStep, bool]:
    """The steps against the worst networks of the ball at the first example, and whether C2 fails for one of them."""
    one = replace(instance, data=replace(instance.data, X=instance.data.X[:1], y=instance.data.y[:1]))
    worst = WorstCase(WeightBall(one, radius))
    flip = one_step(worst.flip, one.data.X)
    shortest = one_step(worst.gradient, one.data.X).gradient
    largest = one_step(worst.output, one.data.X).output
    fails = any(fails_at(network, one, radius) for network in (worst.flip, worst.gradient, worst.output))
    return WorstStep(flip.size, shortest, largest, flip.gradient), fails


def first_open_dim() -> float:
    """The larger root of 2.4 ln d = d^0.24."""
    low, high = 100.0, 1e12
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if 2.4 * math.log(middle) <= middle**0.24 else (middle, high)
    return high


@dataclass(frozen=True)
class RobustRadii(Facts):
    """For every dimension in `dims` the radii at which 90 % of the examples flip, of each network as trained
    (`typical`) and of the W of its ball that holds out longest (`worst`)."""

    dims: tuple[int, ...]
    typical: tuple[tuple[float, ...], ...]
    worst: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class NoRobustLazyNetwork(LazySweep, id="wang2022/C3.2"):
    """For data on the unit sphere, R = Õ(1/√d): L_R(W) ≥ 0.9 for all W in the ball at once, w.p. ≥ 1-10γ.

    For each network on its own the radius at which 90 % of its examples flip, and the largest such radius that a search
    over the W of its ball finds: the infimum of the robust error. `constant` is that of R = `constant`/√d.
    """

    claim: ClassVar = "no lazy network is robust: at R = Õ(1/√d) its robust error is at least 0.9"
    note: ClassVar = (
        "'for all W' needs an infimum over the ball where the proof writes a supremum, and C0/√m where it "
        "writes C0/√d; "
        "Markov's inequality then gives 1-10γ as stated. The radius is that of one gradient step, an upper "
        "bound on the "
        "robust radius"
    )

    constant: float = 5.0

    def default(self, rng: Generator) -> Instance:
        instance, typical, worst = None, [], []
        for dim in self.dims:
            instances = [self.drawn(dim, self.radius, rng) for _ in range(self.networks)]
            typical.append(tuple(radius_90(each.two_layer, each) for each in instances))
            worst.append(tuple(radius_90(hardest_for_all(WeightBall(each, self.radius)), each) for each in instances))
            instance = instances[-1]
        assert instance is not None
        return replace(instance, facts=RobustRadii(self.dims, tuple(typical), tuple(worst)))

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        radii = instance.known(RobustRadii)
        if radii is None:
            return ()
        kinds: Sequence[tuple[str, tuple[tuple[float, ...], ...]]] = (
            ("typical", radii.typical),
            ("worst", radii.worst),
        )
        means = {kind: [sum(each) / len(each) for each in values] for kind, values in kinds}
        finite = {kind: values for kind, values in means.items() if all(map(math.isfinite, values))}
        return tuple(
            fit_scaling(f"{RADIUS_90}, {kind}", "d", -0.5, radii.dims, values) for kind, values in finite.items()
        )

    def witness(self, instance: Instance) -> Witness:
        networks = {"typical": instance.two_layer, "worst": hardest_for_all(WeightBall(instance, self.radius))}
        measures, limit = {}, self.constant / math.sqrt(instance.data.dim)
        for kind, network in networks.items():
            sizes = one_step(network, instance.data.X).size
            measures[f"{RADIUS_90}, {kind}"] = radius_90(network, instance)
            measures[f"robust error at {self.constant:g}/√d, {kind}"] = float((sizes <= limit).double().mean())
        return Witness(measures)


def radius_90(network: TwoLayer, instance: Instance) -> float:
    """The smallest radius at which one gradient step flips 90 % of the examples of this network."""
    sizes = one_step(network, instance.data.X).size.sort().values
    return float(sizes[math.ceil(0.9 * len(sizes)) - 1])
