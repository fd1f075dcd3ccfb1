"""One perturbation flips every example of a KKT network on nearly orthogonal data (Theorem 4.1, Corollary 4.1)."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.data import AlmostOrthogonal, Data, Orthogonal
from brittle.networks import Network, TwoLayer
from brittle.theorems.base import ParameterRange, ScalingClaim, Theorem
from brittle.theorems.comparison import (
    LARGEST_MARGIN,
    LONGEST,
    Comparison,
    Promise,
    Scaling,
    Witness,
    at_least,
    at_most,
    fit_scaling,
    promise_at_most,
)
from brittle.theorems.helpers import kkt_network
from brittle.theorems.instance import Facts, Instance
from brittle.theorems.kkt_proof import (
    Approximation,
    AtKKTPoint,
    approximations,
    other_distances,
    other_measures,
    other_promises,
)
from brittle.theorems.vardi2022.groups import (
    ExampleGroups,
    almost_orthogonal_instance,
    geometry,
    make_surrounded_instance,
    robust_network,
    shares,
    sphere_at_its_limit,
)
from brittle.training import Exponential, Flow, LogLoss


@dataclass(frozen=True)
class UniversalOverExamples(AtKKTPoint):
    """z = (η1+η2) Σ y_i x_i over some of the examples takes each of these to margin ≤ -1.

    A network of smallest margin q is the one of the theorem times √q, so its margins fall to -q instead of -1. Where
    the instance knows `OtherPoints`, the same holds there.

    The default instance has `examples` in R^`dim` with inner products up to `coherence`, a share `balance` of them
    labelled -1; `kkt_tolerance` is the largest relative residual of a KKT point.
    """

    dim: int = 2000
    examples: int = 60
    coherence: float = 9.0
    balance: float = 0.2
    kkt_tolerance: float = 1e-6

    @abstractmethod
    def chosen(self, instance: Instance) -> Data:
        """The examples that z is made of and flips."""

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        yield from geometry(ExampleGroups(self.chosen(instance)))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().hypotheses(instance)
        yield from other_distances(instance, self.kkt_tolerance)

    def bound(self, instance: Instance) -> list[Promise]:
        longest = ExampleGroups(self.chosen(instance)).constants.longest
        flipped = promise_at_most(LARGEST_MARGIN, -instance.smallest_margin)
        return [promise_at_most(LONGEST, longest), flipped, *other_promises(instance)]

    def witness(self, instance: Instance) -> Witness:
        data = self.chosen(instance)
        moves = ExampleGroups(data).against(data.y)
        return Witness(other_measures(instance, data.X + moves, data.y), moves, data.X, data.y)

    def comparator(self, instance: Instance) -> Network | None:
        return robust_network(self.chosen(instance))


@dataclass(frozen=True)
class UniversalPerturbation(UniversalOverExamples, id="vardi2022/4.1"):
    """z = (η1+η2) Σ y_i x_i, η1 = (p+1)/(d-mp), η2 = 2(cc'+1)(d+1)/(mc(d-mp)), c' = m(p+1)/(d+1).

    The default instance is solved from `starts` starts, as the theorem speaks of every KKT point.
    """

    claim: ClassVar = "x - y z has margin ≤ -1 for every example of a KKT point, with ‖z‖ ≤ 18√2·√(d/m)/c"
    applies_to: ClassVar = "nearly orthogonal examples of norm √d, two-layer networks at a KKT point"
    unknowns: ClassVar = ("examples", "dim")
    note: ClassVar = (
        "The paper prints O(√(d/(c²m))); Lemma C.9 gives 18√2 (with c ≤ 1/2 even 15√2). "
        "Its own figures are outside the hypothesis: d = 1000, n = 31 on the sphere has p ≈ 90 and room for 3 or 4."
    )

    starts: int = 3

    def chosen(self, instance: Instance) -> Data:
        """All of them."""
        return instance.data

    def default(self, rng: Generator) -> Instance:
        sizes = (self.dim, self.examples, self.coherence)
        return almost_orthogonal_instance(*sizes, rng, balance=self.balance, starts=self.starts)

    def solve_for(self, unknown: str) -> ParameterRange:
        p, text = self.coherence, "m ≤ (d+1)/(3(p+1)), with at least one example of each label"
        if unknown == "examples":
            limit = (self.dim + 1) / (3 * (p + 1))
            least, most = (2.0, float(math.floor(limit))) if limit >= 2 else (math.nan, math.nan)
            return ParameterRange(self.id, unknown, least, most, {"dim": float(self.dim), "p": p}, text)
        if unknown == "dim":
            first = math.ceil(3 * self.examples * (p + 1) - 1)
            return ParameterRange(self.id, unknown, first, math.inf, {"examples": float(self.examples), "p": p}, text)
        return super().solve_for(unknown)


@dataclass(frozen=True)
class UniversalPerturbationOnTheMargin(UniversalOverExamples, id="vardi2022/C4.1"):
    """The same with I = {i: q_i = 1} in place of all examples; the other examples may be anything."""

    claim: ClassVar = "the same z, made of the examples on the margin alone, takes each of them to margin ≤ -1"
    applies_to: ClassVar = "two-layer networks at a KKT point whose examples on the margin are as in vardi2022/4.1"

    dim: int = 600
    examples: int = 40
    coherence: float = 3.0

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        """Nothing where an example is misclassified: none is on the margin then."""
        yield from super().about_data(instance) if math.isfinite(instance.kkt_distance) else ()

    def chosen(self, instance: Instance) -> Data:
        """Those on the margin."""
        return instance.data.take(instance.kkt.on_margin)

    def witness(self, instance: Instance) -> Witness:
        witness = super().witness(instance)
        counts = {"examples": len(instance.data), "examples on the margin": len(self.chosen(instance))}
        return replace(witness, measures={**witness.measures, **counts})

    def default(self, rng: Generator) -> Instance:
        """Longer examples round every one of them are beyond the margin, too many and too long for Theorem 4.1."""
        return make_surrounded_instance(self.dim, self.examples, self.coherence, rng, balance=self.balance)


# Theorems 2.1 and 4.1 together: a network that gradient flow has brought near a KKT point is flipped by the same z.


@dataclass(frozen=True)
class NearlyUniversal(Theorem, id="vardi2022/4.1-approximate"):
    """y N(x - y z) ≤ -1 + t + E(3 + ‖z‖/√(d+1)) + K at margin 1, with ε, δ and κ of the multipliers that cost least.

    E = ε‖θ‖‖v‖√(d+1), t is the most that they let a margin exceed 1, and K pays for slopes near kinks.

    Default: `examples` in R^`dim` with inner products up to `coherence`, a share `balance` of them labelled -1. Flow
    starts at a KKT point with noise of about `disturbance` times its largest entry added to each array, and ends at a
    log-loss of `until`: a part of the noise stays in θ, and ε falls as 1/‖θ‖. From a random start a neuron can take far
    longer to turn, and the cost is then above 1 in one draw of some dozens.
    """

    claim: ClassVar = "near a KKT point, ε and δ away, z of vardi2022/4.1 takes every margin below -1 + cost(ε, δ)"
    applies_to: ClassVar = "nearly orthogonal examples of norm √d, two-layer networks that classify them"
    note: ClassVar = "Not in the paper, which lets the flow run for ever; the derivation is in docs/approximate-kkt.md."

    dim: int = 40
    examples: int = 4
    coherence: float = 1.0
    balance: float = 0.25
    disturbance: float = 0.4
    until: float = -100.0

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        about_data = list(geometry(ExampleGroups(instance.data)))
        yield from about_data
        yield at_least("smallest margin", instance.smallest_margin, math.ulp(0.0))
        if instance.smallest_margin > 0 and all(each.holds for each in about_data):  # else there is no cost
            yield at_most("cost of ε and δ", self.cost(instance), math.nextafter(1.0, -math.inf))

    def bound(self, instance: Instance) -> list[Promise]:
        longest = ExampleGroups(instance.data).constants.longest
        after = (self.cost(instance) - 1) * instance.smallest_margin
        return [promise_at_most(LONGEST, longest), promise_at_most(LARGEST_MARGIN, after)]

    def witness(self, instance: Instance) -> Witness:
        groups, best = ExampleGroups(instance.data), self.best(instance)
        measures = {"ε": best.stationarity, "δ": best.complementarity, "κ": best.kink, "E": best.misfit}
        return Witness(measures, groups.against(instance.data.y))

    def cost(self, instance: Instance) -> float:
        """t + E(3 + ‖z‖/s) + K of the best approximation."""
        return _cost(self.best(instance), ExampleGroups(instance.data))

    def best(self, instance: Instance) -> Approximation:
        """The multipliers and slopes that cost least."""
        return _best(instance)

    def default(self, rng: Generator) -> Instance:
        data = AlmostOrthogonal(self.dim, self.coherence).sample(self.examples, rng, in_span=True)
        data = replace(data, y=shares(self.examples, self.balance))
        point = kkt_network(data, rng)
        W, b, v = (self._disturbed(each, rng) for each in (point.W, point.b, point.v))
        training = Flow(until=LogLoss(self.until), loss=Exponential("sum")).train(TwoLayer(W, b, v), data)
        return Instance(data, training.network)

    def _disturbed(self, array: Tensor, rng: Generator) -> Tensor:
        noise = torch.randn(array.shape, generator=rng, dtype=torch.float64) / math.sqrt(array.numel())
        return array + self.disturbance * array.abs().max() * noise


@cache
def _best(instance: Instance) -> Approximation:
    groups = ExampleGroups(instance.data)
    found = approximations(instance.two_layer, instance.data, math.sqrt(groups.dim + 1))
    return min(found, key=lambda each: _cost(each, groups))


def _cost(each: Approximation, groups: ExampleGroups) -> float:
    numbers = groups.constants
    return each.beyond_margin(numbers) + each.misfit * (3 + groups.length / each.reach) + each.kinks


# Example 1: how long the perturbation of Theorem 4.1 is as d grows.


@dataclass(frozen=True, eq=False)
class TwoSweeps(Facts):
    """`spheres` filled to their limits and `orthogonal` examples, each in several dimensions."""

    spheres: tuple[Data, ...]
    orthogonal: tuple[Data, ...]


@dataclass(frozen=True)
class Lengths(ScalingClaim, id="vardi2022/Ex1"):
    """‖z‖ depends on the examples alone: orthogonal ones (n = d/3), and the sphere filled to its limit, in the span.

    Default: spheres in the dimensions `dims`, orthogonal examples in `orthogonal_dims`.
    """

    claim: ClassVar = "‖z‖ = O(1) for n = Θ(d) almost orthogonal examples, Õ(d^{1/4}) for random ones at the limit"
    applies_to: ClassVar = "nearly orthogonal examples of norm √d"

    dims: tuple[int, ...] = (10**5, 10**6, 10**7)
    orthogonal_dims: tuple[int, ...] = (100, 300, 900)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from geometry(ExampleGroups(instance.data))

    def witness(self, instance: Instance) -> Witness:
        length, data = ExampleGroups(instance.data).length, instance.data
        return Witness({"n": len(data), "‖z‖": length, "‖z‖/√d": length / math.sqrt(data.dim)})

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        sweeps = instance.known(TwoSweeps)
        if sweeps is None:
            return ()
        orthogonal = [ExampleGroups(data).length for data in sweeps.orthogonal]
        random = [ExampleGroups(data).length / math.log(len(data)) ** 0.25 for data in sweeps.spheres]
        dims = [data.dim for data in sweeps.spheres]
        return (
            fit_scaling("‖z‖, orthogonal, n = d/3", "d", 0.0, self.orthogonal_dims, orthogonal),
            fit_scaling("‖z‖/ln(n)^(1/4), sphere at its limit", "d", 0.25, dims, random),
        )

    def default(self, rng: Generator) -> Instance:
        spheres = tuple(sphere_at_its_limit(dim, rng) for dim in self.dims)
        orthogonal = tuple(Orthogonal(dim).sample(dim // 3 // 2 * 2, in_span=True) for dim in self.orthogonal_dims)
        return Instance(spheres[-1], facts=TwoSweeps(spheres, orthogonal))
