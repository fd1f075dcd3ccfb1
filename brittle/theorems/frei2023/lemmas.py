"""The lemmas behind Theorems 3.1 and 4.2, each as a check on the multipliers of a KKT point.

Each supposes Assumption 2.2 and those of P1-P6 that its proof uses.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
import torch
from torch import Generator, Tensor

from brittle.data import Data
from brittle.networks import TwoLayer
from brittle.theorems import kkt_proof
from brittle.theorems.comparison import Comparison, Promise, Witness, at_least, promise_at_least, promise_at_most
from brittle.theorems.frei2023.assumption import Property, ordinary, p1, p2, p3, p4, p5, p6
from brittle.theorems.frei2023.groups import (
    ClusterClaim,
    ClusterConstants,
    ClusterGroups,
    FreshClaim,
    cluster_instance,
    fresh,
)
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import AtKKTPoint

MANY = 8  # concave neurons; more have too many choices


def worst_in_clusters(network: TwoLayer, groups: ClusterGroups, sign: int) -> tuple[Tensor, Tensor]:
    """For every cluster r the point of its polytope at which sign y_r N is smallest, (k, columns), and y_r.

    Rows of NaN where the network has too many neurons to be sure.
    """
    points = [_worst(network, groups, r, sign * float(groups.labels[r])) for r in range(len(groups))]
    return torch.stack(points), groups.labels


def _worst(network: TwoLayer, groups: ClusterGroups, cluster: int, sign: float) -> Tensor:
    """Where sign N is smallest in the polytope of the cluster."""
    c = sign * network.v.double()
    concave = torch.nonzero(c < 0)[:, 0].tolist()
    if len(concave) > MANY:
        return torch.full_like(groups.centres[0], torch.nan)
    found = [_minimum(network, groups, cluster, c, list(chosen)) for chosen in _subsets(concave)]
    values = [float(c @ network.preactivations(x[None]).relu()[0]) for x in found]
    return found[int(np.argmin(values))]


def _subsets(items: list[int]) -> itertools.chain[tuple[int, ...]]:
    return itertools.chain.from_iterable(itertools.combinations(items, size) for size in range(len(items) + 1))


def _minimum(network: TwoLayer, groups: ClusterGroups, cluster: int, c: Tensor, chosen: list[int]) -> Tensor:
    """The minimum of Σ_{c_j > 0} c_j t_j + Σ_{j chosen} c_j (w_j·x + b_j) over x and t_j ≥ max(0, w_j·x + b_j)."""
    convex = torch.nonzero(c > 0)[:, 0]
    basis = torch.linalg.qr(groups.data.X.T).Q  # at a KKT point the output depends on x in their span alone
    W, b = network.W.double() @ basis, network.b.double()
    columns, extra = W.shape[1], len(convex)
    gram, (low, high) = groups.data.X @ basis, _box(groups, cluster)
    objective = torch.cat([c[chosen] @ W[chosen], c[convex]]).numpy()
    blank = torch.zeros(len(gram), extra, dtype=torch.float64)
    rows = torch.cat([torch.cat([W[convex], -torch.eye(extra, dtype=torch.float64)], 1), torch.cat([gram, blank], 1)])
    rows = torch.cat([rows, torch.cat([-gram, blank], 1)])
    limits = torch.cat([-b[convex], high, -low])
    bounds = [(None, None)] * columns + [(0, None)] * extra
    solved = scipy.optimize.linprog(objective, rows.numpy(), limits.numpy(), bounds=bounds, method="highs")
    assert solved.status == 0, solved.message
    x: Tensor = basis @ torch.from_numpy(solved.x[:columns])
    return x


def _box(groups: ClusterGroups, cluster: int) -> tuple[Tensor, Tensor]:
    """The least and the largest <x, x_i> of the cluster's polytope, (n,) each."""
    own, delta = groups.cluster == cluster, groups.constants.spread
    low = torch.where(own, groups.dim - delta, -groups.coherence - delta).double()
    high = torch.where(own, groups.dim + delta, groups.coherence + delta).double()
    return low, high


@dataclass(frozen=True)
class ClusterLemma(ClusterClaim):
    """What the lemmas share: Assumption 2.2, and the `properties` of the training set that their proofs use."""

    properties: ClassVar[tuple[Property, ...]] = ()

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().about_data(instance)
        for check in self.properties:
            yield from check(self.groups(instance))

    def admitted(self, instance: Instance) -> Tensor:
        """The lemmas about examples speak of ordinary fresh ones."""
        return self.ordinary(instance).X

    def admitted_labels(self, instance: Instance) -> Tensor:
        """Their labels."""
        return self.ordinary(instance).y

    def ordinary(self, instance: Instance) -> Data:
        """The fresh examples that are as Lemma A.13 says."""
        unseen = fresh(instance)
        return unseen.take(ordinary(self.groups(instance), unseen))


@dataclass(frozen=True)
class ClusterKKTLemma(ClusterLemma, AtKKTPoint):
    """A lemma about a KKT point, which the network must be up to `kkt_tolerance`.

    The default instance has few `examples`, so that the noise of each counts; the lemmas do not ask for more.
    """

    applies_to: ClassVar = "KKT points on clusters under Assumption 2.2"

    dim: int = 10**8
    clusters: int = 4
    cosine: float = 0.003
    examples: int = 40
    kkt_tolerance: float = 1e-6

    def default(self, rng: Generator) -> Instance:
        sizes = (self.dim, self.clusters, self.noise)
        return cluster_instance(*sizes, rng, test=self.test, cosine=self.cosine, examples=self.examples)


@dataclass(frozen=True)
class FreshLemma(ClusterKKTLemma):
    """A lemma about ordinary fresh examples, of which there must be one."""

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().about_data(instance)
        count = ordinary(self.groups(instance), fresh(instance)).sum()
        yield at_least("ordinary fresh examples (Lemma A.13)", int(count), 1)


@dataclass(frozen=True)
class ClusterSumsAreSmall(ClusterKKTLemma, id="frei2023/A.10"):
    """Lemma A.10."""

    claim: ClassVar = "Σ_{i in cluster q} Σ_{J±} v_j² λ_i σ'_ij ≤ 1/((1-2c')(d-Δ+1)) for every q and either sign"
    properties: ClassVar = (p4, p5)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most("largest sum", self.groups(instance).constants.cluster_mass, tolerance=1e-12)]

    def witness(self, instance: Instance) -> Witness:
        sums = [self.groups(instance).gathered(instance.kkt.sums(sign)) for sign in (+1, -1)]
        return Witness({"largest sum": float(torch.stack(sums).max())})


@dataclass(frozen=True)
class OwnSumsAreLarge(ClusterKKTLemma, id="frei2023/A.11"):
    """Lemma A.11: the same sums over the neurons of the cluster's own sign."""

    claim: ClassVar = "Σ_{i in cluster q} Σ_{J of its sign} v_j² λ_i σ'_ij ≥ (1-c'/(1-2c'))/(3d+Δ+1) for every q"
    properties: ClassVar = (p4, p5, p6)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least("smallest own sum", self.groups(instance).constants.own_mass, tolerance=1e-12)]

    def witness(self, instance: Instance) -> Witness:
        groups = self.groups(instance)
        positive, negative = (groups.gathered(instance.kkt.sums(sign)) for sign in (+1, -1))
        return Witness({"smallest own sum": float(torch.where(groups.labels > 0, positive, negative).min())})


@dataclass(frozen=True)
class OrdinaryOnesAreCorrect(ClusterKKTLemma, id="frei2023/A.12"):
    """Lemma A.12 with the lower bound of its proof, at least 3/128, in place of 0; at the worst x that it admits."""

    claim: ClassVar = "y N(x) ≥ (1-c'/(1-2c'))(d-Δ+1)/(3d+Δ+1) - 2c'/(1-2c') where all <x, x_i> are as for a cluster"
    note: ClassVar = "The statement says i in Q^(r), Q^(q) where the sets of examples I^(r), I^(q) are meant."
    properties: ClassVar = (p4, p5, p6)

    def bound(self, instance: Instance) -> list[Promise]:
        numbers = self.groups(instance).constants
        return [promise_at_least("smallest y N(x)", numbers.own_mass * numbers.within - 2 * numbers.lost)]

    def witness(self, instance: Instance) -> Witness:
        network = instance.kkt.network
        worst = network.margins(*worst_in_clusters(network, self.groups(instance), +1))
        return Witness({"smallest y N(x)": float(worst.min())})


@dataclass(frozen=True)
class FreshOnesAreOrdinary(ClusterLemma, FreshClaim, id="frei2023/A.13"):
    """Lemma A.13; it needs no network. The probability is that of all fresh examples together."""

    claim: ClassVar = "a fresh example is ordinary with probability ≥ 1 - 4n d^{-ln(d)/2}"
    properties: ClassVar = (p1, p3)

    def rate(self, constants: ClusterConstants) -> float:
        return constants.strange

    def holds(self, instance: Instance) -> Tensor:
        return ordinary(self.groups(instance), fresh(instance))

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least("share of ordinary examples", 1 - self.rate(self.groups(instance).constants))]

    def witness(self, instance: Instance) -> Witness:
        return Witness({"share of ordinary examples": float(self.holds(instance).double().mean())})


@dataclass(frozen=True)
class FreshOnesHaveACluster(FreshOnesAreOrdinary, id="frei2023/D.1"):
    """Lemma D.1 is Lemma A.13 with the cluster drawn at random as well."""

    claim: ClassVar = "a fresh example is ordinary for the cluster it came from with probability ≥ 1 - 4n d^{-ln(d)/2}"


@dataclass(frozen=True)
class OutputsAreBounded(ClusterKKTLemma, id="frei2023/D.2"):
    """Lemma D.2: stated with 2; its proof announces 4 and arrives at (d+Δ+1)/((1-2c')(d-Δ+1)) + c'/(1-2c') ≤ 3/2.

    At the worst x that it admits; with Lemma A.12 y N(x) is |N(x)|.
    """

    claim: ClassVar = "|N(x)| ≤ (d+Δ+1)/((1-2c')(d-Δ+1)) + c'/(1-2c') ≤ 3/2 where all <x, x_i> are as for a cluster"
    properties: ClassVar = (p4, p5)

    def bound(self, instance: Instance) -> list[Promise]:
        numbers = self.groups(instance).constants
        chain = (numbers.dim + numbers.spread + 1) * numbers.cluster_mass + numbers.lost
        return [promise_at_most("largest |N(x)|", most) for most in (chain, 1.5)]

    def witness(self, instance: Instance) -> Witness:
        network = instance.kkt.network
        worst = network.margins(*worst_in_clusters(network, self.groups(instance), -1))
        return Witness({"largest |N(x)|": float(worst.abs().max())})


@dataclass(frozen=True)
class LemmaD3(FreshLemma, kkt_proof.InputLowerBound, id="frei2023/D.3"):
    """Lemma D.3, as a ratio so that neurons of every size count alike."""

    claim: ClassVar = "w_j·x + b_j ≥ -(2Δ+p+1) Σ_i |v_j| λ_i σ'_ij for every ordinary fresh example and neuron"
    properties: ClassVar = (p2, p3)
    measure: ClassVar = "smallest input over (2Δ+p+1) Σ|v_j|λσ'"


@dataclass(frozen=True)
class LemmaD4(ClusterKKTLemma, kkt_proof.DirectionMeetsNeurons, id="frei2023/D.4"):
    """Lemma D.4 with u = Σ y^(q) μ^(q)."""

    claim: ClassVar = "sign(v_j) w_j·u ≥ (d-Δ-kp-kΔ) Σ_i |v_j| λ_i σ'_ij for every neuron"
    properties: ClassVar = (p3,)
    measure: ClassVar = "smallest sign(v_j) w_j·u over (d-Δ-kp-kΔ) Σ|v_j|λσ'"


@dataclass(frozen=True)
class LemmaD5(ClusterLemma, kkt_proof.GapPositive, id="frei2023/D.5"):
    """Lemma D.5; the proof gives 6d/7 - 1/10, not only 0. It needs no network."""

    claim: ClassVar = "d - Δ - k(p+Δ) ≥ 6d/7 - 1/10 > 0"
    measure: ClassVar = "d - Δ - k(p + Δ)"


@dataclass(frozen=True)
class LemmaD6(FreshLemma, kkt_proof.NeuronsActivated, id="frei2023/D.6"):
    """Lemma D.6 at η = η1, the smallest that it admits."""

    claim: ClassVar = "after η1 Σ y^(q) μ^(q) every neuron of the other sign has an input ≥ 0 at an ordinary example"
    properties: ClassVar = (p2, p3)
    measure: ClassVar = "smallest opened input over (2Δ+p+1) Σ|v_j|λσ'"


@dataclass(frozen=True)
class LemmaD7(FreshLemma, kkt_proof.MarginFlips, id="frei2023/D.7"):
    """Lemma D.7."""

    claim: ClassVar = "N(x - z) ≤ -1 for every ordinary fresh example of a positive cluster"
    properties: ClassVar = (p2, p3, p4, p5, p6)
    measure: ClassVar = "largest N(x - z) of a positive example"
    side: ClassVar = +1


@dataclass(frozen=True)
class LemmaD8(FreshLemma, kkt_proof.MarginFlips, id="frei2023/D.8"):
    """Lemma D.8; where its proof writes "=" in (i), the neurons of the other sign only give "≥"."""

    claim: ClassVar = "N(x + z) ≥ 1 for every ordinary fresh example of a negative cluster"
    properties: ClassVar = (p2, p3, p4, p5, p6)
    measure: ClassVar = "largest -N(x + z) of a negative example"
    side: ClassVar = -1


@dataclass(frozen=True)
class LemmaD9(ClusterLemma, kkt_proof.PerturbationLength, id="frei2023/D.9"):
    """Lemma D.9, its first line and the one before it rounds; it needs no network."""

    claim: ClassVar = "‖z‖ ≤ (η1+η2)√(kd+k²p), and ≤ Lemma D.9's chain, 13√(d/k)/c at most for large d"
    measure: ClassVar = "‖z‖"


@dataclass(frozen=True)
class OutputChangesFast(FreshLemma, id="frei2023/rate"):
    """Section 4.1.2: beyond the opening, a step of length s along -y u lowers y N by s room mass/‖u‖ at least.

    room mass/‖u‖ ≥ (d-Δ-kp-kΔ)c√k(1-c'/(1-2c'))/((3d+Δ+1)√(d+kp)), which is Ω(√(c²k/d)). The step is taken from
    x - y η1 u, where every neuron of the other sign is open, to x - y z.
    """

    claim: ClassVar = "a perturbation of size s along z changes the output by Ω(s√(c²k/d)): by room mass/‖u‖ per unit"
    properties: ClassVar = (p2, p3, p4, p5, p6)

    def bound(self, instance: Instance) -> list[Promise]:
        numbers = self.groups(instance).constants
        norm = (numbers.groups * numbers.dim + numbers.groups**2 * numbers.coherence) ** 0.5
        return [promise_at_least("smallest fall of y N per unit of length", numbers.room * numbers.mass / norm)]

    def witness(self, instance: Instance) -> Witness:
        groups, data, network = self.groups(instance), self.ordinary(instance), instance.kkt.network
        opened = data.X - data.y[:, None] * groups.constants.opening * groups.direction
        moved = data.X + groups.against(data.y)
        length = groups.constants.crossing * float(torch.linalg.vector_norm(groups.direction))
        falls = (network.margins(opened, data.y) - network.margins(moved, data.y)) / length
        scaled = float(falls.min()) * (groups.dim / len(groups)) ** 0.5 / groups.balance
        measures = {"smallest fall of y N per unit of length": float(falls.min())}
        return Witness(measures | {"the same in units of c√(k/d)": scaled})
