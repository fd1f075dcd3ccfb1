"""Radius against accuracy along the way of a remedy that asks for more and more: a person may choose from it."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Generator, Tensor

from brittle.attacks import FREE
from brittle.auditing.budget import WorkBudget
from brittle.auditing.costs import Costs
from brittle.auditing.pieces import median, tenth
from brittle.auditing.remedy import RemedyOutput, measure_accuracy
from brittle.auditing.vulnerability import smallest
from brittle.common.result import Result
from brittle.common.time_limit import TimeLimitReached
from brittle.data import Data
from brittle.networks import Network

SHARE = 0.2  # of the work that a remedy has left when it is made and measured
FEWEST = 6  # examples, that say something of a median


@dataclass(frozen=True)
class CurvePoint(Result):
    """A network that can be had; its `role` is to be the one `before` treatment, one on the `way`, or that `after` it.

    `kappa` is the share of the attainable radius that it was asked for, None before. `accuracy` is on the examples that
    judge the remedy. `radius` and `tenth` are what half and nine tenths of the attacked examples have at least.

    Examples:
        >>> from brittle.auditing import CurvePoint
        >>> CurvePoint("way", kappa=0.5, accuracy=0.99, radius=0.7, tenth=0.4).role
        'way'
    """

    role: Literal["before", "way", "after"]
    kappa: float | None
    accuracy: float
    radius: float
    tenth: float


@dataclass(frozen=True)
class TradeoffCurve(Result):
    """`points` from before, over κ, to after, attacked on the first `examples` of those that were audited.

    `kappa` is that of the point on the way that the end was made from.

    Examples:
        >>> from brittle.auditing import TradeoffCurve, CurvePoint
        >>> points = CurvePoint("before", None, 0.99, 0.6, 0.2), CurvePoint("after", 1.0, 0.99, 0.8, 0.5)
        >>> TradeoffCurve(examples=100, kappa=0.9, points=points).points[-1].radius
        0.8
    """

    examples: int
    kappa: float
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, eq=False)
class CurveEnds:
    """Norms of the shortest flips before and after, and both accuracies."""

    norms: tuple[Tensor, Tensor]
    accuracies: tuple[float, float]


def curve(
    made: RemedyOutput, ends: CurveEnds, data: Data, audited: Data, rng: Generator, budget: WorkBudget
) -> TradeoffCurve | None:
    """None without a way, where the budget affords too few examples, and where its time is up."""
    kept = [point for point in made.way if point.kept]
    if not kept:
        return None
    work = len(made.way) * Costs.of(made.network).attack()
    count = min(len(audited), budget.grant(SHARE * budget.left).steps(work))
    if count < min(FEWEST, len(audited)):
        return None
    some = audited.take(torch.arange(count))
    before, after = (_point(norms[:count], each) for norms, each in zip(ends.norms, ends.accuracies, strict=True))
    points = [CurvePoint("before", None, *before)]
    try:
        for place in made.way:
            norms = _norms(place.network, some, rng, budget)
            if norms is None:
                return None
            points.append(CurvePoint("way", place.kappa, *_point(norms, measure_accuracy(place.network, data))))
    except TimeLimitReached:
        return None
    return TradeoffCurve(count, kept[0].kappa, (*points, CurvePoint("after", kept[0].kappa, *after)))


def _point(norms: Tensor, accuracy: float) -> tuple[float, float, float]:
    return accuracy, median(norms), tenth(norms)


def _norms(network: Network, some: Data, rng: Generator, budget: WorkBudget) -> Tensor | None:
    radii, _ = smallest(network.to(torch.float64), some, FREE, rng, budget)
    return None if radii.partial else radii.norms
