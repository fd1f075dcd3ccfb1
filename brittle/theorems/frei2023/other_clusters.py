"""frei2023 on other clusters: noise of another law (section 2), more noise (section 2), one not seen (section 3).

Theorems 3.1 and 4.2 use the law of the noise only for P1-P6 and Lemma A.13. What follows from these is checked here
where they are measured, under other laws.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import require_value
from brittle.data import Clusters, Data
from brittle.theorems.comparison import (
    Comparison,
    Promise,
    Witness,
    at_least,
    at_most,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.frei2023.assumption import PROPERTIES, ordinary, p4, p5, p6
from brittle.theorems.frei2023.groups import ClusterClaim, ClusterConstants, cluster_data, count_needed_examples, fresh
from brittle.theorems.frei2023.lemmas import FreshLemma
from brittle.theorems.frei2023.remarks import CLUSTERS
from brittle.theorems.helpers import kkt_network
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import RADIUS_TOLERANCE, AtKKTPoint

BEFORE, AFTER = "smallest y N(x) of an ordinary fresh example", "largest y N(x - y z) of one"
OUTPUT = "largest |N(x)| on the cluster that was left out"


@dataclass(frozen=True)
class OtherNoise(FreshLemma):
    """Lemmas A.12, D.7 and D.8 together, on clusters whose noise has another `law`, scaled by `noise`."""

    properties: ClassVar = PROPERTIES

    dim: int = 3000
    clusters: int = 2
    noise: float = 0.07
    cosine: float = 0.004
    test: int = 100

    @abstractmethod
    def law(self, rows: int, rng: Generator) -> Tensor:
        """So many vectors of R^dim with <ξ, e> = Õ(1) for every unit e, ‖ξ‖ = Õ(√d), with high probability."""

    def bound(self, instance: Instance) -> list[Promise]:
        numbers = self.groups(instance).constants
        least = numbers.own_mass * numbers.within - 2 * numbers.lost
        return [promise_at_least(BEFORE, least), promise_at_most(AFTER, -1)]

    def witness(self, instance: Instance) -> Witness:
        network, seen, unseen = instance.kkt.network, self.ordinary(instance), fresh(instance)
        moved = seen.X + self.groups(instance).against(seen.y)
        return Witness(
            {
                BEFORE: float(network.margins(seen.X, seen.y).min()),
                AFTER: float(network.margins(moved, seen.y).max()),
                "share of ordinary examples": len(seen) / len(unseen),
            }
        )

    def default(self, rng: Generator) -> Instance:
        examples = count_needed_examples(self.dim, self.clusters)
        setting = Clusters(self.dim, self.clusters, noise=0.0, cosine=self.cosine)
        data = setting.sample(examples, rng, test=self.test)
        X, X_test = (each + self.noise * self.law(len(each), rng) for each in (data.X, data.test.X))
        data = in_their_span(replace(data, X=X, X_test=X_test, truth=replace(data.truth, noise=self.noise)))
        return Instance(data, kkt_network(data, rng))


@dataclass(frozen=True)
class AnisotropicNoise(OtherNoise, id="frei2023/anisotropic"):
    """ξ ~ N(0, Σ) with eigenvalues evenly spaced between 1/5 and 9/5: tr Σ = d, ‖Σ‖ = 9/5."""

    claim: ClassVar = "noise N(0, σ²Σ), tr Σ = d, ‖Σ‖ = O(1): ordinary fresh examples are right, and z flips them"

    def law(self, rows: int, rng: Generator) -> Tensor:
        spectrum = torch.linspace(0.2, 1.8, self.dim, dtype=torch.float64)
        return torch.randn(rows, self.dim, generator=rng, dtype=torch.float64) * spectrum.sqrt()


@dataclass(frozen=True)
class SubGaussianNoise(OtherNoise, id="frei2023/sub-Gaussian"):
    """Every coordinate is 1 or -1."""

    claim: ClassVar = "noise of independent signs: ordinary fresh examples are right, and z flips them"

    def law(self, rows: int, rng: Generator) -> Tensor:
        return torch.randint(2, (rows, self.dim), generator=rng).double() * 2 - 1


def in_their_span(data: Data) -> Data:
    """The same examples, fresh ones and means in coordinates of their common span."""
    means, unseen = require_value(data.truth.means, CLUSTERS), data.test.X
    basis = torch.linalg.qr(torch.cat([means, data.X, unseen]).T).Q
    return replace(data, X=data.X @ basis, X_test=unseen @ basis, truth=replace(data.truth, means=means @ basis))


@dataclass(frozen=True)
class NoisierConstants(ClusterConstants):
    """Δ = 4 max(σ, σ²)√d ln d, and 1 + 2σ² in place of 3: then ‖x‖² ≤ (1 + 2σ²)d + Δ, whatever σ is."""

    @property
    def spread(self) -> float:
        return super().spread * max(1.0, self.noise)

    @property
    def within_most(self) -> float:
        return (1 + 2 * self.noise**2) * self.dim + self.spread + 1

    @property
    def margin(self) -> float:
        """What Lemma A.12 leaves an ordinary fresh example."""
        return self.own_mass * self.within - 2 * self.lost


@dataclass(frozen=True)
class MoreNoise(ClusterClaim, AtKKTPoint, id="frei2023/more-noise"):
    """Lemmas A.10-A.12 with `NoisierConstants`.

    A.10 uses <x_i, x_l> ≥ d - Δ within a cluster and |<x_i, x_l>| ≤ p + Δ across; A.11 the largest ‖x_i‖². The margin
    is then (1-c'/(1-2c'))(d-Δ+1)/((1+2σ²)d+Δ+1) - 2c'/(1-2c') with c' ≈ 4kσ² ln(d)/√d: positive while 16kσ⁴ ln d is
    below √d about, which is the paper's Õ(d^{1/8}). `examples` are drawn, `noise` is σ;
    `kkt_tolerance` is the largest relative residual of a KKT point.
    """

    claim: ClassVar = "σ up to Õ(d^{1/8}) at k = Õ(1), p = Õ(√d): the KKT network still classifies fresh examples"
    applies_to: ClassVar = "KKT points on clusters with much noise"
    note: ClassVar = "ours: the paper says that its result extends and gives no proof"

    dim: int = 10**12
    noise: float = 3.0
    cosine: float = 0.01
    examples: int = 40
    kkt_tolerance: float = 1e-6

    def numbers(self, instance: Instance) -> NoisierConstants:
        """With this Δ."""
        plain = self.groups(instance).constants
        return NoisierConstants(plain.dim, plain.groups, plain.coherence, plain.balance, plain.noise, plain.examples)

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        groups, numbers = self.groups(instance), self.numbers(instance)
        yield at_most("relative deviation of ‖μ‖ from √d", groups.radius_error, RADIUS_TOLERANCE)
        yield at_least("clusters of the rarer label", groups.rarer, 1)
        yield at_most("c'", numbers.share, 1 / 3)
        yield at_least("what is left of the margin", numbers.margin, math.ulp(0.0))
        yield from p6(groups)
        same = groups.cluster[:, None] == groups.cluster
        products = instance.data.X @ instance.data.X.T
        yield at_most("largest |<x_i, x_j>| across clusters", largest(products[~same].abs()), numbers.across - 1)
        yield at_least("smallest <x_i, x_j> within a cluster", float(products[same].min()), numbers.within - 1)
        yield at_most("largest <x_i, x_j> within a cluster", float(products[same].max()), numbers.within_most - 1)
        yield at_least("fresh examples of this kind", int(self._kind(instance).sum()), 1)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(BEFORE, self.numbers(instance).margin)]

    def witness(self, instance: Instance) -> Witness:
        unseen, kind = fresh(instance), self._kind(instance)
        margins = instance.kkt.network.margins(unseen.X, unseen.y)
        wrong = float((margins <= 0).double().mean())
        measures = {BEFORE: float(margins[kind].min()), "share of them": float(kind.double().mean())}
        return Witness(measures | {"test error, counted": wrong, "d^(1/8)": instance.data.dim**0.125})

    def _kind(self, instance: Instance) -> Tensor:
        """Whose products with the examples are as A.12 asks, (fresh,)."""
        unseen, groups, numbers = fresh(instance), self.groups(instance), self.numbers(instance)
        own = require_value(unseen.truth.cluster, CLUSTERS)[:, None] == groups.cluster
        products = unseen.X @ instance.data.X.T
        return torch.where(own, products >= numbers.within - 1, products.abs() <= numbers.across - 1).all(1)

    def default(self, rng: Generator) -> Instance:
        setting = Clusters(self.dim, self.clusters, self.noise, cosine=self.cosine)
        data = setting.sample(self.examples, rng, test=self.test, in_span=True)
        return Instance(data, kkt_network(data, rng))


def largest(values: Tensor) -> float:
    """0 where there are none."""
    return float(values.max()) if len(values) else 0.0


@dataclass(frozen=True)
class LeftOut(ClusterClaim, AtKKTPoint, id="frei2023/tight"):
    """Where a cluster has no example, every input at its fresh examples comes from the other clusters: by Lemma A.10
    |N(x)| ≤ c'/(1-2c') ≤ 1/8 there, whatever label the cluster has, while 1 is the margin on the examples. Half of the
    two labellings are wrong, so that fewer than k examples cannot do.

    `clusters` are drawn, of which the first is left out; `kkt_tolerance` is the largest residual of a KKT point.
    """

    claim: ClassVar = "n = Ω(k) is needed: on a cluster without an example |N(x)| ≤ c'/(1-2c'), whatever its label is"
    dim: int = 60_000
    clusters: int = 4
    noise: float = 0.01
    cosine: float = 0.02
    kkt_tolerance: float = 1e-6

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().about_data(instance)
        groups = self.groups(instance)
        yield from p4(groups)
        yield from p5(groups)
        empty = torch.bincount(groups.cluster, minlength=len(groups)) == 0
        yield at_least("clusters without an example", int(empty.sum()), 1)
        yield at_least("ordinary fresh examples of one", len(self._strangers(instance)), 1)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(OUTPUT, self.groups(instance).constants.lost)]

    def witness(self, instance: Instance) -> Witness:
        outputs = instance.kkt.network.logits(self._strangers(instance))
        wrong = float((outputs <= 0).double().mean())
        worse = max(wrong, 1 - wrong)
        return Witness({OUTPUT: float(outputs.abs().max()), "test error there, of the worse label": worse})

    def _strangers(self, instance: Instance) -> Tensor:
        """Ordinary fresh examples of clusters without an example, (n, columns)."""
        unseen, groups = fresh(instance), self.groups(instance)
        cluster = require_value(unseen.truth.cluster, CLUSTERS)
        return unseen.X[ordinary(groups, unseen) & ~torch.isin(cluster, groups.cluster)]

    def default(self, rng: Generator) -> Instance:
        data = cluster_data(self.dim, self.clusters, self.noise, rng, test=self.test, cosine=self.cosine)
        data = data.take(require_value(data.truth.cluster, CLUSTERS) != 0)
        return Instance(data, kkt_network(data, rng))
