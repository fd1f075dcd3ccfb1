"""What frei2023 compares KKT networks with: the nearest neighbour (section 4) and a linear model (section 4.1.2)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import require_value
from brittle.theorems.comparison import Comparison, Promise, Witness, at_most, promise_at_least, promise_at_most
from brittle.theorems.frei2023.assumption import PROPERTIES, ordinary
from brittle.theorems.frei2023.examples import smallest_flip
from brittle.theorems.frei2023.groups import ClusterClaim, ClusterConstants, cluster_instance, fresh
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import AtKKTPoint

NEIGHBOUR = "radius of the nearest neighbour rule"
CLUSTERS = "the fresh examples need to know their clusters"
STEP = "step along u that flips every fresh example"


@dataclass(frozen=True)
class NearestNeighbourIsRobust(ClusterClaim, AtKKTPoint, id="frei2023/1-NN"):
    """No fresh example changes its nearest label within R = √((d-p)/2) - 2ρ, ρ = σ√(2d) bounding the noise.

    x is within 2ρ of an example of its cluster, and √(2(d-p)) - 2ρ from those of others; half the difference is the
    radius at least.

    A step t u flips every ordinary fresh example from t = (B + (2Δ+p+1)M)/(B room/(d+Δ+1) + room M) on. Here B is Lemma
    D.2's bound on y N(x), and M = ck(1-c'/(1-2c'))/((1+2σ²)d+Δ+1) is Lemma A.11's for the clusters of the other label,
    with P1 and P3 as the bound on ‖x_i‖². By Lemma D.4 the neurons of the other sign rise by room M per unit of t once
    they are open. Those of the own sign lose the share t room/(d+Δ+1) at least, as their inputs are (d+Δ+1) Σ|v_j|λσ'
    at most. It is supposed that this step is not longer than R. For σ -> 0 and orthogonal means t is 1/(ck+1), so that
    (ck+1)² ≥ 2k is needed; two clusters have equality, and with noise nothing is promised of them.

    `kkt_tolerance` is the largest relative residual of a KKT point.
    """

    claim: ClassVar = "1-NN holds √((d-p)/2) - 2σ√(2d) = Ω(√d) at σ = 1/√d, and a shorter step flips the KKT network"
    applies_to: ClassVar = "KKT points on enough clusters under Assumption 2.2, with ordinary fresh examples"
    note: ClassVar = (
        "The paper compares Ω(√d) with O(√(d/k)) for a growing k and derives no constant. The hypothesis on the step "
        "is ours, and so is its derivation; with two clusters nothing is promised."
    )

    dim: int = 20_000
    clusters: int = 8
    noise: float = 1 / math.sqrt(20_000)
    cosine: float = 0.0
    test: int = 100
    kkt_tolerance: float = 1e-6

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().about_data(instance)
        groups, unseen = self.groups(instance), fresh(instance)
        for check in PROPERTIES:
            yield from check(groups)
        noises = unseen.X - groups.centres[require_value(unseen.truth.cluster, CLUSTERS)]
        longest = float(torch.linalg.vector_norm(noises, dim=1).max())
        yield at_most("largest ‖ξ‖ of a fresh example", longest, groups.noise * math.sqrt(2 * groups.dim))
        strange = int((~ordinary(groups, unseen)).sum())
        yield at_most("fresh examples that are not ordinary (Lemma A.13)", strange, 0)
        longest_step, radius = flipping_step(groups.constants), nearest_radius(groups.constants)
        yield at_most("step that flips by the proof", longest_step, radius)

    def bound(self, instance: Instance) -> list[Promise]:
        numbers = self.groups(instance).constants
        radius = nearest_radius(numbers)
        return [promise_at_least(NEIGHBOUR, radius), promise_at_most(STEP, flipping_step(numbers))]

    def witness(self, instance: Instance) -> Witness:
        radius, flip = float(neighbour_radii(instance).min()), smallest_flip(instance)
        root, ratio = math.sqrt(instance.data.dim), flip / radius if radius > 0 else math.inf
        measures = {NEIGHBOUR: radius, STEP: flip, "that step over that radius": ratio}
        return Witness(measures | {"radius/√d": radius / root, "flip/√d": flip / root})

    def default(self, rng: Generator) -> Instance:
        sizes = (self.dim, self.clusters, self.noise)
        return cluster_instance(*sizes, rng, test=self.test, cosine=self.cosine)


def nearest_radius(numbers: ClusterConstants) -> float:
    """√((d-p)/2) - 2σ√(2d)."""
    return math.sqrt((numbers.dim - numbers.coherence) / 2) - 2 * numbers.noise * math.sqrt(2 * numbers.dim)


def flipping_step(numbers: ClusterConstants) -> float:
    """t‖u‖ with ‖u‖² ≤ kd + k²p: how long a step along u flips every ordinary fresh example at most."""
    d, k, top = numbers.dim, numbers.groups, numbers.dim + numbers.spread + 1
    before = top * numbers.cluster_mass + numbers.lost
    squares = (1 + 2 * numbers.noise**2) * d + numbers.spread + 1
    mass = numbers.balance * k * (1 - numbers.lost) / squares
    t = (before + numbers.dip * mass) / (before * numbers.room / top + numbers.room * mass)
    return t * math.sqrt(k * d + k**2 * numbers.coherence)


def neighbour_radii(instance: Instance) -> Tensor:
    """How far each fresh example may move at least before another label is nearest, (n,).

    A rival b wins only beyond the plane between it and every example a of the own label; the farthest plane counts.
    """
    unseen, data = fresh(instance), instance.data
    distances = torch.cdist(unseen.X, data.X, compute_mode="donot_use_mm_for_euclid_dist")
    apart = torch.cdist(data.X, data.X, compute_mode="donot_use_mm_for_euclid_dist")
    radii = []
    for row, y in zip(distances, unseen.y, strict=True):
        own, rival = data.y == y, data.y != y
        planes = (row[rival][None].square() - row[own][:, None].square()) / (2 * apart[own][:, rival])
        radii.append(planes.max(0).values.min())
    return torch.stack(radii).clamp(min=0)


@dataclass(frozen=True)
class LinearModelIsFragile(ClusterClaim, id="frei2023/linear"):
    """w = Σ y^(q) μ^(q)/d: with P3 for a fresh x, y w·x ≤ (d + kp + kΔ/4)/d, and ‖w‖ ≥ √(kd - k²p)/d."""

    claim: ClassVar = "0 < y w·x = O(1) and ‖w‖ = Ω(√(k/d)) for w = Σ y μ/d: a step of O(√(d/k)) along w flips it"

    def about_data(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().about_data(instance)
        groups, unseen = self.groups(instance), fresh(instance)
        noises = unseen.X - groups.centres[require_value(unseen.truth.cluster, CLUSTERS)]
        largest = float((noises @ groups.centres.T).abs().max())
        limit = groups.noise * math.sqrt(groups.dim) * math.log(groups.dim)
        yield at_most("largest |<μ_q, ξ>| of a fresh example", largest, limit)

    def bound(self, instance: Instance) -> list[Promise]:
        numbers = self.groups(instance).constants
        d, k, p = numbers.dim, numbers.groups, numbers.coherence
        output, norm = (d + k * p + k * numbers.spread / 4) / d, math.sqrt(k * d - k**2 * p) / d
        return [
            promise_at_least("smallest y w·x", (9 * d - 1) / (10 * d)),
            promise_at_most("largest y w·x", output),
            promise_at_least("‖w‖", norm),
            promise_at_most("longest step that is needed", output / norm),
        ]

    def witness(self, instance: Instance) -> Witness:
        unseen, w = fresh(instance), self.groups(instance).direction / instance.data.dim
        outputs, norm = unseen.y * (unseen.X @ w), float(torch.linalg.vector_norm(w))
        least, most = float(outputs.min()), float(outputs.max())
        measures = {"smallest y w·x": least, "largest y w·x": most, "‖w‖": norm}
        return Witness(measures | {"longest step that is needed": most / norm})
