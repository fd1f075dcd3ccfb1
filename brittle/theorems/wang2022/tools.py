"""The tools of appendix B: B.1-B.3, equations (1) and (2), each beside the exact probability of one example."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
from torch import Generator

from brittle.data import Sphere
from brittle.theorems.base import Theorem, chance
from brittle.theorems.comparison import Comparison, Promise, Witness, at_least, at_most, promise_at_most
from brittle.theorems.instance import Instance

EXACT = "exact probability"
MOMENT = "largest E|z|^q over its bound, q ≤ the order"


@dataclass(frozen=True)
class Tool(Theorem):
    """About random numbers alone; the instance is a formality."""

    applies_to: ClassVar = "random variables; neither data nor a network"

    def default(self, rng: Generator) -> Instance:
        return Instance(Sphere(2, radius=1.0).sample(1, rng))


@dataclass(frozen=True)
class Tail(Tool):
    """A tail whose exact probability is known; `t` is its argument, `count` how many variables there are."""

    count: int = 100
    t: float = 3.0

    @abstractmethod
    def allowed(self) -> float:
        """The stated probability."""

    @abstractmethod
    def exact(self) -> float:
        """The exact one."""

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(EXACT, self.allowed(), tolerance=1e-12, trivial=1.0)]

    def witness(self, instance: Instance) -> Witness:
        return Witness({EXACT: self.exact()})


@dataclass(frozen=True)
class Bernstein(Tail, id="wang2022/B.1"):
    """Σ E z_i² ≤ v and Σ E|z_i|^q ≤ (q!/2) v c^(q-2) for q ≥ 3 ⇒ P(Σ (z_i - E z_i) ≥ √(2vt) + ct) ≤ e^(-t).

    Example: `count` squares of N(0, 1), so that E z^q = (2q-1)!!; `variance` is v for each, `scale` is c.
    """

    claim: ClassVar = "Bernstein's inequality: P(S ≥ √(2vt) + ct) ≤ exp(-t)"

    variance: float = 3.0
    scale: float = 2.0

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_least("t", self.t, 1e-300)
        yield at_most("Σ E z² over v", 3 / self.variance, 1)
        orders = range(3, 60)
        moments = [
            scipy.special.factorial2(2 * q - 1) / (math.factorial(q) / 2 * self.scale ** (q - 2)) for q in orders
        ]
        yield at_most("Σ E|z|^q over (q!/2) v c^(q-2)", max(moments) / self.variance, 1)

    def allowed(self) -> float:
        return math.exp(-self.t)

    def exact(self) -> float:
        deviation = math.sqrt(2 * self.variance * self.count * self.t) + self.scale * self.t
        return float(scipy.stats.chi2.sf(self.count + deviation, self.count))


@dataclass(frozen=True)
class Chernoff(Tail, id="wang2022/B.2"):
    """P(S ≥ t) ≤ e^(-p) (ep/t)^t for t > p = Σ μ_i, S a sum of independent Bernoulli variables of parameters μ_i.

    Example: `count` variables whose μ_i grow evenly from 0 to twice `mean`.
    """

    claim: ClassVar = "Chernoff's inequality: P(S ≥ t) ≤ exp(-p) (ep/t)^t for t > p = E S"

    t: float = 12.0
    mean: float = 0.05

    @property
    def parameters(self) -> np.ndarray:
        """μ_i."""
        return np.linspace(0, 2 * self.mean, self.count)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_most("largest μ", float(self.parameters.max()), 1)
        yield at_least("t beside p", self.t, float(self.parameters.sum()) * (1 + 1e-12))

    def allowed(self) -> float:
        p = float(self.parameters.sum())
        return math.exp(-p + self.t * math.log(math.e * p / self.t))

    def exact(self) -> float:
        """The law of S, one variable after the other."""
        law = np.ones(1)
        for mu in self.parameters:
            law = np.convolve(law, [1 - mu, mu])
        return float(law[math.ceil(self.t) :].sum())


@dataclass(frozen=True)
class LipschitzOfGaussians(Tail, id="wang2022/B.3"):
    """P(|f(z) - E f(z)| ≥ t) ≤ 2e^(-t²/2L²) for L-Lipschitz f of a standard Gaussian z.

    Example: f = L‖z‖ for `count` variables; `slope` is L.
    """

    claim: ClassVar = "a Lipschitz function of a Gaussian vector concentrates: P(|f - E f| ≥ t) ≤ 2exp(-t²/2L²)"

    slope: float = 2.0

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_least("t", self.t, 0)
        yield at_least("slope L", self.slope, 1e-300)

    def allowed(self) -> float:
        return 2 * math.exp(-(self.t**2) / (2 * self.slope**2))

    def exact(self) -> float:
        law, reach = scipy.stats.chi(self.count), self.t / self.slope
        return float(law.sf(law.mean() + reach) + law.cdf(law.mean() - reach))


@dataclass(frozen=True)
class Moments(Tool):
    """E|z|^q ≤ (q-1)!! ≤ q!/2 for z ~ N(0, 1) and every whole q from `first` to `order`."""

    first: ClassVar[int]

    order: int = 40

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_least("order", self.order, self.first)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(MOMENT, 1.0)]

    def witness(self, instance: Instance) -> Witness:
        ratios = []
        for q in range(self.first, self.order + 1):
            moment = 2 ** (q / 2) * math.gamma((q + 1) / 2) / math.sqrt(math.pi)
            double = float(scipy.special.factorial2(q - 1)) if q > 1 else 1.0
            ratios.append(max(moment / double, double / (math.factorial(q) / 2)))
        return Witness({MOMENT: max(ratios)})


@dataclass(frozen=True)
class PrintedMoments(Moments, id="wang2022/eq1-printed"):
    """E|z|^q ≤ (q-1)!! ≤ q!/2 for z ~ N(0, 1) and every q ≥ 1."""

    claim: ClassVar = "E|z|^q ≤ (q-1)!! ≤ q!/2 for every q (equation 1, as printed)"
    flaw: ClassVar = "false at q = 1: E|z| = .798 and 0!! = 1, where 1!/2 = .5"
    repaired: ClassVar = "wang2022/eq1"
    first: ClassVar = 1


@dataclass(frozen=True)
class SoundMoments(Moments, id="wang2022/eq1"):
    """E|z|^q ≤ (q-1)!! ≤ q!/2 for z ~ N(0, 1) and every q ≥ 2."""

    claim: ClassVar = "E|z|^q ≤ (q-1)!! ≤ q!/2 for every q ≥ 2 (equation 1)"
    first: ClassVar = 2


@dataclass(frozen=True)
class ChiSquare(Tool):
    """P(|Σ_{s ≤ m} z_s² - m| > 4√(m ln(2/γ))) for z_s ~ N(0, 1); `count` is m, `gamma` is γ."""

    count: int = 20
    gamma: float = chance(1e-6)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(EXACT, self.gamma, tolerance=1e-12)]

    def witness(self, instance: Instance) -> Witness:
        reach = 4 * math.sqrt(self.count * math.log(2 / self.gamma))
        law = scipy.stats.chi2(self.count)
        return Witness({EXACT: float(law.sf(self.count + reach) + law.cdf(self.count - reach))})

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield at_least("count m", self.count, 1)
        yield at_most("γ", self.gamma, 1)


@dataclass(frozen=True)
class PrintedChiSquare(ChiSquare, id="wang2022/eq2-printed"):
    """|Σ z_s² - m| ≤ 4√(m ln(2/γ)) w.p. ≥ 1-γ for every m."""

    claim: ClassVar = "|Σ z² - m| ≤ 4√(m ln(2/γ)) with probability 1-γ for every m (equation 2, as printed)"
    flaw: ClassVar = "false for m < ln(2/γ): the tail of χ² is exponential, not Gaussian"
    repaired: ClassVar = "wang2022/eq2"

    count: int = 1


@dataclass(frozen=True)
class SoundChiSquare(ChiSquare, id="wang2022/eq2"):
    """|Σ z_s² - m| ≤ 4√(m ln(2/γ)) w.p. ≥ 1-γ where m ≥ ln(2/γ): 2√(mt) + 2t ≤ 4√(mt) with t = ln(2/γ) ≤ m."""

    claim: ClassVar = "|Σ z² - m| ≤ 4√(m ln(2/γ)) with probability 1-γ, m ≥ ln(2/γ) (equation 2)"

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().hypotheses(instance)
        yield at_least("m beside ln(2/γ)", self.count, math.log(2 / self.gamma))
