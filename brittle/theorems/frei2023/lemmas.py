"""The lemmas behind Theorems 3.1 and 4.2, each as a check on the multipliers of a KKT point.

Each supposes Assumption 2.2 and those of P1-P6 that its proof uses.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.theorems.base import (
    Comparison,
    Failures,
    Instance,
    Promise,
    Theorem,
    Witness,
    at_least,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.draws import supposed
from brittle.theorems.frei2023.instances import cluster_data, cluster_instance
from brittle.theorems.frei2023.properties import ordinary, p1, p2, p3, p4, p5, p6
from brittle.theorems.frei2023.sizes import Sizes, assumption, fresh, kkt_point_up_to

Property = Callable[[Sizes], Iterator[Comparison]]


@dataclass(frozen=True)
class Lemma(Theorem):
    """What the lemmas share: their suppositions, and two clusters as default."""

    applies_to: ClassVar = "KKT points on clusters under Assumption 2.2"
    properties: ClassVar[tuple[Property, ...]] = ()
    about_fresh: ClassVar = False

    dim: int = 570
    clusters: int = 2
    noise: float = 1 / math.sqrt(570)
    test: int = 1000
    kkt_tolerance: float = 1e-6

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        sizes = Sizes(instance.data)
        yield from assumption(sizes)
        for check in self.properties:
            yield from check(sizes)
        if self.about_fresh:
            yield at_least("ordinary fresh examples (Lemma A.13)", len(ordinary_ones(instance)[0]), 1)
        yield kkt_point_up_to(self.kkt_tolerance, instance)

    def default(self, rng: Generator) -> Instance:
        return cluster_instance(self.dim, self.clusters, self.noise, rng, test=self.test)


def ordinary_ones(instance: Instance) -> tuple[Tensor, Tensor]:
    """The fresh examples to which the lemmas apply, and their labels."""
    held = fresh(instance)
    chosen = ordinary(Sizes(instance.data), held)
    return held.X[chosen], held.y[chosen]


@dataclass(frozen=True)
class ClusterSumsAreSmall(Lemma):
    """Lemma A.10."""

    id: ClassVar = "frei2023/A.10"
    claim: ClassVar = "Σ_{i in cluster q} Σ_{J±} v_j² λ_i σ'_ij ≤ 1/((1-2c')(d-Δ+1)) for every q and either sign"
    properties: ClassVar = (p4, p5)

    def bound(self, instance: Instance) -> list[Promise]:
        sizes = Sizes(instance.data)
        return [promise_at_most("largest sum", 1 / ((1 - 2 * sizes.share) * (sizes.dim - sizes.spread + 1)), 1e-12)]

    def witness(self, instance: Instance) -> Witness:
        sums = [Sizes(instance.data).gathered(instance.kkt.sums(sign)) for sign in (+1, -1)]
        return Witness({"largest sum": float(torch.stack(sums).max())})


@dataclass(frozen=True)
class OwnSumsAreLarge(Lemma):
    """Lemma A.11: the same sums over the neurons of the cluster's own sign."""

    id: ClassVar = "frei2023/A.11"
    claim: ClassVar = "Σ_{i in cluster q} Σ_{J of its sign} v_j² λ_i σ'_ij ≥ (1-c'/(1-2c'))/(3d+Δ+1) for every q"
    properties: ClassVar = (p4, p5, p6)

    def bound(self, instance: Instance) -> list[Promise]:
        sizes = Sizes(instance.data)
        least = (1 - sizes.share / (1 - 2 * sizes.share)) / (3 * sizes.dim + sizes.spread + 1)
        return [promise_at_least("smallest own sum", least, 1e-12)]

    def witness(self, instance: Instance) -> Witness:
        sizes = Sizes(instance.data)
        positive, negative = (sizes.gathered(instance.kkt.sums(sign)) for sign in (+1, -1))
        return Witness({"smallest own sum": float(torch.where(sizes.labels > 0, positive, negative).min())})


@dataclass(frozen=True)
class OrdinaryOnesAreRight(Lemma):
    """Lemma A.12 with the lower bound of its proof, at least 3/128, in place of 0."""

    id: ClassVar = "frei2023/A.12"
    claim: ClassVar = "y N(x) ≥ (1-c'/(1-2c'))(d-Δ+1)/(3d+Δ+1) - 2c'/(1-2c') > 0 for every ordinary fresh example"
    properties: ClassVar = (p4, p5, p6)
    about_fresh: ClassVar = True

    def bound(self, instance: Instance) -> list[Promise]:
        sizes = Sizes(instance.data)
        lost = sizes.share / (1 - 2 * sizes.share)
        gained = (1 - lost) * (sizes.dim - sizes.spread + 1) / (3 * sizes.dim + sizes.spread + 1)
        return [promise_at_least("smallest y N(x)", gained - 2 * lost)]

    def witness(self, instance: Instance) -> Witness:
        X, y = ordinary_ones(instance)
        return Witness({"smallest y N(x)": float(instance.kkt.network.margins(X, y).min())})

    def note(self) -> str:
        return "The statement says i in Q^(r), Q^(q) where the sets of examples I^(r), I^(q) are meant."


@dataclass(frozen=True)
class FreshOnesAreOrdinary(Lemma):
    """Lemma A.13; it needs no network. The probability is that of all fresh examples together."""

    id: ClassVar = "frei2023/A.13"
    claim: ClassVar = "a fresh example is ordinary with probability ≥ 1 - 4n d^{-ln(d)/2}"
    applies_to: ClassVar = "clusters under Assumption 2.2"

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        sizes = Sizes(instance.data)
        yield from assumption(sizes)
        yield from p1(sizes)
        yield from p3(sizes)

    def probability(self, instance: Instance) -> float:
        return 1 - len(fresh(instance)) * Sizes(instance.data).strange

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least("share of ordinary examples", 1 - Sizes(instance.data).strange)]

    def witness(self, instance: Instance) -> Witness:
        chosen = ordinary(Sizes(instance.data), fresh(instance))
        return Witness({"share of ordinary examples": float(chosen.double().mean())})

    def failures(self, trials: int, rng: Generator) -> Failures:
        """A draw is a fresh example, against one training set."""
        instance = replace(self, test=trials).default(rng)
        sizes = Sizes(instance.data)
        if not supposed(self, instance):
            return Failures(0, trials, sizes.strange)
        return Failures(int((~ordinary(sizes, fresh(instance))).sum()), 0, sizes.strange)

    def default(self, rng: Generator) -> Instance:
        return Instance(cluster_data(self.dim, self.clusters, self.noise, rng, test=self.test))


@dataclass(frozen=True)
class OutputsAreBounded(Lemma):
    """Lemma D.2: stated with 2; its proof announces 4 and arrives at (d+Δ+1)/((1-2c')(d-Δ+1)) + c'/(1-2c') ≤ 3/2."""

    id: ClassVar = "frei2023/D.2"
    claim: ClassVar = "|N(x)| ≤ (d+Δ+1)/((1-2c')(d-Δ+1)) + c'/(1-2c') ≤ 3/2 for every ordinary fresh example"
    properties: ClassVar = (p4, p5)
    about_fresh: ClassVar = True

    def bound(self, instance: Instance) -> list[Promise]:
        sizes = Sizes(instance.data)
        d, delta, kept = sizes.dim, sizes.spread, 1 - 2 * sizes.share
        chain = (d + delta + 1) / (kept * (d - delta + 1)) + sizes.share / kept
        return [promise_at_most("largest |N(x)|", chain), promise_at_most("largest |N(x)|", 1.5)]

    def witness(self, instance: Instance) -> Witness:
        X, y = ordinary_ones(instance)
        return Witness({"largest |N(x)|": float(instance.kkt.network.margins(X, y).abs().max())})


@dataclass(frozen=True)
class InputsNotVeryNegative(Lemma):
    """Lemma D.3, as a ratio so that neurons of every size count alike."""

    id: ClassVar = "frei2023/D.3"
    claim: ClassVar = "w_j·x + b_j ≥ -(2Δ+p+1) Σ_i |v_j| λ_i σ'_ij for every ordinary fresh example and neuron"
    properties: ClassVar = (p2, p3)
    about_fresh: ClassVar = True

    measure: ClassVar = "smallest input over (2Δ+p+1) Σ|v_j|λσ'"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(self.measure, -1)]

    def witness(self, instance: Instance) -> Witness:
        sizes = Sizes(instance.data)
        inputs = instance.kkt.network.preactivations(ordinary_ones(instance)[0])
        return Witness({self.measure: instance.kkt.smallest_ratio(inputs) / (2 * sizes.spread + sizes.coherence + 1)})


@dataclass(frozen=True)
class DirectionOfEveryNeuron(Lemma):
    """Lemma D.4 with u = Σ y^(q) μ^(q)."""

    id: ClassVar = "frei2023/D.4"
    claim: ClassVar = "sign(v_j) w_j·u ≥ (d-Δ-kp-kΔ) Σ_i |v_j| λ_i σ'_ij for every neuron"
    properties: ClassVar = (p3,)

    measure: ClassVar = "smallest sign(v_j) w_j·u over (d-Δ-kp-kΔ) Σ|v_j|λσ'"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(self.measure, 1)]

    def witness(self, instance: Instance) -> Witness:
        network, sizes = instance.kkt.network, Sizes(instance.data)
        along = (network.v.sign() * (network.W @ sizes.direction))[None]
        return Witness({self.measure: instance.kkt.smallest_ratio(along) / sizes.room})


@dataclass(frozen=True)
class RoomIsPositive(Lemma):
    """Lemma D.5; the proof gives 6d/7 - 1/10, not only 0. It needs no network."""

    id: ClassVar = "frei2023/D.5"
    claim: ClassVar = "d - Δ - k(p+Δ) ≥ 6d/7 - 1/10 > 0"
    applies_to: ClassVar = "clusters under Assumption 2.2"

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from assumption(Sizes(instance.data))

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least("d - Δ - k(p + Δ)", 6 * instance.data.dim / 7 - 0.1)]

    def witness(self, instance: Instance) -> Witness:
        return Witness({"d - Δ - k(p + Δ)": Sizes(instance.data).room})

    def default(self, rng: Generator) -> Instance:
        return Instance(cluster_data(self.dim, self.clusters, self.noise, rng))


@dataclass(frozen=True)
class NeuronsAreOpened(Lemma):
    """Lemma D.6 at η = η1, the smallest that it admits."""

    id: ClassVar = "frei2023/D.6"
    claim: ClassVar = "after η1 Σ y^(q) μ^(q) every neuron of the other sign has an input ≥ 0 at an ordinary example"
    properties: ClassVar = (p2, p3)
    about_fresh: ClassVar = True

    measure: ClassVar = "smallest opened input over (2Δ+p+1) Σ|v_j|λσ'"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(self.measure, 0)]

    def witness(self, instance: Instance) -> Witness:
        network, sizes = instance.kkt.network, Sizes(instance.data)
        along = network.v.sign() * (network.W @ (sizes.opening * sizes.direction))
        opened = network.preactivations(ordinary_ones(instance)[0]) + along
        return Witness({self.measure: instance.kkt.smallest_ratio(opened) / (2 * sizes.spread + sizes.coherence + 1)})
