"""The concentration lemmas of the appendix, beside the exact χ² and normal tails."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import scipy
import torch
from torch import Generator, Tensor

from brittle.common.errors import require_count, require_positive
from brittle.data import Data
from brittle.theorems.base import Failures, LikelyClaim
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

EXACT = "exact probability of a failure"


def vectors(X: Tensor) -> Data:
    """Vectors as rows; labels mean nothing here."""
    return Data(X, torch.ones(len(X), dtype=torch.float64))


def kurtosis(X: Tensor) -> float:
    """|excess kurtosis| of the entries in standard errors: says whether they look Gaussian, whatever their scale."""
    squares = X.square()
    excess = float(squares.square().mean() / squares.mean().square()) - 3
    return abs(excess) * math.sqrt(X.numel() / 24)


@dataclass(frozen=True)
class Concentration(LikelyClaim):
    """A ratio called `measure` of Gaussian vectors of R^`dim` is rarely extreme; `deviation` is their σ."""

    measure: ClassVar[str]

    dim: int = 32
    deviation: float = 1.0

    def __post_init__(self) -> None:
        require_count("dim", self.dim)
        require_positive("deviation", self.deviation)

    @abstractmethod
    def allowed(self, dim: int) -> float:
        """The stated probability of a failure."""

    @abstractmethod
    def tail(self, dim: int) -> float:
        """The exact one."""

    @abstractmethod
    def ratio(self, vectors: Tensor) -> Tensor:
        """The measured ratio of vectors (any, rows, n), (any,)."""

    @abstractmethod
    def draw(self, draws: int, rng: Generator) -> Tensor:
        """Vectors as the lemma supposes them, (draws, rows, n)."""

    @abstractmethod
    def likely(self) -> Promise:
        """Where the ratio lies, unless the lemma fails."""

    @abstractmethod
    def outside(self, ratios: Tensor) -> Tensor:
        """Which ratios do not, edges included."""

    def bound(self, instance: Instance) -> list[Promise]:
        return [self.likely(), promise_at_most(EXACT, self.allowed(instance.data.columns), certain=True)]

    def witness(self, instance: Instance) -> Witness:
        X = instance.data.X
        return Witness({self.measure: float(self.ratio(X[None])), EXACT: self.tail(X.shape[1])})

    def probability(self, instance: Instance) -> float:
        return 1 - self.allowed(instance.data.columns)

    def default(self, rng: Generator) -> Instance:
        return Instance(vectors(self.draw(1, rng)[0]))

    def failures(self, trials: int, rng: Generator) -> Failures:
        outside = self.outside(self.ratio(self.draw(trials, rng)))
        return Failures(int(outside.sum()), 0, self.allowed(self.dim))


@dataclass(frozen=True)
class Norm(Concentration):
    """‖Σ_i w_i‖² of m vectors w_i ~ N(0, σ² I_n), against its mean m σ² n; `summands` is m."""

    applies_to: ClassVar = "rows drawn from N(0, σ² I); no network"
    measure: ClassVar = "‖Σ w‖² over its mean"

    summands: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("summands", self.summands)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_most("excess kurtosis in standard errors", kurtosis(instance.data.X), 10)

    def allowed(self, dim: int) -> float:
        return math.exp(-dim / 16)

    def ratio(self, vectors: Tensor) -> Tensor:
        scale = vectors.shape[1] * self.deviation**2 * vectors.shape[2]
        return vectors.sum(1).square().sum(1) / scale

    def draw(self, draws: int, rng: Generator) -> Tensor:
        return self.deviation * torch.randn(draws, self.summands, self.dim, generator=rng, dtype=torch.float64)


class NotShort(Norm):
    """The sum is not short."""

    def likely(self) -> Promise:
        return promise_at_least(self.measure, 0.5)

    def outside(self, ratios: Tensor) -> Tensor:
        return ratios <= 0.5

    def tail(self, dim: int) -> float:
        return float(scipy.stats.chi2.cdf(dim / 2, dim))


class NotLong(Norm):
    """The sum is not long."""

    def likely(self) -> Promise:
        return promise_at_most(self.measure, 2.0)

    def outside(self, ratios: Tensor) -> Tensor:
        return ratios >= 2

    def tail(self, dim: int) -> float:
        return float(scipy.stats.chi2.sf(2 * dim, dim))


@dataclass(frozen=True)
class ShortVector(NotShort, id="melamed2023/B.1"):
    """P[‖w‖² ≤ σ²n/2] ≤ e^(-n/16) for w ~ N(0, σ² I_n)."""

    claim: ClassVar = "a Gaussian vector is not short: P[‖w‖² ≤ σ²n/2] ≤ exp(-n/16)"


@dataclass(frozen=True)
class ShortSum(NotShort, id="melamed2023/B.2"):
    """P[‖Σ_i w_i‖² ≤ mσ²n/2] ≤ e^(-n/16) for m independent w_i ~ N(0, σ² I_n)."""

    claim: ClassVar = "a sum of Gaussian vectors is not short: P[‖Σw‖² ≤ mσ²n/2] ≤ exp(-n/16)"
    note: ClassVar = "independence of the summands is used and not stated"

    summands: int = 10


@dataclass(frozen=True)
class LongVector(NotLong, id="melamed2023/C.1"):
    """P[‖w‖² ≥ 2σ²n] ≤ e^(-n/16) for w ~ N(0, σ² I_n)."""

    claim: ClassVar = "a Gaussian vector is not long: P[‖w‖² ≥ 2σ²n] ≤ exp(-n/16)"


@dataclass(frozen=True)
class LongSum(NotLong, id="melamed2023/D.1"):
    """P[‖Σ_i w_i‖² ≥ 2mσ²n] ≤ e^(-n/16) for m independent w_i ~ N(0, σ² I_n)."""

    claim: ClassVar = "a sum of Gaussian vectors is not long: P[‖Σw‖² ≥ 2mσ²n] ≤ exp(-n/16)"
    note: ClassVar = "the proof of Theorem 6.1 cites B.2 and means this lemma"

    summands: int = 10


@dataclass(frozen=True)
class Product(Concentration):
    """<u, v> for the two rows u, v of the data; `threshold` is t, `deviation` is that of v."""

    measure: ClassVar = "|<u, v>| over its threshold"

    threshold: float = 4.0

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_least("rows", len(instance.data), 2)
        yield at_least("threshold t", self.threshold, 1e-300)
        yield at_least("length of u", float(instance.data.X[0].norm()), 1e-300)
        yield at_most("excess kurtosis of v in standard errors", kurtosis(instance.data.X[-1]), 10)

    @abstractmethod
    def scale(self, u: Tensor) -> Tensor:
        """What |<u, v>| rarely exceeds, for every row of u (any, n), (any,)."""

    def ratio(self, vectors: Tensor) -> Tensor:
        u, v = vectors[:, 0], vectors[:, 1]
        return (u * v).sum(1).abs() / self.scale(u)

    def likely(self) -> Promise:
        return promise_at_most(self.measure, 1.0)

    def outside(self, ratios: Tensor) -> Tensor:
        return ratios >= 1


@dataclass(frozen=True)
class ProductWithFixed(Product, id="melamed2023/C.2"):
    """P[|<u, v>| ≥ ‖u‖t] ≤ 2 e^(-t²/2σ²) for a fixed u and v ~ N(0, σ² I_n)."""

    claim: ClassVar = "a fixed and a Gaussian vector are nearly orthogonal: P[|<u,v>| ≥ ‖u‖t] ≤ 2exp(-t²/2σ²)"
    applies_to: ClassVar = "two rows: any u, and v drawn from N(0, σ² I); no network"

    def allowed(self, dim: int) -> float:
        return 2 * math.exp(-(self.threshold**2) / (2 * self.deviation**2))

    def tail(self, dim: int) -> float:
        return float(2 * scipy.stats.norm.sf(self.threshold / self.deviation))

    def scale(self, u: Tensor) -> Tensor:
        return u.square().sum(1).sqrt() * self.threshold

    def draw(self, draws: int, rng: Generator) -> Tensor:
        v = self.deviation * torch.randn(draws, self.dim, generator=rng, dtype=torch.float64)
        return torch.stack([torch.ones_like(v), v], 1)


@dataclass(frozen=True)
class ProductOfGaussians(Product, id="melamed2023/C.3"):
    """P[|<u, v>| ≥ σ1 √(2n) t] ≤ e^(-n/16) + 2 e^(-t²/2σ2²) for u ~ N(0, σ1² I_n), v ~ N(0, σ2² I_n).

    `first_deviation` is σ1, `deviation` is σ2.
    """

    claim: ClassVar = "two Gaussian vectors are nearly orthogonal: P[|<u,v>| ≥ σ1√(2n)t] ≤ exp(-n/16) + 2exp(-t²/2σ2²)"
    applies_to: ClassVar = "two rows drawn from N(0, σ1² I) and N(0, σ2² I); no network"

    dim: int = 64
    first_deviation: float = 1.0

    def allowed(self, dim: int) -> float:
        return math.exp(-dim / 16) + 2 * math.exp(-(self.threshold**2) / (2 * self.deviation**2))

    def tail(self, dim: int) -> float:
        """<u, v> is N(0, σ2² ‖u‖²) given u, and ‖u‖/σ1 is χ."""
        reach = math.sqrt(2 * dim) * self.threshold / self.deviation
        return float(scipy.stats.chi(dim).expect(lambda length: 2 * scipy.stats.norm.sf(reach / length)))

    def scale(self, u: Tensor) -> Tensor:
        return u.new_full((len(u),), self.first_deviation * math.sqrt(2 * u.shape[1]) * self.threshold)

    def draw(self, draws: int, rng: Generator) -> Tensor:
        u, v = torch.randn(2, draws, self.dim, generator=rng, dtype=torch.float64)
        return torch.stack([self.first_deviation * u, self.deviation * v], 1)
