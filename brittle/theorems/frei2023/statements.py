"""KKT points generalise (Theorem 3.1) and are not robust (4.2), though robust networks exist (4.1)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Generator, Tensor

from brittle.networks import Network
from brittle.theorems.base import LikelyClaim
from brittle.theorems.comparison import Comparison, Promise, at_most, promise_at_least, promise_at_most
from brittle.theorems.frei2023.claims import FreshClaim
from brittle.theorems.frei2023.groups import ClusterConstants, ClusterGroups, assumption, enough_examples, fresh
from brittle.theorems.frei2023.instances import cluster_instance, robust_network
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import AtKKTPoint
from brittle.theorems.pattern import RADIUS, pattern_radius
from brittle.theorems.witness import LARGEST_MARGIN, LONGEST, Witness

FLIPPED = "share of fresh examples that flip"


@dataclass(frozen=True)
class KKTClaim(AtKKTPoint, LikelyClaim):
    """What Theorems 3.1 and 4.2 share: ε = `error`, δ = `failure`, and a KKT point up to `kkt_tolerance`.

    The default instance has `clusters` of noise `noise` in R^`dim`, with `test` fresh examples. The probability that
    is stated is that of the training set and of all fresh examples that are measured.
    """

    applies_to: ClassVar = "KKT points on n ≥ k ln²d examples of clusters under Assumption 2.2"

    error: float = 1e-6
    failure: float = 1e-3
    dim: int = 570
    clusters: int = 2
    noise: float = 1 / math.sqrt(570)
    test: int = 1000
    kkt_tolerance: float = 1e-6

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        groups = ClusterGroups(instance.data)
        yield from assumption(groups)
        yield enough_examples(groups)
        n, d, delta = len(instance.data), instance.data.dim, self.failure
        yield at_most("1/δ", 1 / delta, _power(math.log(d) - 1, d) / 3)
        yield at_most("examples, for the norms", n, math.sqrt(delta / 3) * _power(d / 32, math.e))
        yield at_most("examples, for the inner products", n, math.sqrt(delta) / 3 * _power(math.log(d) / 4, d))
        yield at_most("examples, for the error", n, self.error / 4 * _power(math.log(d) / 2, d))

    def probability(self, instance: Instance) -> float:
        numbers = ClusterGroups(instance.data).constants
        return 1 - numbers.unlikely - len(fresh(instance)) * numbers.strange

    def default(self, rng: Generator) -> Instance:
        return cluster_instance(self.dim, self.clusters, self.noise, rng, test=self.test)


def _power(exponent: float, base: float) -> float:
    return math.exp(min(700.0, exponent * math.log(base)))


@dataclass(frozen=True)
class Generalises(KKTClaim, id="frei2023/3.1"):
    """Theorem A.1 says it explicitly: error ≤ 4n d^{-ln(d)/2} with the probability of P1-P6.

    The condition on 1/δ follows from the one on the inner products for every d > e². The probability that is stated
    is that of the training set and of all fresh examples that are measured.
    """

    claim: ClassVar = "every KKT point errs on a fresh example with probability ≤ ε, and ≤ 4n d^{-ln(d)/2}"

    def bound(self, instance: Instance) -> list[Promise]:
        rates = (self.error, ClusterGroups(instance.data).constants.strange)
        return [promise_at_most("test error", rate) for rate in rates]

    def witness(self, instance: Instance) -> Witness:
        unseen = fresh(instance)
        q = instance.two_layer.margins(unseen.X, unseen.y) / instance.smallest_margin
        counts = {"fresh examples": float(len(unseen)), "smallest margin of a fresh example": float(q.min())}
        return Witness({"test error": float((q <= 0).double().mean()), **counts})


@dataclass(frozen=True)
class RobustClusterNetworkExists(FreshClaim, id="frei2023/4.1"):
    """v_j = y^(j), w_j = 4μ^(j)/d, b_j = -2.

    "For sufficiently large d" is not needed: Assumption 2.2 makes 4σ ln(d)/√d = Δ/d ≤ 1/21.
    """

    claim: ClassVar = "width k suffices for margin ≥ 1 and radius ≥ √d/4 at a fresh example, w.p. ≥ 1-2d^{1-ln(d)/2}"
    note: ClassVar = "The paper states √d/8; its proof works up to √d/4, which is what is checked."

    def rate(self, constants: ClusterConstants) -> float:
        return constants.misplaced

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least("smallest margin", 1), promise_at_least(RADIUS, self._radius(instance))]

    def witness(self, instance: Instance) -> Witness:
        q, radii = self._margins_and_radii(instance)
        return Witness({"smallest margin": float(q.min()), RADIUS: float(radii.min())})

    def holds(self, instance: Instance) -> Tensor:
        q, radii = self._margins_and_radii(instance)
        return (q >= 1) & (radii >= self._radius(instance))

    def _radius(self, instance: Instance) -> float:
        return math.sqrt(instance.data.dim) / 4

    def _margins_and_radii(self, instance: Instance) -> tuple[Tensor, Tensor]:
        unseen, network = fresh(instance), robust_network(instance.data)
        return network.margins(unseen.X, unseen.y), pattern_radius(network, unseen.X)


@dataclass(frozen=True)
class NotRobust(KKTClaim, id="frei2023/4.2"):
    """z = (η1+η2) Σ y^(q) μ^(q) with Δ = 4σ√d ln d, c' = k(p+Δ+1)/(d-Δ+1), η1 = (2Δ+p+1)/(d-Δ-kp-kΔ) and
    η2 = 3(3d+Δ+1)(1-2c')/((d-Δ-kp-kΔ)(1-3c')ck).

    The bound on ‖z‖ is the third line of Lemma D.9, before it rounds c' up to 1/10 and Δ to d/21; rounded, it is
    13√(d/k)/c. A network of smallest margin q is the one of the theorem times √q.
    """

    claim: ClassVar = "x - y z flips a fresh example with probability ≥ 1-ε, ‖z‖ = O(√(d/k)/c), explicit in Lemma D.9"
    note: ClassVar = (
        "Lemma D.2 is stated with 2, announces 4 and proves 3/2; η2 rests on the 2, so a factor 2.5 in place of 3 "
        "would do. The theorem's z is shorter than √d only for k of several hundred: see the smallest scale."
    )

    dim: int = 2000
    clusters: int = 52
    noise: float = 0.09 / math.sqrt(2000)

    def bound(self, instance: Instance) -> list[Promise]:
        numbers = ClusterGroups(instance.data).constants
        return [
            promise_at_most(LONGEST, numbers.longest, certain=True),
            promise_at_most(LARGEST_MARGIN, -instance.smallest_margin),
            promise_at_least(FLIPPED, 1 - numbers.strange),
        ]

    def witness(self, instance: Instance) -> Witness:
        unseen = fresh(instance)
        moved = ClusterGroups(instance.data).against(unseen.y)
        before = instance.two_layer.margins(unseen.X, unseen.y)
        after = instance.two_layer.margins(unseen.X + moved, unseen.y)
        flipped = float(((before > 0) & (after < 0)).double().mean())
        return Witness({FLIPPED: flipped}, moved, unseen.X, unseen.y)

    def comparator(self, instance: Instance) -> Network | None:
        return robust_network(instance.data)
