"""What is known of examples at one ℓ2 radius: wrong, flipped, proved, or open. All of space counts, not a box."""

import enum
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import scipy
import torch
from torch import Tensor

from benchmarks.deep import Nothing
from brittle.attacks import PGD
from brittle.certificates import Certificate, Dual, Exact
from brittle.experiments.pieces import Outcome
from brittle.networks import Network
from brittle.settings import Data

AT_ONCE = 50  # examples of a chunk
STEPS = 100  # of the attack
GAP = 5e-4  # of branch and bound, which is asked for a little more than the radius
CONFIDENCE = 0.95


class Verdict(enum.IntEnum):
    """Of one example."""

    WRONG = 0  # not classified as its label says
    FLIPPED = 1  # right, and a perturbation within the radius was measured to change it
    OPEN = 2  # right, neither flipped nor proved
    PROVED = 3  # right, and no perturbation within the radius changes it: a lower bound with rounding paid for


def judged(network: Network, data: Data, radius: float, seconds: float) -> Tensor:
    """A verdict (n,) for each example; `seconds` for each that only branch and bound can decide."""
    double = network.to(torch.float64)
    verdicts = torch.full((len(data),), int(Verdict.OPEN))
    verdicts[PGD(budget=radius, steps=STEPS).run(double, data).success] = Verdict.FLIPPED
    verdicts[~(double.margins(data.X, data.y) > 0)] = Verdict.WRONG
    for method, cap in ((Dual(refined=True), radius), (Exact(GAP, seconds), radius * (1 + 2 * GAP))):
        rows = (verdicts == Verdict.OPEN).nonzero()[:, 0]
        if len(rows):
            verdicts[rows] = _decided(method, double, data.take(rows), radius, cap)
    return verdicts


def _decided(method: Certificate, network: Network, data: Data, radius: float, cap: float) -> Tensor:
    """Of right examples that no attack has flipped yet."""
    found = method.bound(network, data, attack=Nothing(), cap=cap)
    verdicts = torch.full((len(data),), int(Verdict.OPEN))
    verdicts[found.lower >= radius] = Verdict.PROVED
    verdicts[found.upper < radius] = Verdict.FLIPPED  # a flip below a lower bound would have raised Contradiction
    return verdicts


@dataclass(frozen=True, eq=False)
class JudgedChunk:
    """These `data` with all that their verdicts depend on."""

    network: Network
    data: Data
    radius: float
    seconds: float

    def __call__(self) -> Outcome:
        begun = time.process_time()
        verdicts = judged(self.network, self.data, self.radius, self.seconds)
        return {"verdicts": verdicts, "processor": time.process_time() - begun}


def chunks(network: Network, data: Data, radius: float, seconds: float) -> Iterator[JudgedChunk]:
    """A few examples each, in their order."""
    for rows in torch.split(torch.arange(len(data)), AT_ONCE):
        yield JudgedChunk(network, replace(data, X_test=None, y_test=None).take(rows), radius, seconds)


@dataclass(frozen=True)
class Tally:
    """How many examples have which verdict, and the processor seconds that it took."""

    counts: dict[str, int]
    processor: float

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> "Tally":
        verdicts = [int(each) for outcome in outcomes for each in outcome["verdicts"]]
        counts = {kind.name.lower(): verdicts.count(kind) for kind in Verdict}
        return cls(counts, sum(outcome["processor"] for outcome in outcomes))

    @property
    def examples(self) -> int:
        return sum(self.counts.values())

    @property
    def proved(self) -> float:
        """The certified accuracy."""
        return self.counts["proved"] / self.examples

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's 95 % interval for the share of all pictures of this kind that would be proved."""
        good, bad, tail = self.counts["proved"], self.examples - self.counts["proved"], (1 - CONFIDENCE) / 2
        low = float(scipy.stats.beta.ppf(tail, good, bad + 1)) if good else 0.0
        return low, float(scipy.stats.beta.ppf(1 - tail, good + 1, bad)) if bad else 1.0

    def to_json(self) -> dict[str, Any]:
        return {
            "examples": self.examples,
            **self.counts,
            "certified": self.proved,
            "interval": list(self.interval),
            "processor": self.processor,
        }
