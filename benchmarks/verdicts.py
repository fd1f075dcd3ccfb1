"""What is known of examples at one ℓ2 radius: wrong, flipped, proved, or open. All of space counts, not a box."""

import enum
import time
from dataclasses import dataclass, replace
from typing import Any

import scipy
import torch
from torch import Tensor

from benchmarks.deep import Nothing
from brittle.attacks import PGD
from brittle.certificates import Certificate, Dual, Exact
from brittle.common.progress import Watch, silent
from brittle.data import Data
from brittle.experiments.pieces import Executor, Outcome
from brittle.networks import Network

AT_ONCE = 50  # examples of a chunk
STEPS = 100  # of the attack
GAP = 5e-4  # of branch and bound, which is asked for a little more than the radius
FOREVER = 1e9  # nodes end it, which are the same on every machine
CONFIDENCE = 0.95


class Verdict(enum.IntEnum):
    """Of one example."""

    WRONG = 0  # not classified as its label says
    FLIPPED = 1  # right, and a perturbation within the radius was measured to change it
    OPEN = 2  # right, neither flipped nor proved
    PROVED = 3  # right, and no perturbation within the radius changes it: a lower bound with rounding paid for


@dataclass(frozen=True, eq=False)
class Attacked:
    """A piece: these `data`, attacked and then asked of the dual bound."""

    network: Network
    data: Data
    radius: float

    def __call__(self) -> Outcome:
        begun = time.process_time()
        double, X, y = self.network.to(torch.float64), self.data.X, self.data.y
        verdicts = torch.full((len(y),), int(Verdict.OPEN))
        verdicts[PGD(budget=self.radius, steps=STEPS).run(double, self.data).success] = Verdict.FLIPPED
        verdicts[~(double.margins(X, y) > 0)] = Verdict.WRONG
        rows = open_rows(verdicts)
        if len(rows):
            verdicts[rows] = decided(Dual(refined=True), double, self.data.take(rows), self.radius, self.radius)
        return {"verdicts": verdicts, "processor": time.process_time() - begun}


@dataclass(frozen=True, eq=False)
class Branched:
    """A piece: `data` that are right and not yet flipped, by branch and bound with at most so many `nodes` each."""

    network: Network
    data: Data
    radius: float
    nodes: int

    def __call__(self) -> Outcome:
        begun, cap = time.process_time(), self.radius * (1 + 2 * GAP)
        method = Exact(GAP, seconds=FOREVER, nodes=self.nodes)
        verdicts = decided(method, self.network.to(torch.float64), self.data, self.radius, cap)
        return {"verdicts": verdicts, "processor": time.process_time() - begun}


def judged(network: Network, data: Data, radius: float, nodes: int, crew: Executor, watch: Watch = silent) -> "Tally":
    """Attack and dual bound in chunks, then branch and bound on what is left, picture by picture."""
    alone = replace(data, X_test=None, y_test=None)
    parts = [Attacked(network, alone.take(rows), radius) for rows in torch.split(torch.arange(len(data)), AT_ONCE)]
    outcomes = list(crew(parts, watch))
    verdicts = torch.cat([outcome["verdicts"] for outcome in outcomes])
    rows = open_rows(verdicts)
    if nodes and len(rows):
        later = list(crew([Branched(network, alone.take(row[None]), radius, nodes) for row in rows], watch))
        verdicts[rows] = torch.cat([outcome["verdicts"] for outcome in later])
        outcomes += later
    return Tally.of(verdicts, sum(outcome["processor"] for outcome in outcomes))


def open_rows(verdicts: Tensor) -> Tensor:
    return (verdicts == Verdict.OPEN).nonzero()[:, 0]


def decided(method: Certificate, network: Network, data: Data, radius: float, cap: float) -> Tensor:
    """Of right examples that no attack has flipped yet."""
    found = method.bound(network, data, attack=Nothing(), cap=cap)
    verdicts = torch.full((len(data),), int(Verdict.OPEN))
    verdicts[found.lower >= radius] = Verdict.PROVED
    verdicts[found.upper < radius] = Verdict.FLIPPED  # a flip below a lower bound would have raised Contradiction
    return verdicts


@dataclass(frozen=True)
class Tally:
    """How many examples have which verdict, and the processor seconds that it took."""

    counts: dict[str, int]
    processor: float

    @classmethod
    def of(cls, verdicts: Tensor, processor: float) -> "Tally":
        return cls({kind.name.lower(): int((verdicts == kind).sum()) for kind in Verdict}, processor)

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
