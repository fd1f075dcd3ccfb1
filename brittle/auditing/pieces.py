"""The large parts of an audit, a few examples at a time: each piece holds all it needs, so that others can do it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Generator, Tensor

from brittle.attacks import Attack, AttackResult
from brittle.attacks.base import AttackTarget, Attempt
from brittle.certificates import Certificate
from brittle.data import Data
from brittle.networks import Network

LEVEL = 0.95  # of the intervals


def draw_rows(y: Tensor, count: int, rng: Generator) -> Tensor:
    """Rows of `count` random examples, of every label its share to within one; fewer are the first ones of more."""
    order = torch.randperm(len(y), generator=rng)
    turns = torch.empty(len(y), dtype=torch.float64)
    for label in torch.unique(y):
        own = y[order] == label
        turns[own] = (torch.arange(int(own.sum()), dtype=torch.float64) + 0.5) / int(own.sum())
    return order[turns.argsort(stable=True)[:count]]


def select_audited_data(data: Data, held_out: bool) -> Data:
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


Outcome: TypeAlias = Mapping[str, Any]  # tensors, and plain values
Crew: TypeAlias = Callable[[Sequence["Piece"]], Iterator[Outcome]]  # what every piece found, in their order


@dataclass(frozen=True, eq=False)
class AttackedPiece:
    """The smallest flips of `data` by an attack: `norms`, infinity for none, and `perturbations`."""

    network: Network
    data: Data
    attack: Attack[AttackResult]
    seed: int

    def __call__(self) -> Outcome:
        found = self.attack.run(self.network, self.data, rng=Generator().manual_seed(self.seed))
        norms = torch.where(found.success, found.norms, torch.inf)
        return {"norms": norms, "perturbations": found.perturbations}


@dataclass(frozen=True, eq=False)
class ProvedPiece:
    """Enclosures of the radii of `data`, of which perturbations `flips` are known already, and the shortest flips."""

    network: Network
    data: Data
    method: Certificate
    flips: Tensor

    def __call__(self) -> Outcome:
        found = self.method.bound(self.network, self.data, attack=KnownFlips(self.flips))
        status = [str(ending) for ending in found.status]
        bounds = {"lower": found.lower, "upper": found.upper, "flips": found.flips}
        return {**bounds, "nodes": found.nodes, "status": status}


Piece: TypeAlias = AttackedPiece | ProvedPiece


@dataclass(frozen=True, eq=False)
class KnownFlips(Attack[AttackResult]):
    """Perturbations (n, columns) that were found already: a certificate need not look for them again."""

    perturbations: Tensor

    def propose(self, target: AttackTarget) -> Attempt:
        return Attempt(self.perturbations, self.perturbations)


def run_serially(pieces: Sequence[Piece]) -> Iterator[Outcome]:
    """One after another, here."""
    return (piece() for piece in pieces)


def some(data: Data, rows: Tensor) -> Data:
    """These training examples, without the held-out ones: a piece takes nothing along that it does not need."""
    return data.training.take(rows)
