"""The lemmas behind Theorem 4.1, each as a check on the multipliers of a KKT point."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Generator

from brittle.theorems.base import (
    Comparison,
    Instance,
    Promise,
    Theorem,
    Witness,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.vardi2022.instances import sphere_instance
from brittle.theorems.vardi2022.sizes import Sizes, geometry, kkt_point_up_to


@dataclass(frozen=True)
class Lemma(Theorem):
    """What the lemmas share: the suppositions of Theorem 4.1, and a sphere sampled in the span as default."""

    applies_to: ClassVar = "KKT points on nearly orthogonal examples of norm √d"

    dim: int = 100_000
    examples: int = 17
    kkt_tolerance: float = 1e-6

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from geometry(Sizes(instance.data))
        yield kkt_point_up_to(self.kkt_tolerance, instance)

    def default(self, rng: Generator) -> Instance:
        return sphere_instance(self.dim, self.examples, rng)


@dataclass(frozen=True)
class AllOnTheMargin(Lemma):
    """Lemma C.1, for the network scaled to smallest margin 1."""

    id: ClassVar = "vardi2022/C.1"
    claim: ClassVar = "every example has margin exactly 1"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most("largest margin", 1, tolerance=self.kkt_tolerance)]

    def witness(self, instance: Instance) -> Witness:
        q = instance.kkt.network.margins(instance.data.X, instance.data.y)
        return Witness({"largest margin": float(q.max())})


@dataclass(frozen=True)
class MultiplierSums(Lemma):
    """Lemma C.2: neither sign of neurons is made of little."""

    id: ClassVar = "vardi2022/C.2"
    claim: ClassVar = "Σ_i Σ_{J±} v_j² λ_i σ'_ij ≥ mc/((cc'+1)(d+1)) for the positive and for the negative neurons"

    def bound(self, instance: Instance) -> list[Promise]:
        sizes = Sizes(instance.data)
        c = sizes.balance
        least = sizes.examples * c / ((c * sizes.share + 1) * (sizes.dim + 1))
        return [promise_at_least(f"sum over the {side} neurons", least, 1e-12) for side in ("positive", "negative")]

    def witness(self, instance: Instance) -> Witness:
        sums = {"positive": instance.kkt.sums(+1), "negative": instance.kkt.sums(-1)}
        return Witness({f"sum over the {side} neurons": float(each.sum()) for side, each in sums.items()})


@dataclass(frozen=True)
class InputsNotVeryNegative(Lemma):
    """Lemma C.3, as a ratio so that neurons of every size count alike."""

    id: ClassVar = "vardi2022/C.3"
    claim: ClassVar = "w_j·x_i + b_j ≥ -(p+1) Σ_l |v_j| λ_l σ'_lj for every example and neuron"

    measure: ClassVar = "smallest input over (p+1) Σ|v_j|λσ'"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(self.measure, -1)]

    def witness(self, instance: Instance) -> Witness:
        inputs = instance.kkt.network.preactivations(instance.data.X)
        return Witness({self.measure: instance.kkt.smallest_ratio(inputs) / (Sizes(instance.data).coherence + 1)})


@dataclass(frozen=True)
class DirectionOfEveryNeuron(Lemma):
    """Lemma C.4 with u = Σ y_i x_i; an equality for orthogonal examples."""

    id: ClassVar = "vardi2022/C.4"
    claim: ClassVar = "sign(v_j) w_j·u ≥ (d-mp) Σ_i |v_j| λ_i σ'_ij for every neuron"

    measure: ClassVar = "smallest sign(v_j) w_j·u over (d-mp) Σ|v_j|λσ'"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(self.measure, 1)]

    def witness(self, instance: Instance) -> Witness:
        network, sizes = instance.kkt.network, Sizes(instance.data)
        along = (network.v.sign() * (network.W @ sizes.direction))[None]
        return Witness({self.measure: instance.kkt.smallest_ratio(along) / sizes.room})


@dataclass(frozen=True)
class RoomIsPositive(Lemma):
    """Lemma C.5; the proof gives d/3, not only 0. It needs no network."""

    id: ClassVar = "vardi2022/C.5"
    claim: ClassVar = "d - mp ≥ d/3 > 0"
    applies_to: ClassVar = "nearly orthogonal examples of norm √d"

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from geometry(Sizes(instance.data))

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least("d - mp", instance.data.dim / 3)]

    def witness(self, instance: Instance) -> Witness:
        return Witness({"d - mp": Sizes(instance.data).room})


@dataclass(frozen=True)
class NeuronsAreOpened(Lemma):
    """Lemma C.6 at η = η1, the smallest that it admits."""

    id: ClassVar = "vardi2022/C.6"
    claim: ClassVar = "after η1 Σ y_i x_i every neuron has an input ≥ 0: at x - z where v_j < 0, at x + z where v_j > 0"

    measure: ClassVar = "smallest opened input over (p+1) Σ|v_j|λσ'"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(self.measure, 0)]

    def witness(self, instance: Instance) -> Witness:
        network, sizes = instance.kkt.network, Sizes(instance.data)
        along = network.v.sign() * (network.W @ (sizes.opening * sizes.direction))
        opened = network.preactivations(instance.data.X) + along
        return Witness({self.measure: instance.kkt.smallest_ratio(opened) / (sizes.coherence + 1)})
