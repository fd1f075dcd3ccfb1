"""One direction orthogonal to the data flips every point of their subspace (section 5)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.settings import Data
from brittle.theorems.base import Failures, LikelyClaim, Solution
from brittle.theorems.comparison import Comparison, Promise, at_least, promise_at_most
from brittle.theorems.instance import Instance
from brittle.theorems.melamed2023.gradient import APPLIES
from brittle.theorems.melamed2023.instances import OffSubspace, Recipe, about_data, about_network, about_start
from brittle.theorems.witness import LARGEST_MARGIN, Witness

LENGTH = "‖z‖ over |N(x0)|(m/k)√(d/ℓ)"
PLAIN_LENGTH = "‖z‖ over |N(x0)|"
MARGIN = "margin after z over |N(x0)|"


def least_codimension(dim: int, width: int) -> float:
    """32(m-1)ln(m²d)."""
    return 32 * (width - 1) * math.log(width**2 * dim)


def chance(dim: int, codimension: int, width: int) -> float:
    """1 - 5(m e^(-ℓ/16) + d^(-1/2))."""
    return 1 - 5 * (width * math.exp(-codimension / 16) + 1 / math.sqrt(dim))


@dataclass(frozen=True)
class Universal(LikelyClaim):
    """z = y0 α (Σ_{I-} Πw_i - Σ_{I+} Πw_i) at the points x0 that are held out, or at all where none is.

    Default: `examples` of a subspace of R^`dim` of this `codimension`, and a network of this `width`.
    """

    applies_to: ClassVar = APPLIES

    dim: int = 12_000
    codimension: int = 9500
    width: int = 20
    examples: int = 20

    def default(self, rng: Generator) -> Instance:
        """The first of many x0 that satisfies the hypotheses: they look at nothing off the subspace."""
        instance = Recipe(self.dim, self.codimension, self.width, self.examples, tests=64).instance(rng)
        k = against(OffSubspace(_held_out(instance)))
        good = (k >= self.least_against(self.width)).nonzero()[:, 0]
        first = good[:1] if len(good) else torch.tensor([0])
        return replace(instance, data=instance.data.take_test(first))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        whole, judged = OffSubspace(instance), OffSubspace(_held_out(instance))
        yield from about_data(whole)
        yield from about_network(whole, whole.dim**-0.5)
        yield from about_start(whole)
        least = least_codimension(whole.dim, whole.network.width)
        yield at_least("codimension beside 32(m-1)ln(m²d)", whole.codimension, least)
        size = float(judged.network.logits(judged.points).abs().min())
        yield at_least("smallest |N(x0)|", size, 1e-300)
        k = int(against(judged).min())
        yield at_least("active neurons against the label", k, self.least_against(whole.network.width))

    def least_against(self, width: int) -> float:
        """How many active neurons against the label are asked for."""
        return 1

    def witness(self, instance: Instance) -> Witness:
        off = OffSubspace(_held_out(instance))
        output, k = off.network.logits(off.points), against(off).clamp(min=1)
        alpha = 8 * math.sqrt(off.network.width) * off.dim * output.abs() / (k * off.codimension)
        direction = -(off.network.v.sign() @ off.weights)
        Z = (output.sign() * alpha)[:, None] * direction
        sizes = Z.norm(dim=1) / output.abs()
        scale = (off.network.width / k) * math.sqrt(off.dim / off.codimension)
        after = off.network.logits(off.points + Z) / output
        lengths = {LENGTH: float((sizes / scale).max()), PLAIN_LENGTH: float(sizes.max())}
        return Witness({**lengths, MARGIN: float(after.max())}, Z, off.points, output.sign())

    def probability(self, instance: Instance) -> float:
        """The events of the proof concern the weights off P alone, so they cover every x0 at once."""
        off = OffSubspace(instance)
        return chance(off.dim, off.codimension, off.network.width)

    def failures(self, trials: int, rng: Generator) -> Failures:
        """One x0 a trial, drawn before the network; those without an active neuron against the label are skipped."""
        failures = skipped = 0
        for _ in range(trials):
            instance = Recipe(self.dim, self.codimension, self.width, self.examples, tests=1).instance(rng)
            if not self.supposes(instance):
                skipped += 1
                continue
            witness = self.witness(instance)
            promises = [promise for promise in self.bound(instance) if promise.measure in witness.measures]
            failures += not all(promise.against(witness.measures[promise.measure]).holds for promise in promises)
        return Failures(failures, skipped, 1 - chance(self.dim, self.codimension, self.width))


def against(off: OffSubspace) -> Tensor:
    """k_{y0}: how many active neurons pull against the sign of N(x0), (points,)."""
    y0 = off.network.logits(off.points).sign()
    return (off.active & (y0[:, None] * off.network.v < 0)).sum(1)


def _held_out(instance: Instance) -> Instance:
    """The points that z is judged at; the network and what is known of P stay."""
    data = instance.data
    return instance if data.X_test is None else Instance(_alone(data.test), instance.network, instance.facts)


def _alone(data: Data) -> Data:
    return replace(data, X_test=None, y_test=None)


@dataclass(frozen=True)
class UniversalPerturbation(Universal, id="melamed2023/5.1"):
    """ℓ ≥ 32(m-1)ln(m²d), k ≥ 1 ⇒ z with α = 8√m·d·|N(x0)|/(kℓ) flips x0 to a margin ≤ -|N(x0)|, and
    ‖z‖ ≤ 8√2·|N(x0)|·(m/k)·√(d/ℓ), w.p. ≥ 1 - 5(m e^(-ℓ/16) + d^(-1/2)); k active neurons against the sign y0 of N(x0).
    """

    claim: ClassVar = "one direction off the subspace flips every x0 on it, ‖z‖ ≤ 8√2·|N(x0)|·(m/k)·√(d/ℓ)"
    unknowns: ClassVar = ("codimension", "width")
    note: ClassVar = (
        "k ≥ 1 and N(x0) ≠ 0 are needed (α divides by k) and not stated; "
        "the proof writes 1 - e^(-ℓ/16) + ... where the union bound subtracts"
    )

    def bound(self, instance: Instance) -> list[Promise]:
        return [
            promise_at_most(MARGIN, -1.0),
            promise_at_most(LARGEST_MARGIN, 0.0, tolerance=0.0),
            promise_at_most(LENGTH, 8 * math.sqrt(2)),
        ]

    def solve_for(self, unknown: str) -> Solution:
        if unknown == "codimension":
            limit = least_codimension(self.dim, self.width)
            least, most = max(1, math.ceil(limit)), self.dim - 1
            given, why = {"dim": self.dim, "width": self.width}, f"ℓ ≥ 32(m-1)ln(m²d) = {limit:.6g}, and ℓ < d"
        elif unknown == "width":
            least, most = 1, self._widest()
            given, why = {"dim": self.dim, "codimension": self.codimension}, "32(m-1)ln(m²d) ≤ ℓ"
        else:
            return super().solve_for(unknown)
        if least > most:
            return Solution(self.id, unknown, math.nan, math.nan, given, f"there is none: {why}")
        return Solution(self.id, unknown, least, most, given, why)

    def _widest(self) -> int:
        width = 1
        while least_codimension(self.dim, width + 1) <= self.codimension:
            width += 1
        return width


@dataclass(frozen=True)
class SmallUniversalPerturbation(Universal, id="melamed2023/C5.1"):
    """ℓ ≥ a·d and k ≥ c·m in the setting of 5.1 ⇒ ‖z‖ ≤ 8√2/(c√a)·|N(x0)| = O(|N(x0)|).

    `codimension_share` is a, `against_share` is c.
    """

    claim: ClassVar = "with ℓ = Θ(d) and k = Θ(m) a perturbation of length O(|N(x0)|) off the subspace flips x0"
    note: ClassVar = "the paper leaves the constant to O; this is the one that Theorem 5.1 gives for the chosen shares"

    codimension_share: float = 0.5
    against_share: float = 0.1

    def least_against(self, width: int) -> float:
        return max(1.0, self.against_share * width)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().hypotheses(instance)
        off = OffSubspace(instance)
        yield at_least("codimension over dimension", off.codimension / off.dim, self.codimension_share)

    def bound(self, instance: Instance) -> list[Promise]:
        most = 8 * math.sqrt(2) / (self.against_share * math.sqrt(self.codimension_share))
        return [promise_at_most(LARGEST_MARGIN, 0.0, tolerance=0.0), promise_at_most(PLAIN_LENGTH, most)]
