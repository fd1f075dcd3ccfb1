"""The steps of the shared proof that are worded alike in both papers; a paper's lemma names its groups and examples."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.data import Data
from brittle.kkt import residual
from brittle.networks import TwoLayer
from brittle.theorems.base import Theorem
from brittle.theorems.comparison import Comparison, Promise, Witness, at_most, promise_at_least, promise_at_most
from brittle.theorems.instance import Facts, Instance
from brittle.theorems.kkt_proof.constants import Groups, ProofConstants


class AboutData(Theorem):
    """A statement that supposes something of the data alone."""

    @abstractmethod
    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        """What is supposed of the data."""

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from self.about_data(instance)


class AtKKTPoint(AboutData):
    """A statement about KKT points: the relative residual of the network must be at most `kkt_tolerance`."""

    kkt_tolerance: float

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from self.about_data(instance)
        yield at_most("distance from a KKT point", instance.kkt_distance, self.kkt_tolerance)


class ProofStep(Theorem):
    """A step of the chain as a promise about one number; `measure` is the paper's name for it.

    Inputs are measured in loads, so that neurons of every size count alike.
    """

    measure: ClassVar[str]

    @abstractmethod
    def groups(self, instance: Instance) -> Groups:
        """The groups of the paper."""

    @abstractmethod
    def admitted(self, instance: Instance) -> Tensor:
        """The examples at which the paper's lemma speaks, (n, columns)."""

    @abstractmethod
    def least(self, instance: Instance) -> float:
        """What is promised."""

    @abstractmethod
    def smallest(self, instance: Instance) -> float:
        """What is measured."""

    def bound(self, instance: Instance) -> list[Promise]:
        """The number is at least `least`."""
        return [promise_at_least(self.measure, self.least(instance))]

    def witness(self, instance: Instance) -> Witness:
        """The number."""
        return Witness({self.measure: self.smallest(instance)})


class NeuronStep(ProofStep):
    """A step about every neuron of a KKT point, which is one up to `kkt_tolerance`."""

    kkt_tolerance: float

    def unexplained(self, instance: Instance) -> float:
        """ε‖θ‖: by how much a neuron's weights may differ from what its examples make of them.

        Where ε is beyond the tolerance, and the conclusion is evaluated all the same, it explains no more than that.
        """
        allowed = min(instance.kkt.stationarity, self.kkt_tolerance)
        return allowed * math.sqrt(float(instance.kkt.network.squared_norm))


class InputLowerBound(NeuronStep):
    """w_j·x + b_j ≥ -dip L_j for every admitted example and neuron, up to what ε explains."""

    def least(self, instance: Instance) -> float:
        """-1 of the dip."""
        return -1.0

    def smallest(self, instance: Instance) -> float:
        """The smallest input over dip L_j."""
        X = self.admitted(instance)
        lever = (X.square().sum(1, keepdim=True) + 1).sqrt()
        inputs = instance.kkt.network.preactivations(X) + self.unexplained(instance) * lever
        return instance.kkt.smallest_ratio(inputs) / self.groups(instance).constants.dip


class DirectionMeetsNeurons(NeuronStep):
    """sign(v_j) w_j·u ≥ room L_j for every neuron, up to what ε and the rounding of ‖μ‖ explain."""

    def least(self, instance: Instance) -> float:
        """All of the room."""
        return 1.0

    def smallest(self, instance: Instance) -> float:
        """The smallest sign(v_j) w_j·u over room L_j."""
        network, groups = instance.kkt.network, self.groups(instance)
        along = network.v.sign() * (network.W @ groups.direction)
        along = along + self.unexplained(instance) * torch.linalg.vector_norm(groups.direction)
        room = groups.constants.room
        return (instance.kkt.smallest_ratio(along[None]) + groups.square_error) / room


class GapPositive(ProofStep):
    """room > 0, by as much as the paper's limit on k gives; it needs no network."""

    def least(self, instance: Instance) -> float:
        """What the limit leaves."""
        return self.groups(instance).constants.least_room

    def smallest(self, instance: Instance) -> float:
        """The room."""
        return self.groups(instance).constants.room


class NeuronsActivated(NeuronStep):
    """w_j·(x + sign(v_j) η1 u) + b_j ≥ 0 for every admitted example and neuron, up to what ε explains."""

    def least(self, instance: Instance) -> float:
        """Open."""
        return 0.0

    def smallest(self, instance: Instance) -> float:
        """The smallest opened input over dip L_j."""
        network, groups = instance.kkt.network, self.groups(instance)
        step = groups.constants.opening * groups.direction
        X = self.admitted(instance)
        lever = (X.square().sum(1, keepdim=True) + 1).sqrt() + torch.linalg.vector_norm(step)
        opened = network.preactivations(X) + network.v.sign() * (network.W @ step) + self.unexplained(instance) * lever
        rounded = groups.constants.opening * groups.square_error
        return (instance.kkt.smallest_ratio(opened) + rounded) / groups.constants.dip


class MarginFlips(ProofStep):
    """y N(x - y z) ≤ -1 for every admitted example of the label `side`."""

    side: ClassVar[int]

    @abstractmethod
    def admitted_labels(self, instance: Instance) -> Tensor:
        """The labels of the admitted examples, (n,)."""

    def bound(self, instance: Instance) -> list[Promise]:
        """Below -1, as the network is at margin 1."""
        return [promise_at_most(self.measure, -1)]

    def least(self, instance: Instance) -> float:
        """Nothing: the number is bounded from above."""
        return -math.inf

    def smallest(self, instance: Instance) -> float:
        """The largest margin after z."""
        y = self.admitted_labels(instance)
        moved = self.admitted(instance) + self.groups(instance).against(y)
        return float(instance.kkt.network.margins(moved, y)[y == self.side].max())


class PerturbationLength(ProofStep):
    """‖z‖ is at most what the first line of C.9 and D.9 makes of ‖u‖² ≤ kd + k²p, and at most `longest`."""

    def bound(self, instance: Instance) -> list[Promise]:
        """Both lines; the rounding of ‖μ‖ is paid for."""
        groups, numbers = self.groups(instance), self.groups(instance).constants
        steps = numbers.opening + numbers.crossing
        first = steps * math.sqrt(numbers.groups * numbers.dim + numbers.groups**2 * numbers.coherence)
        error = groups.radius_error
        return [promise_at_most(self.measure, most, tolerance=1e-9 + error) for most in (first, numbers.longest)]

    def least(self, instance: Instance) -> float:
        """Nothing: the length is bounded from above."""
        return 0.0

    def smallest(self, instance: Instance) -> float:
        """The length."""
        return self.groups(instance).length


# Several KKT points of one data set: the theorems speak of every one.


LARGEST_ELSEWHERE = "largest margin after it at the other KKT points"


@dataclass(frozen=True, eq=False)
class OtherPoints(Facts):
    """`networks`: further KKT points of the same data, from other starts."""

    networks: tuple[TwoLayer, ...]


def others(instance: Instance) -> tuple[Instance, ...]:
    """The same data at the other points."""
    facts = instance.known(OtherPoints)
    return () if facts is None else tuple(Instance(instance.data, network) for network in facts.networks)


def other_distances(instance: Instance, tolerance: float) -> Iterator[Comparison]:
    """They are KKT points too."""
    if points := others(instance):
        farthest = max(point.kkt_distance for point in points)
        yield at_most("distance of the others from a KKT point", farthest, tolerance)


def other_promises(instance: Instance) -> list[Promise]:
    """The same perturbation takes the same examples to margin ≤ -1 there, each point being scaled to margin 1."""
    return [promise_at_most(LARGEST_ELSEWHERE, -1)] if others(instance) else []


def other_measures(instance: Instance, moved: Tensor, y: Tensor) -> dict[str, float]:
    """The largest margin of the moved examples there, in units of each point's own margin."""
    margins = [float(p.two_layer.margins(moved, y).max()) / p.smallest_margin for p in others(instance)]
    return {LARGEST_ELSEWHERE: max(margins)} if margins else {}


# What the shared proof leaves of its conclusion at a network that is only near a KKT point.
#
# Derived in docs/approximate-kkt.md. The network is scaled to min q = 1 and explained by multipliers λ and slopes σ'
# up to ε and δ; wherever the proof writes a neuron as a sum over the examples, that sum is off by r_j with Σ‖r_j‖² ≤
# ε²‖θ‖².


KINKS = (1e-6, 1e-4, 1e-3, 1e-2)  # near a kink any slope may be taken: how near is best is tried


@dataclass(frozen=True)
class Approximation:
    """How a network is explained by its examples.

    `stationarity` is ε, `complementarity` δ, `kink` κ: at inputs up to κ‖w̃_j‖‖x̃_i‖ the slope is free. `norm` is ‖θ‖ and
    `outer` ‖v‖ at margin 1, `total` Σλ_i, and `reach` the largest ‖x̃‖ = √(‖x‖² + 1).
    """

    stationarity: float
    complementarity: float
    kink: float
    norm: float
    outer: float
    total: float
    reach: float

    @property
    def misfit(self) -> float:
        """E = ε‖θ‖‖v‖s ≥ Σ_j |v_j|‖r_j‖‖x̃‖: by how much an output may differ from what the examples make of it."""
        return self.stationarity * self.norm * self.outer * self.reach

    @property
    def kinks(self) -> float:
        """K = κs‖θ‖²/2 ≥ Σ_j |v_j| κ‖w̃_j‖‖x̃‖."""
        return self.kink * self.reach * self.norm**2 / 2

    @property
    def slack(self) -> float:
        """δ Σλ ‖v‖²: over q - 1 it bounds Σ_j v_j² λ_i σ'_ij of an example of margin q."""
        return self.complementarity * self.total * self.outer**2

    def largest_sum(self, numbers: ProofConstants) -> float:
        """α: the most that Σ v_j² λ_i σ'_ij can be over a group and the neurons of one sign (C.1, A.10)."""
        own = numbers.within * (1 - 2 * numbers.share)
        here = 1 + self.misfit
        on_its_side = (here + math.sqrt(here**2 + 4 * own * self.slack)) / (2 * own)
        on_the_other = (self.misfit + self.kinks) / (numbers.within * (1 - numbers.share))
        return max(on_its_side, on_the_other)

    def beyond_margin(self, numbers: ProofConstants) -> float:
        """The most that a margin can exceed 1 where every group is one example (C.1)."""
        spare = 1 - numbers.share * numbers.within * self.largest_sum(numbers) - self.misfit
        return (math.sqrt(spare**2 + 4 * numbers.within * self.slack) - spare) / 2


def approximations(network: TwoLayer, data: Data, reach: float) -> list[Approximation]:
    """The network with the multipliers that explain it best, for several widths of the kinks."""
    network = network.to(torch.float64)
    scaled = network.scaled(float(network.margins(data.X, data.y).min()) ** -0.5)
    norm, outer = math.sqrt(float(scaled.squared_norm)), float(scaled.v.norm())
    found = []
    for kink in KINKS:
        measured = residual(scaled, data, margin_tolerance=math.inf, kink_tolerance=kink)
        errors = (measured.stationarity, measured.complementarity, kink)
        found.append(Approximation(*errors, norm, outer, float(measured.multipliers.sum()), reach))
    return found
