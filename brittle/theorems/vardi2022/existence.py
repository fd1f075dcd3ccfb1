"""Robust networks exist (Theorem 3.1, Lemma 3.1), and a smaller norm makes them fragile (section 5.1)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import scipy
import torch
from torch import Generator

from brittle.attacks import MinimumNorm
from brittle.data import Data, Orthogonal, Sphere
from brittle.geometry import largest_product
from brittle.networks import Network
from brittle.theorems.base import Failures, LikelyClaim, Theorem
from brittle.theorems.comparison import (
    LARGEST_MARGIN,
    LONGEST,
    Comparison,
    Promise,
    Witness,
    at_least,
    at_most,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.helpers import RADIUS, bartletts, pattern_radius
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import RADIUS_TOLERANCE
from brittle.theorems.vardi2022.groups import ExampleGroups, fragile_network, on_the_sphere, robust_network

ATTACKED = "shortest flip that an attack finds"


@dataclass(frozen=True)
class RobustNetworkExists(Theorem, id="vardi2022/3.1"):
    """v_j = y_j, w_j = 2x_j/(d(1-c)), b_j = -(1+c)/(1-c) with c = max |<x_i, x_j>|/d.

    The radius is measured on the network that was built: within it the own neuron stays open and all others closed.
    An attack tries to do better.

    Default: `examples` on the sphere in R^`dim`.
    """

    claim: ClassVar = "a network of width m classifies with margin 1 and radius at least (1-c)/2·√d"
    applies_to: ClassVar = "examples of norm √d with |<x_i, x_j>| ≤ c d, c < 1"
    note: ClassVar = "The paper states (1-c)/4·√d; its proof works up to (1-c)/2·√d, which is what is checked."

    dim: int = 1000
    examples: int = 31

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        groups = ExampleGroups(instance.data)
        yield on_the_sphere(groups)
        yield at_most("largest |<x_i, x_j>|/d", groups.coherence / groups.dim, 1 - 1e-12)

    def bound(self, instance: Instance) -> list[Promise]:
        groups = ExampleGroups(instance.data)
        gap = 1 - groups.coherence / groups.dim
        radius, rounded = gap / 2 * math.sqrt(groups.dim), 1e-9 + 4 * groups.radius_error / gap
        return [
            promise_at_least("smallest margin", 1, rounded),
            promise_at_least(RADIUS, radius, rounded),
            promise_at_least(ATTACKED, radius, rounded),
        ]

    def witness(self, instance: Instance) -> Witness:
        network = robust_network(instance.data)
        q = network.margins(instance.data.X, instance.data.y)
        radius = pattern_radius(network, instance.data.X)
        attacked = shortest_flip(network, instance.data)
        return Witness({"smallest margin": float(q.min()), RADIUS: float(radius.min()), ATTACKED: attacked})

    def default(self, rng: Generator) -> Instance:
        return Instance(Sphere(self.dim).sample(self.examples, rng, in_span=True))


@dataclass(frozen=True)
class SphereIsNearlyOrthogonal(LikelyClaim, id="vardi2022/L3.1"):
    """With n = d^k, the promise fails with probability at most n² d ((3/4)^{(d-3)/2} + d^{-ln(d)/4}).

    The proof needs d ≥ 6, and holds with the natural logarithm in ln(d)/√d, smaller than the printed log.

    Default: `examples` on the sphere in R^`dim`.
    """

    claim: ClassVar = "points drawn from the sphere have |cos| ≤ 1/2 and ≤ ln(d)/√d, all pairs, with high probability"
    applies_to: ClassVar = "independent points, uniform on a sphere of R^d, d ≥ 6"
    note: ClassVar = (
        "The second probability is vacuous for d < e^(8k+4), n = d^k (162,755 at k = 1); "
        "the exact tail of cos², Beta(1/2, (d-1)/2), is measured beside it."
    )

    dim: int = 1_000_000
    examples: int = 50

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        norms = torch.linalg.vector_norm(instance.data.X, dim=1)
        yield at_least("dimension", instance.data.dim, 6)
        yield at_most("relative spread of ‖x‖", float((norms / norms.mean() - 1).abs().max()), RADIUS_TOLERANCE)

    def probability(self, instance: Instance) -> float:
        return 1 - _chance(len(instance.data), instance.data.dim)

    def failures(self, trials: int, rng: Generator) -> Failures | None:
        if self.examples > self.dim or not self.supposes(self.default(rng)):
            return None
        failed, limit = 0, min(0.5, math.log(self.dim) / math.sqrt(self.dim))
        for L in bartletts(trials, self.examples, self.dim, rng):
            X = torch.nn.functional.normalize(L, dim=2)
            largest = (X @ X.mT).tril(-1).abs().amax((1, 2))
            failed += int((largest > limit).sum())
        return Failures(failed, 0, _chance(self.examples, self.dim))

    def bound(self, instance: Instance) -> list[Promise]:
        d = instance.data.dim
        return [promise_at_most("largest |cos|", 0.5), promise_at_most("largest |cos|", math.log(d) / math.sqrt(d))]

    def witness(self, instance: Instance) -> Witness:
        n, d = len(instance.data), instance.data.dim
        X = torch.nn.functional.normalize(instance.data.X, dim=1)
        largest = largest_product(X)
        pairs = n * (n - 1) / 2
        return Witness(
            {
                "largest |cos|": largest,
                "exact chance of > 1/2, summed over pairs": pairs * cosine_tail(d, 0.5),
                "exact chance of > ln(d)/√d, summed over pairs": pairs * cosine_tail(d, math.log(d) / math.sqrt(d)),
            }
        )

    def default(self, rng: Generator) -> Instance:
        return Instance(Sphere(self.dim).sample(self.examples, rng, in_span=True))


@dataclass(frozen=True)
class SmallerNormIsFragile(Theorem, id="vardi2022/5.1"):
    """x_i = √d e_i, i ≤ d, balanced. N' has v_j = y_j, w_j = x_j/d, b_j = 0; z_i = (4/d) Σ_{y_j = -y_i} x_j.

    Default: d = `dim`.
    """

    claim: ClassVar = "a network of smaller norm than the robust one has margin -1 after a perturbation of length 2√2"
    applies_to: ClassVar = "d orthogonal examples of norm √d, half of each label, and the network N' of section 5.1"
    note: ClassVar = (
        "N' is not a KKT point of the problem with biases. At √d/2 the robust network's first neuron changes; its "
        "output flips at √(d/2), where the own neuron is closed and another one opens."
    )

    dim: int = 100

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        groups = ExampleGroups(instance.data)
        yield on_the_sphere(groups)
        yield at_most("largest |<x_i, x_j>|/d", groups.coherence / groups.dim, RADIUS_TOLERANCE)
        yield at_least("examples", len(groups.data), groups.dim)
        yield at_most("examples of one label more than of the other", len(groups.data) - 2 * groups.rarer, 0)
        yield at_most("deviation from the network N'", _deviation(instance), 1e-9)

    def bound(self, instance: Instance) -> list[Promise]:
        return [
            promise_at_most(LONGEST, 2 * math.sqrt(2)),
            promise_at_most(LARGEST_MARGIN, -1),
            promise_at_most("‖θ'‖² over that of the robust network", 1),
            promise_at_least(f"{RADIUS} of the robust network", math.sqrt(instance.data.dim) / 2),
        ]

    def witness(self, instance: Instance) -> Witness:
        X, y = instance.data.X, instance.data.y
        robust = robust_network(instance.data)
        others = torch.stack([X[y < 0].sum(0), X[y > 0].sum(0)])  # what is added where y > 0, and where y < 0
        measures = {
            "‖θ'‖² over that of the robust network": float(instance.two_layer.squared_norm / robust.squared_norm),
            f"{RADIUS} of the robust network": float(pattern_radius(robust, X).min()),
            f"{ATTACKED} of the robust network": shortest_flip(robust, instance.data),
        }
        return Witness(measures, perturbations=4 / instance.data.dim * others[(y < 0).long()])

    def comparator(self, instance: Instance) -> Network | None:
        return robust_network(instance.data)

    def default(self, rng: Generator) -> Instance:
        data = Orthogonal(self.dim).sample(self.dim)
        return Instance(data, fragile_network(data))


def shortest_flip(network: Network, data: Data) -> float:
    """Of all examples; infinite where the attack flips none."""
    attack = MinimumNorm().run(network, data)
    return float(attack.norms[attack.success].min()) if bool(attack.success.any()) else math.inf


def _chance(examples: int, dim: int) -> float:
    """How likely Lemma 3.1 fails at most, both parts together."""
    return examples**2 * dim * (math.pow(0.75, (dim - 3) / 2) + math.pow(dim, -math.log(dim) / 4))


def cosine_tail(dim: int, threshold: float) -> float:
    """P[|cos| > threshold] of two independent directions: cos² ~ Beta(1/2, (d-1)/2)."""
    return float(scipy.stats.beta.sf(threshold**2, 0.5, (dim - 1) / 2))


def _deviation(instance: Instance) -> float:
    """How far the parameters are from v_j = y_j, w_j = x_j/d, b_j = 0."""
    network, data = instance.two_layer, instance.data
    if network.W.shape != data.X.shape:
        return math.inf
    gaps = (network.W - data.X / data.dim, network.v - data.y, network.b, network.c)
    return max(float(gap.abs().max()) for gap in gaps)
