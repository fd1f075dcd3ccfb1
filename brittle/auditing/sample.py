"""The examples that everything is measured on, before and after alike, and what they say of a median."""

import math

import torch
from torch import Generator, Tensor

from brittle.settings import Data

LEVEL = 0.95  # of the intervals


def drawn(y: Tensor, count: int, rng: Generator) -> Tensor:
    """Rows of `count` random examples, of every label its share to within one; fewer are the first ones of more."""
    order = torch.randperm(len(y), generator=rng)
    turns = torch.empty(len(y), dtype=torch.float64)
    for label in torch.unique(y):
        own = y[order] == label
        turns[own] = (torch.arange(int(own.sum()), dtype=torch.float64) + 0.5) / int(own.sum())
    return order[turns.argsort(stable=True)[:count]]


def audited(data: Data, held_out: bool) -> Data:
    """The examples that an audit draws from: those that were trained on, or the held-out ones."""
    return data.test if held_out else data


def median(values: Tensor) -> float:
    """The (lower) middle value, infinity where half of them are infinite; NaN for none."""
    return float(values.median()) if len(values) else float("nan")


def tenth(values: Tensor) -> float:
    """What nine tenths of the values reach, the lower one of two; NaN for none."""
    return float(values.kthvalue(1 + (len(values) - 1) // 10).values) if len(values) else float("nan")


def median_interval(values: Tensor) -> tuple[float, float]:
    """Encloses the median of what the values were drawn from with a probability of at least LEVEL.

    The median lies below the k-th smallest of n values if fewer than k of n fair coins show heads, and above the k-th
    largest likewise: k is the largest with 2 P(fewer than k heads) ≤ 1 - LEVEL. (0, infinity) for fewer than six.
    """
    count, below, place = len(values), 0, 0
    while place < count and 2 * (below + math.comb(count, place)) <= (1 - LEVEL) * 2**count:
        below += math.comb(count, place)
        place += 1
    if place == 0:
        return 0.0, math.inf
    ordered = values.sort().values
    return float(ordered[place - 1]), float(ordered[count - place])
