"""The lemmas behind Theorem 4.1, each as a check on the multipliers of a KKT point."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Generator, Tensor

from brittle.theorems import kkt_proof
from brittle.theorems.comparison import Comparison, Promise, Witness, promise_at_least, promise_at_most
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import AboutData, AtKKTPoint
from brittle.theorems.vardi2022.groups import ExampleGroups, geometry, sphere_instance


@dataclass(frozen=True)
class OrthogonalLemma(AboutData):
    """What the lemmas share: the suppositions of Theorem 4.1 on the data, and a sphere sampled in the span as default.

    `dim` and `examples` are the sizes of the default instance.
    """

    applies_to: ClassVar = "nearly orthogonal examples of norm √d"

    dim: int = 100_000
    examples: int = 17

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        yield from geometry(self.groups(instance))

    def default(self, rng: Generator) -> Instance:
        return sphere_instance(self.dim, self.examples, rng)

    def groups(self, instance: Instance) -> ExampleGroups:
        """Every example by itself."""
        return ExampleGroups(instance.data)

    def admitted(self, instance: Instance) -> Tensor:
        """The lemmas speak of the training examples."""
        return instance.data.X

    def admitted_labels(self, instance: Instance) -> Tensor:
        """Their labels."""
        return instance.data.y


@dataclass(frozen=True)
class OrthogonalKKTLemma(OrthogonalLemma, AtKKTPoint):
    """A lemma about a KKT point, which the network must be up to `kkt_tolerance`."""

    applies_to: ClassVar = "KKT points on nearly orthogonal examples of norm √d"

    kkt_tolerance: float = 1e-6


@dataclass(frozen=True)
class AllOnTheMargin(OrthogonalKKTLemma, id="vardi2022/C.1"):
    """Lemma C.1, for the network scaled to smallest margin 1."""

    claim: ClassVar = "every example has margin exactly 1"

    def bound(self, instance: Instance) -> list[Promise]:
        most = self.groups(instance).constants.before
        return [promise_at_most("largest margin", most, tolerance=self.kkt_tolerance)]

    def witness(self, instance: Instance) -> Witness:
        q = instance.kkt.network.margins(instance.data.X, instance.data.y)
        return Witness({"largest margin": float(q.max())})


@dataclass(frozen=True)
class MultiplierSums(OrthogonalKKTLemma, id="vardi2022/C.2"):
    """Lemma C.2: neither sign of neurons is made of little."""

    claim: ClassVar = "Σ_i Σ_{J±} v_j² λ_i σ'_ij ≥ mc/((cc'+1)(d+1)) for the positive and for the negative neurons"

    def bound(self, instance: Instance) -> list[Promise]:
        mass, sides = self.groups(instance).constants.mass, ("positive", "negative")
        return [promise_at_least(f"sum over the {side} neurons", mass, tolerance=1e-12) for side in sides]

    def witness(self, instance: Instance) -> Witness:
        sums = {"positive": instance.kkt.sums(+1), "negative": instance.kkt.sums(-1)}
        return Witness({f"sum over the {side} neurons": float(shares.sum()) for side, shares in sums.items()})


@dataclass(frozen=True)
class LemmaC3(OrthogonalKKTLemma, kkt_proof.InputLowerBound, id="vardi2022/C.3"):
    """Lemma C.3, as a ratio so that neurons of every size count alike."""

    claim: ClassVar = "w_j·x_i + b_j ≥ -(p+1) Σ_l |v_j| λ_l σ'_lj for every example and neuron"
    measure: ClassVar = "smallest input over (p+1) Σ|v_j|λσ'"


@dataclass(frozen=True)
class LemmaC4(OrthogonalKKTLemma, kkt_proof.DirectionMeetsNeurons, id="vardi2022/C.4"):
    """Lemma C.4 with u = Σ y_i x_i; an equality for orthogonal examples."""

    claim: ClassVar = "sign(v_j) w_j·u ≥ (d-mp) Σ_i |v_j| λ_i σ'_ij for every neuron"
    measure: ClassVar = "smallest sign(v_j) w_j·u over (d-mp) Σ|v_j|λσ'"


@dataclass(frozen=True)
class LemmaC5(OrthogonalLemma, kkt_proof.GapPositive, id="vardi2022/C.5"):
    """Lemma C.5; the proof gives d/3, not only 0. It needs no network."""

    claim: ClassVar = "d - mp ≥ d/3 > 0"
    measure: ClassVar = "d - mp"


@dataclass(frozen=True)
class LemmaC6(OrthogonalKKTLemma, kkt_proof.NeuronsActivated, id="vardi2022/C.6"):
    """Lemma C.6 at η = η1, the smallest that it admits."""

    claim: ClassVar = "after η1 Σ y_i x_i every neuron has an input ≥ 0: at x - z where v_j < 0, at x + z where v_j > 0"
    measure: ClassVar = "smallest opened input over (p+1) Σ|v_j|λσ'"


@dataclass(frozen=True)
class LemmaC7(OrthogonalKKTLemma, kkt_proof.MarginFlips, id="vardi2022/C.7"):
    """Lemma C.7."""

    claim: ClassVar = "N(x_i - z) ≤ -1 for every positive example"
    measure: ClassVar = "largest N(x - z) of a positive example"
    side: ClassVar = +1


@dataclass(frozen=True)
class LemmaC8(OrthogonalKKTLemma, kkt_proof.MarginFlips, id="vardi2022/C.8"):
    """Lemma C.8."""

    claim: ClassVar = "N(x_i + z) ≥ 1 for every negative example"
    measure: ClassVar = "largest -N(x + z) of a negative example"
    side: ClassVar = -1


@dataclass(frozen=True)
class LemmaC9(OrthogonalLemma, kkt_proof.PerturbationLength, id="vardi2022/C.9"):
    """Lemma C.9, its first line and its last; it needs no network."""

    claim: ClassVar = "‖z‖ ≤ (η1+η2)√(md+m²p) ≤ 18√2·√(d/m)/c"
    measure: ClassVar = "‖z‖"


@dataclass(frozen=True)
class OwnNeuronsFall(OrthogonalKKTLemma, id="vardi2022/5.2-2"):
    """Component 2 of the proof overview (section 5.4), for both labels."""

    claim: ClassVar = "from x to x - y z the inputs of the neurons of sign y fall, by (η1+η2)(d-mp) loads at least"

    def bound(self, instance: Instance) -> list[Promise]:
        numbers = self.groups(instance).constants
        least = (numbers.opening + numbers.crossing) * numbers.room
        return [promise_at_least("smallest fall of an own input, in loads", least, 1e-6)]

    def witness(self, instance: Instance) -> Witness:
        kkt = instance.kkt
        falls = kkt.network.v.sign() * (kkt.network.W @ self.groups(instance).perturbation)
        return Witness({"smallest fall of an own input, in loads": kkt.smallest_ratio(falls[None])})


@dataclass(frozen=True)
class OtherNeuronsPull(OrthogonalKKTLemma, id="vardi2022/5.2-3"):
    """Component 3 of the proof overview (section 5.5), for both labels."""

    claim: ClassVar = "from x to x - y z the neurons of the other sign lower y N by at least 2"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least("smallest pull of the other neurons", 2)]

    def witness(self, instance: Instance) -> Witness:
        network, X, y = instance.kkt.network, instance.data.X, instance.data.y
        moved = X + self.groups(instance).against(y)
        against = (y[:, None] * network.v).clamp(max=0)  # (n, width)
        pulls = (against * (network.preactivations(X).relu() - network.preactivations(moved).relu())).sum(1)
        return Witness({"smallest pull of the other neurons": float(pulls.min())})
