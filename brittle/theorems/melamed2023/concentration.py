"""The concentration lemmas of the appendix, beside the exact χ² and normal tails."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from scipy import stats
from torch import Generator, Tensor

from brittle.common.errors import require_count, require_positive
from brittle.settings import Data
from brittle.theorems.base import (
    Comparison,
    Failures,
    Instance,
    Promise,
    Theorem,
    Witness,
    at_least,
    at_most,
    promise_at_least,
    promise_at_most,
)

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
class Norm(Theorem):
    """‖Σ_i w_i‖² of m vectors w_i ~ N(0, σ² I_n), against its mean m σ² n."""

    applies_to: ClassVar = "rows drawn from N(0, σ² I); no network"
    measure: ClassVar = "‖Σ w‖² over its mean"
    lower: ClassVar[bool]

    dim: int = 32
    deviation: float = 1.0
    summands: int = 1

    def __post_init__(self) -> None:
        require_count("dim", self.dim)
        require_count("summands", self.summands)
        require_positive("deviation", self.deviation)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_most("excess kurtosis in standard errors", kurtosis(instance.data.X), 10)

    def bound(self, instance: Instance) -> list[Promise]:
        promise = promise_at_least(self.measure, 0.5) if self.lower else promise_at_most(self.measure, 2.0)
        return [promise, promise_at_most(EXACT, math.exp(-instance.data.columns / 16), certain=True)]

    def witness(self, instance: Instance) -> Witness:
        X = instance.data.X
        return Witness({self.measure: float(self._ratios(X[None])), EXACT: self.tail(X.shape[1])})

    def probability(self, instance: Instance) -> float:
        return 1 - math.exp(-instance.data.columns / 16)

    def default(self, rng: Generator) -> Instance:
        return Instance(vectors(self._draw(1, rng)[0]))

    def failures(self, trials: int, rng: Generator) -> Failures:
        ratios = self._ratios(self._draw(trials, rng))
        failed = ratios <= 0.5 if self.lower else ratios >= 2
        return Failures(int(failed.sum()), 0, math.exp(-self.dim / 16))

    def tail(self, dim: int) -> float:
        return float(stats.chi2.cdf(dim / 2, dim) if self.lower else stats.chi2.sf(2 * dim, dim))

    def _ratios(self, W: Tensor) -> Tensor:
        """W (draws, summands, n)."""
        return W.sum(1).square().sum(1) / (W.shape[1] * self.deviation**2 * W.shape[2])

    def _draw(self, draws: int, rng: Generator) -> Tensor:
        return self.deviation * torch.randn(draws, self.summands, self.dim, generator=rng, dtype=torch.float64)

    @abstractmethod
    def note(self) -> str: ...


@dataclass(frozen=True)
class ShortVector(Norm):
    """P[‖w‖² ≤ σ²n/2] ≤ e^(-n/16) for w ~ N(0, σ² I_n)."""

    id: ClassVar = "melamed2023/B.1"
    claim: ClassVar = "a Gaussian vector is not short: P[‖w‖² ≤ σ²n/2] ≤ exp(-n/16)"
    lower: ClassVar = True

    def note(self) -> str:
        return ""


@dataclass(frozen=True)
class ShortSum(Norm):
    """P[‖Σ_i w_i‖² ≤ mσ²n/2] ≤ e^(-n/16) for m independent w_i ~ N(0, σ² I_n)."""

    id: ClassVar = "melamed2023/B.2"
    claim: ClassVar = "a sum of Gaussian vectors is not short: P[‖Σw‖² ≤ mσ²n/2] ≤ exp(-n/16)"
    lower: ClassVar = True

    summands: int = 10

    def note(self) -> str:
        return "independence of the summands is used and not stated"


@dataclass(frozen=True)
class LongVector(Norm):
    """P[‖w‖² ≥ 2σ²n] ≤ e^(-n/16) for w ~ N(0, σ² I_n)."""

    id: ClassVar = "melamed2023/C.1"
    claim: ClassVar = "a Gaussian vector is not long: P[‖w‖² ≥ 2σ²n] ≤ exp(-n/16)"
    lower: ClassVar = False

    def note(self) -> str:
        return ""


@dataclass(frozen=True)
class LongSum(Norm):
    """P[‖Σ_i w_i‖² ≥ 2mσ²n] ≤ e^(-n/16) for m independent w_i ~ N(0, σ² I_n)."""

    id: ClassVar = "melamed2023/D.1"
    claim: ClassVar = "a sum of Gaussian vectors is not long: P[‖Σw‖² ≥ 2mσ²n] ≤ exp(-n/16)"
    lower: ClassVar = False

    summands: int = 10

    def note(self) -> str:
        return "the proof of Theorem 6.1 cites B.2 and means this lemma"


@dataclass(frozen=True)
class Product(Theorem):
    """<u, v> for the two rows u, v of the data."""

    measure: ClassVar = "|<u, v>| over its threshold"

    dim: int = 32
    threshold: float = 2.5  # t
    deviation: float = 1.0  # of v

    def __post_init__(self) -> None:
        require_count("dim", self.dim)
        require_positive("deviation", self.deviation)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_least("rows", len(instance.data), 2)
        yield at_least("threshold t", self.threshold, 1e-300)
        yield at_least("length of u", float(instance.data.X[0].norm()), 1e-300)
        yield at_most("excess kurtosis of v in standard errors", kurtosis(instance.data.X[-1]), 10)

    def bound(self, instance: Instance) -> list[Promise]:
        exact = promise_at_most(EXACT, self.allowed(instance.data.columns), certain=True)
        return [promise_at_most(self.measure, 1.0), exact]

    def witness(self, instance: Instance) -> Witness:
        u, v = instance.data.X[0], instance.data.X[1]
        return Witness({self.measure: float(self._ratio(u, v)), EXACT: self.tail(instance.data.columns)})

    def probability(self, instance: Instance) -> float:
        return 1 - self.allowed(instance.data.columns)

    def default(self, rng: Generator) -> Instance:
        return Instance(vectors(torch.cat(self._draw(1, rng))))

    def failures(self, trials: int, rng: Generator) -> Failures:
        ratios = self._ratio(*self._draw(trials, rng))
        return Failures(int((ratios >= 1).sum()), 0, self.allowed(self.dim))

    @abstractmethod
    def allowed(self, dim: int) -> float: ...

    @abstractmethod
    def tail(self, dim: int) -> float: ...

    @abstractmethod
    def _ratio(self, u: Tensor, v: Tensor) -> Tensor: ...

    @abstractmethod
    def _draw(self, draws: int, rng: Generator) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True)
class ProductWithFixed(Product):
    """P[|<u, v>| ≥ ‖u‖t] ≤ 2 e^(-t²/2σ²) for a fixed u and v ~ N(0, σ² I_n)."""

    id: ClassVar = "melamed2023/C.2"
    claim: ClassVar = "a fixed and a Gaussian vector are nearly orthogonal: P[|<u,v>| ≥ ‖u‖t] ≤ 2exp(-t²/2σ²)"
    applies_to: ClassVar = "two rows: any u, and v drawn from N(0, σ² I); no network"

    def allowed(self, dim: int) -> float:
        return 2 * math.exp(-(self.threshold**2) / (2 * self.deviation**2))

    def tail(self, dim: int) -> float:
        return float(2 * stats.norm.sf(self.threshold / self.deviation))

    def _ratio(self, u: Tensor, v: Tensor) -> Tensor:
        return (u * v).sum(-1).abs() / (u.norm(dim=-1) * self.threshold)

    def _draw(self, draws: int, rng: Generator) -> tuple[Tensor, Tensor]:
        u = torch.ones(draws, self.dim, dtype=torch.float64)
        return u, self.deviation * torch.randn(draws, self.dim, generator=rng, dtype=torch.float64)


@dataclass(frozen=True)
class ProductOfGaussians(Product):
    """P[|<u, v>| ≥ σ1 √(2n) t] ≤ e^(-n/16) + 2 e^(-t²/2σ2²) for u ~ N(0, σ1² I_n), v ~ N(0, σ2² I_n)."""

    id: ClassVar = "melamed2023/C.3"
    claim: ClassVar = "two Gaussian vectors are nearly orthogonal: P[|<u,v>| ≥ σ1√(2n)t] ≤ exp(-n/16) + 2exp(-t²/2σ2²)"
    applies_to: ClassVar = "two rows drawn from N(0, σ1² I) and N(0, σ2² I); no network"

    dim: int = 64
    first_deviation: float = 1.0

    def allowed(self, dim: int) -> float:
        return math.exp(-dim / 16) + 2 * math.exp(-(self.threshold**2) / (2 * self.deviation**2))

    def tail(self, dim: int) -> float:
        """<u, v> is N(0, σ2² ‖u‖²) given u, and ‖u‖/σ1 is χ."""
        reach = math.sqrt(2 * dim) * self.threshold / self.deviation
        return float(stats.chi(dim).expect(lambda length: 2 * stats.norm.sf(reach / length)))

    def _ratio(self, u: Tensor, v: Tensor) -> Tensor:
        scale = self.first_deviation * math.sqrt(2 * u.shape[-1]) * self.threshold
        return (u * v).sum(-1).abs() / scale

    def _draw(self, draws: int, rng: Generator) -> tuple[Tensor, Tensor]:
        u, v = torch.randn(2, draws, self.dim, generator=rng, dtype=torch.float64)
        return self.first_deviation * u, self.deviation * v
