"""A theorem is an object with three verbs: what it supposes, what it promises, and what shows the promise."""

import enum
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import InputError, require
from brittle.common.result import Result
from brittle.networks import Network, TwoLayer
from brittle.settings import Data
from brittle.theorems.multipliers import Multipliers, multipliers
from brittle.theorems.scaling import Scaling


class Relation(enum.Enum):
    AT_MOST = "≤"
    AT_LEAST = "≥"


@dataclass(frozen=True)
class Comparison(Result):
    """A measured value beside its threshold; `slack` is how far the value is on the right side."""

    name: str
    value: float
    relation: Relation
    threshold: float
    tolerance: float = 0.0  # relative, for rounding where a theorem holds with equality

    @property
    def slack(self) -> float:
        gap = self.threshold - self.value
        return gap if self.relation is Relation.AT_MOST else 0.0 - gap

    @property
    def holds(self) -> bool:
        return self.slack >= -self.tolerance * max(1.0, abs(self.threshold))

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "slack": self.slack, "holds": self.holds}

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.6g} {self.relation.value} {self.threshold:.6g}"


def at_most(name: str, value: float, threshold: float, tolerance: float = 0.0) -> Comparison:
    return Comparison(name, float(value), Relation.AT_MOST, float(threshold), tolerance)


def at_least(name: str, value: float, threshold: float, tolerance: float = 0.0) -> Comparison:
    return Comparison(name, float(value), Relation.AT_LEAST, float(threshold), tolerance)


@dataclass(frozen=True)
class Promise(Result):
    """What a theorem says about one measured quantity, before anything is measured."""

    measure: str
    relation: Relation
    threshold: float
    tolerance: float = 1e-9
    certain: bool = False  # must hold always, even where the theorem's other promises are only likely
    trivial: float = math.nan  # what holds without any theorem

    @property
    def vacuous(self) -> bool:
        """Whether it says no more than what holds anyway."""
        beyond = self.threshold >= self.trivial
        return beyond if self.relation is Relation.AT_MOST else self.threshold <= self.trivial

    def __str__(self) -> str:
        anyway = "" if math.isnan(self.trivial) else f", where {self.trivial:.6g} holds anyway"
        return f"{self.measure} {self.relation.value} {self.threshold:.6g}{anyway}"

    def against(self, value: float) -> Comparison:
        return Comparison(self.measure, float(value), self.relation, self.threshold, self.tolerance)


def promise_at_most(measure: str, threshold: float, tolerance: float = 1e-9, **more: Any) -> Promise:
    return Promise(measure, Relation.AT_MOST, float(threshold), tolerance, **more)


def promise_at_least(measure: str, threshold: float, tolerance: float = 1e-9, **more: Any) -> Promise:
    return Promise(measure, Relation.AT_LEAST, float(threshold), tolerance, **more)


@dataclass(frozen=True)
class Solution(Result):
    """The values of one parameter between `least` and `most` for which the hypotheses can hold; NaN where none."""

    id: str
    unknown: str
    least: float
    most: float
    given: Mapping[str, float]
    explanation: str


@dataclass(frozen=True)
class Failures(Result):
    """What a theorem counted itself over many draws at once."""

    failures: int
    skipped: int  # draws on which a hypothesis failed
    promised_failure_rate: float


@dataclass(frozen=True, eq=False)
class Witness:
    """What shows the promise: quantities, or perturbations that the driver applies and measures itself.

    `perturbations` (n, columns) are added to the rows of `examples` (the data's own where None) with labels `labels`.
    The driver adds the measures `LONGEST`, `LARGEST_MARGIN`, `SMALLEST_SCALE` and `SMALLEST_NORM`: the first scale at
    which all are flipped at once, infinite where there is none; and `COMPARATOR_FLIPPED` where there is a comparator.
    """

    measures: Mapping[str, float] = field(default_factory=dict)
    perturbations: Tensor | None = None
    examples: Tensor | None = None
    labels: Tensor | None = None


LONGEST = "longest perturbation"
LARGEST_MARGIN = "largest margin after the perturbation"
SMALLEST_SCALE = "smallest scale of it that flips all"
SMALLEST_NORM = "longest perturbation at that scale"
COMPARATOR_FLIPPED = "share that it flips of the robust network"


@dataclass(frozen=True, eq=False)
class Instance:
    """Data and a network to check a theorem on; `facts` holds what only the maker of an instance can know."""

    data: Data
    network: Network | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def two_layer(self) -> TwoLayer:
        about = "this theorem is about a two-layer ReLU network with one output"
        require(self.network is not None, f"{about}: give one beside the data")
        require(isinstance(self.network, TwoLayer), f"{about}, and the network is a {type(self.network).__name__}")
        assert isinstance(self.network, TwoLayer)
        return self.network

    @cached_property
    def gram(self) -> Tensor:
        return self.data.X @ self.data.X.T

    @cached_property
    def coherence(self) -> float:
        """p = max |<x_i, x_j>| over i ≠ j."""
        off = self.gram - torch.diag(self.gram.diagonal())
        return float(off.abs().max())

    @cached_property
    def balance(self) -> float:
        """c: the share of the rarer label."""
        positive = float((self.data.y > 0).double().mean())
        return min(positive, 1 - positive)

    @cached_property
    def smallest_margin(self) -> float:
        """min q over the training examples."""
        return float(self.two_layer.margins(self.data.X, self.data.y).min())

    @cached_property
    def kkt(self) -> Multipliers:
        """The network at margin 1 with the multipliers that explain it best."""
        return multipliers(self.two_layer, self.data)

    @property
    def kkt_distance(self) -> float:
        """ε of the best multipliers; infinite where an example is misclassified, for no multipliers are asked then."""
        return self.kkt.stationarity if self.smallest_margin > 0 else math.inf


class Theorem(ABC):
    """One statement of one paper. Its fields are tolerances and the sizes of its default instance."""

    id: ClassVar[str]  # paper/number
    claim: ClassVar[str]  # one line
    applies_to: ClassVar[str]  # one line: which data and networks
    flaw: ClassVar[str] = ""  # what is wrong with the statement as printed: "false: ...", or "vacuous: ..."
    repaired: ClassVar[str] = ""  # the id of the statement that stands in its place
    explicit_constants: ClassVar[bool] = True  # without them a claim is never confirmed, only its exponents are fitted
    unknowns: ClassVar[tuple[str, ...]] = ()  # what `solve_for` can be asked

    @abstractmethod
    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        """Every supposition with its measured value; cheap ones first, the driver stops at none."""

    @abstractmethod
    def bound(self, instance: Instance) -> list[Promise]:
        """What is promised; must not be computed from the witness."""

    @abstractmethod
    def witness(self, instance: Instance) -> Witness:
        """What is measured or applied; must not look at the bound."""

    @abstractmethod
    def default(self, rng: Generator) -> Instance:
        """An instance that satisfies every hypothesis and takes seconds."""

    def probability(self, instance: Instance) -> float:
        """How likely the promise is at least, over the randomness that the theorem names; 1 where it is certain."""
        return 1.0

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        """Fitted exponents beside the claimed ones, with the confounders, where the claim is one of growth."""
        return ()

    def failures(self, trials: int, rng: Generator) -> Failures | None:
        """Many draws at once; None where the driver must draw the default instance again and again."""
        return None

    def solve_for(self, unknown: str) -> Solution:
        """The range of one parameter, the other fields of the theorem being given."""
        offered = ", ".join(self.unknowns) or "nothing"
        raise InputError(f"{self.id} cannot be solved for {unknown!r}; it can be solved for {offered}")

    def comparator(self, instance: Instance) -> Network | None:
        """The robust network of the same paper that the witness should not flip, where there is one."""
        return None

    def note(self) -> str:
        """Where the paper and its proof disagree, or what must be known to read the verdict."""
        return ""

    @property
    def paper(self) -> str:
        return self.id.split("/")[0]
