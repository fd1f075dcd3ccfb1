"""The steps of the shared proof that are worded alike in both papers; a paper's lemma names its groups and examples."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from brittle.theorems.base import Theorem
from brittle.theorems.comparison import Comparison, Promise, at_most, promise_at_least, promise_at_most
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof.groups import Groups
from brittle.theorems.witness import Witness


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


class Step(Theorem):
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


class NeuronStep(Step):
    """A step about every neuron of a KKT point, which is one up to `kkt_tolerance`."""

    kkt_tolerance: float

    def unexplained(self, instance: Instance) -> float:
        """ε‖θ‖: by how much a neuron's weights may differ from what its examples make of them.

        Where ε is beyond the tolerance, and the conclusion is evaluated all the same, it explains no more than that.
        """
        allowed = min(instance.kkt.stationarity, self.kkt_tolerance)
        return allowed * math.sqrt(float(instance.kkt.network.squared_norm))


class Dip(NeuronStep):
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


class Direction(NeuronStep):
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


class Room(Step):
    """room > 0, by as much as the paper's limit on k gives; it needs no network."""

    def least(self, instance: Instance) -> float:
        """What the limit leaves."""
        return self.groups(instance).constants.least_room

    def smallest(self, instance: Instance) -> float:
        """The room."""
        return self.groups(instance).constants.room


class Opening(NeuronStep):
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


class Crossing(Step):
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


class Length(Step):
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
