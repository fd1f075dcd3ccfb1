"""One direction orthogonal to the data flips every point of their subspace (section 5)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.attacks import first_flip
from brittle.theorems.base import Failures, LikelyClaim, ParameterRange
from brittle.theorems.comparison import LARGEST_MARGIN, Comparison, Promise, Witness, at_least, promise_at_most
from brittle.theorems.instance import Instance
from brittle.theorems.melamed2023.gradient import APPLIES
from brittle.theorems.melamed2023.instances import OffSubspace, SubspaceRecipe, about_data, about_network, about_start

LENGTH = "‖z‖ over |N(x0)|(m/k)√(d/ℓ)"
PLAIN_LENGTH = "‖z‖ over |N(x0)|"
MARGIN = "margin after z over |N(x0)|"
JUDGED = "points with enough active neurons against the label"


def least_codimension(dim: int, width: int) -> float:
    """32(m-1)ln(m²d)."""
    return 32 * (width - 1) * math.log(width**2 * dim)


def chance(dim: int, codimension: int, width: int) -> float:
    """1 - 5(m e^(-ℓ/16) + d^(-1/2))."""
    return 1 - 5 * (width * math.exp(-codimension / 16) + 1 / math.sqrt(dim))


@dataclass(frozen=True)
class SubspaceUniversal(LikelyClaim):
    """z = y0 α (Σ_{I-} Πw_i - Σ_{I+} Πw_i) at every x0 that has active neurons against its label: training examples and
    held-out ones, those on the margin among them. Shown beside it: ‖z‖/‖x0‖, k, and what Π∇N(x0) would need.

    Default: `examples` and `tests` points of a subspace of R^`dim` of this `codimension`, a network of this `width`
    trained at this `rate`.
    """

    applies_to: ClassVar = APPLIES

    dim: int = 12_000
    codimension: int = 9500
    width: int = 20
    examples: int = 100
    tests: int = 40
    rate: float = 1e-4

    @property
    def recipe(self) -> SubspaceRecipe:
        """How the default instance is made; gently trained, or hardly an example is left with k ≥ 1."""
        return SubspaceRecipe(self.dim, self.codimension, self.width, self.examples, self.tests, rate=self.rate)

    def default(self, rng: Generator) -> Instance:
        return self.recipe.instance(rng)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        off = OffSubspace(instance)
        yield from about_data(off)
        yield from about_network(off, off.dim**-0.5)
        yield from about_start(off)
        least = least_codimension(off.dim, off.network.width)
        yield at_least("codimension beside 32(m-1)ln(m²d)", off.codimension, least)
        yield at_least(JUDGED, int(self.speaks_of(off).sum()), 1)

    def least_against(self, width: int) -> float:
        """How many active neurons against the label are asked for."""
        return 1

    def speaks_of(self, off: OffSubspace) -> Tensor:
        """The x0 with a sign to flip and enough active neurons against it, (points,)."""
        return (against(off) >= self.least_against(off.network.width)) & (off.network.logits(off.points) != 0)

    def witness(self, instance: Instance) -> Witness:
        off = OffSubspace(instance)
        spoken = self.speaks_of(off)
        X, k = off.points[spoken], against(off)[spoken]
        output = off.network.logits(X)
        alpha = 8 * math.sqrt(off.network.width) * off.dim * output.abs() / (k * off.codimension)
        Z = (output.sign() * alpha)[:, None] * -(off.network.v.sign() @ off.weights)
        sizes = Z.norm(dim=1) / output.abs()
        scale = (off.network.width / k) * math.sqrt(off.dim / off.codimension)
        after = off.network.logits(X + Z) / output
        lengths = {LENGTH: float((sizes / scale).max()), PLAIN_LENGTH: float(sizes.max())}
        beside = {**without_neurons(off), **beside_the_gradient(off, spoken, Z)}
        return Witness({**lengths, MARGIN: float(after.max()), **beside}, Z, X, output.sign())

    def probability(self, instance: Instance) -> float:
        """The events of the proof concern the weights off P alone, so they cover every x0 at once."""
        off = OffSubspace(instance)
        return chance(off.dim, off.codimension, off.network.width)

    def failures(self, trials: int, rng: Generator) -> Failures:
        """One x0 a trial, drawn before the network; those without an active neuron against the label are skipped."""
        failures = skipped = 0
        for _ in range(trials):
            instance = replace(self.recipe, tests=1).instance(rng)
            instance = replace(instance, data=instance.data.test)
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


def without_neurons(off: OffSubspace) -> dict[str, float]:
    """Shares of the training examples and of the held-out ones at which k = 0, so that nothing is promised."""
    none, trained = against(off) == 0, len(off.instance.data)
    held = none[trained:]
    shares = {"share of the training examples with k = 0": float(none[:trained].double().mean())}
    return shares | ({"share of the held-out points with k = 0": float(held.double().mean())} if len(held) else {})


def beside_the_gradient(off: OffSubspace, spoken: Tensor, Z: Tensor) -> dict[str, float]:
    """At the example with the smallest margin of those that are spoken of, trained on where there is one: k, ‖z‖, where
    z's direction flips it, and where Π∇N, the steepest direction off P, does."""
    output, trained = off.network.logits(off.points).abs(), torch.arange(len(spoken)) < len(off.instance.data)
    among = spoken & trained if bool((spoken & trained).any()) else spoken
    x0 = int(torch.where(among, output, torch.inf).argmin())
    z, x, y = Z[int(spoken[:x0].sum())], off.points[x0], off.network.logits(off.points[x0][None]).sign()
    steepest = -y * ((off.active[x0] * off.network.v) @ off.weights)
    length = float(x.norm().clamp(min=1e-300))
    rays = torch.stack([z / z.norm(), steepest / steepest.norm().clamp(min=1e-300)])
    along_z, along_gradient = first_flip(off.network, x.expand(2, -1), y.expand(2), rays).tolist()
    return {
        "k at the smallest margin": float(against(off)[x0]),
        "‖z‖/‖x0‖ there": float(z.norm()) / length,
        "flip along z there, over ‖x0‖": along_z / length,
        "flip along Π∇N there, over ‖x0‖": along_gradient / length,
    }


@dataclass(frozen=True)
class SubspacePerturbation(SubspaceUniversal, id="melamed2023/5.1"):
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

    def solve_for(self, unknown: str) -> ParameterRange:
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
            return ParameterRange(self.id, unknown, math.nan, math.nan, given, f"there is none: {why}")
        return ParameterRange(self.id, unknown, least, most, given, why)

    def _widest(self) -> int:
        width = 1
        while least_codimension(self.dim, width + 1) <= self.codimension:
            width += 1
        return width


@dataclass(frozen=True)
class SmallUniversalPerturbation(SubspaceUniversal, id="melamed2023/C5.1"):
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
