"""How long the gradient is off the subspace: at least (section 4) and at most (section 6)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator

from brittle.theorems.base import LikelyClaim
from brittle.theorems.comparison import (
    Comparison,
    Promise,
    Witness,
    at_least,
    at_most,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.instance import Instance
from brittle.theorems.melamed2023.instances import (
    OffSubspace,
    SubspaceRecipe,
    about_data,
    about_network,
    about_start,
    about_training,
    movement,
)

APPLIES = "data on a linear subspace; two layers without biases, first layer trained, output weights ±1/√m"
RATIO = "‖Π∇N‖ over β√(kℓ/m)"
SHORTEST, LONGEST_GRADIENT = "smallest ‖Π∇N‖", "largest ‖Π∇N‖"
SMALLEST = 1e-12  # the least distance of ηλ from 0 and from 1
SHRINKAGE = "deviation of the weights off the subspace from (1-ηλ)^T times their start"


@dataclass(frozen=True)
class Gradient(LikelyClaim):
    """The gradient off P at every x0, beside β√(kℓ/m): k active neurons, codimension ℓ, width m.

    `dim`, `codimension`, `width` and `examples` are the sizes of the default instance.
    """

    applies_to: ClassVar = APPLIES

    dim: int = 5000
    codimension: int = 4000
    width: int = 10
    examples: int = 20

    @property
    def recipe(self) -> SubspaceRecipe:
        """How the default instance is made."""
        return SubspaceRecipe(self.dim, self.codimension, self.width, self.examples)

    def default(self, rng: Generator) -> Instance:
        return self.recipe.instance(rng)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        off = OffSubspace(instance)
        yield from about_data(off)
        yield from about_network(off, self.stated_beta(off))
        yield from about_start(off)

    def stated_beta(self, off: OffSubspace) -> float:
        """β of the start that the statement supposes: 1/√d."""
        return 1 / math.sqrt(off.dim)

    def witness(self, instance: Instance) -> Witness:
        off = OffSubspace(instance)
        lengths = {SHORTEST: float(off.gradients.min()), LONGEST_GRADIENT: float(off.gradients.max())}
        return Witness(lengths | ratios(off))

    def probability(self, instance: Instance) -> float:
        """A union bound over the sets of active neurons that occur."""
        off = OffSubspace(instance)
        return 1 - off.patterns * math.exp(-off.codimension / 16)


def ratios(off: OffSubspace) -> dict[str, float]:
    """The extremes of ‖Π∇N‖/β√(kℓ/m); a point without an active neuron has no gradient and says nothing."""
    k = off.active.sum(1)
    scale = off.beta * torch.sqrt(k * off.codimension / off.network.width)
    ratio = off.gradients[k > 0] / scale[k > 0]
    if not len(ratio):
        return {f"smallest {RATIO}": math.inf, f"largest {RATIO}": 0.0}
    return {f"smallest {RATIO}": float(ratio.min()), f"largest {RATIO}": float(ratio.max())}


@dataclass(frozen=True)
class LargeGradient(Gradient, id="melamed2023/4.1"):
    """‖Π_P⊥ ∇N(x0)‖ ≥ √(kℓ/(2md)) for x0 in P with k active neurons, w.p. ≥ 1 - e^(-ℓ/16) over the start."""

    claim: ClassVar = "the gradient off the subspace is at least √(kℓ/(2md))"
    note: ClassVar = "the proof writes the variance of the start as 1/√d; it is 1/d, and the constants use 1/d"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(f"smallest {RATIO}", math.sqrt(1 / 2))]


@dataclass(frozen=True)
class ConstantGradient(Gradient, id="melamed2023/C4.1"):
    """ℓ ≥ a·d and k ≥ c·m ⇒ ‖Π_P⊥ ∇N(x0)‖ ≥ √(ac/2) = Ω(1), w.p. ≥ 1 - e^(-ℓ/16).

    `codimension_share` is a, `active_share` is c.
    """

    claim: ClassVar = "with ℓ = Ω(d) and k = Ω(m) the gradient off the subspace is Ω(1)"
    note: ClassVar = "the paper leaves the constant to Ω; this is the one that Theorem 4.1 gives for the chosen shares"

    width: int = 100
    codimension_share: float = 0.5
    active_share: float = 0.1

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        off = OffSubspace(instance)
        yield from super().hypotheses(instance)
        yield at_least("codimension over dimension", off.codimension / off.dim, self.codimension_share)
        yield at_least("smallest share of active neurons", float(off.active.double().mean(1).min()), self.active_share)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(SHORTEST, math.sqrt(self.codimension_share * self.active_share / 2))]


class FromStart(Gradient):
    """From a start w_i ~ N(0, β² I) with a β of its own."""

    def stated_beta(self, off: OffSubspace) -> float:
        """As it was drawn."""
        return off.beta


@dataclass(frozen=True)
class LargeGradientFromStart(FromStart, id="melamed2023/4.1-beta"):
    """Start w_i ~ N(0, β² I): ‖Π_P⊥ ∇N(x0)‖ ≥ β√(kℓ/(2m)), w.p. ≥ 1 - e^(-ℓ/16): what section 6 says that Theorem 4.1
    "readily extends" to. `beta` is β."""

    claim: ClassVar = "from a start N(0, β²) the gradient off the subspace is at least β√(kℓ/(2m))"

    beta: float = 0.005

    @property
    def recipe(self) -> SubspaceRecipe:
        return replace(super().recipe, beta=self.beta)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(f"smallest {RATIO}", math.sqrt(1 / 2))]


@dataclass(frozen=True)
class SmallGradient(FromStart, id="melamed2023/6.1"):
    """Start w_i ~ N(0, β² I): ‖Π_P⊥ ∇N(x0)‖ ≤ β√(2kℓ/m), w.p. ≥ 1 - e^(-ℓ/16).

    `beta` is β.
    """

    claim: ClassVar = "from a start N(0, β²) the gradient off the subspace is at most β√(2kℓ/m)"
    note: ClassVar = "the proof cites Lemma B.2 and means D.1"

    beta: float = 0.005

    @property
    def recipe(self) -> SubspaceRecipe:
        return replace(super().recipe, beta=self.beta)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(f"largest {RATIO}", math.sqrt(2))]


@dataclass(frozen=True)
class TinyStart(FromStart, id="melamed2023/C6.1"):
    """β ≤ 1/(√2 d) ⇒ ‖Π_P⊥ ∇N(x0)‖ ≤ 1/√d, w.p. ≥ 1 - e^(-ℓ/16)."""

    claim: ClassVar = "from a start with β = 1/(√2 d) the gradient off the subspace is at most 1/√d"

    @property
    def recipe(self) -> SubspaceRecipe:
        return replace(super().recipe, beta=1 / (math.sqrt(2) * self.dim))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        off = OffSubspace(instance)
        yield at_most("β", off.beta, 1 / (math.sqrt(2) * off.dim), tolerance=1e-12)
        yield from super().hypotheses(instance)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(LONGEST_GRADIENT, instance.data.dim**-0.5)]


@dataclass(frozen=True)
class WithDecay(Gradient):
    """T steps with L2 penalty λ and rate η: `steps`, `decay` and `rate`."""

    rate: float = 0.01
    decay: float = 1.0
    steps: int = 200

    @property
    def recipe(self) -> SubspaceRecipe:
        return replace(super().recipe, rate=self.rate, decay=self.decay, steps=self.steps)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        off = OffSubspace(instance)
        yield from about_data(off)
        yield from about_training(off)
        yield at_least("ηλ", off.training.product, SMALLEST)
        yield at_most("ηλ", off.training.product, 1 - SMALLEST)
        yield from about_network(off, self.stated_beta(off), off.start)


@dataclass(frozen=True)
class Regularised(WithDecay, id="melamed2023/6.2"):
    """T steps with L2 penalty λ and rate η, 0 < ηλ < 1: ‖Π_P⊥ ∇N(x0)‖ ≤ (1-ηλ)^T √(2kℓ/(md)), w.p. ≥ 1 - e^(-ℓ/16);
    the weights off P are exactly (1-ηλ)^T times their start."""

    claim: ClassVar = "with L2 regularisation the gradient off the subspace is at most (1-ηλ)^T √(2kℓ/(md))"
    note: ClassVar = "0 < ηλ < 1 is used and not stated"

    def bound(self, instance: Instance) -> list[Promise]:
        limit = math.sqrt(2) * OffSubspace(instance).training.shrinkage
        return [promise_at_most(SHRINKAGE, 1e-9, certain=True), promise_at_most(f"largest {RATIO}", limit)]

    def witness(self, instance: Instance) -> Witness:
        off = OffSubspace(instance)
        return Witness({**super().witness(instance).measures, SHRINKAGE: movement(off, off.training.shrinkage)})


@dataclass(frozen=True)
class StronglyRegularised(WithDecay, id="melamed2023/C6.2"):
    """(1-ηλ)^T ≤ 1/√(2d) ⇒ ‖Π_P⊥ ∇N(x0)‖ ≤ 1/√d, w.p. ≥ 1 - e^(-ℓ/16)."""

    claim: ClassVar = "with (1-ηλ)^T ≤ 1/√(2d) the gradient off the subspace is at most 1/√d"

    decay: float = 2.5

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        off = OffSubspace(instance)
        yield at_most("(1-ηλ)^T", off.training.shrinkage, 1 / math.sqrt(2 * off.dim))
        yield from super().hypotheses(instance)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(LONGEST_GRADIENT, instance.data.dim**-0.5)]
