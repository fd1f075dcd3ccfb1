"""The large parts of an audit, a few examples at a time: each piece holds all it needs, so that others can do it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Generator, Tensor

from brittle.attacks import Attack, AttackResult
from brittle.attacks.base import Attempt, Target
from brittle.certificates import Certificate
from brittle.networks import Network
from brittle.settings import Data

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
        found = self.method.bound(self.network, self.data, attack=Known(self.flips))
        status = [str(ending) for ending in found.status]
        bounds = {"lower": found.lower, "upper": found.upper, "flips": found.flips}
        return {**bounds, "nodes": found.nodes, "status": status}


Piece: TypeAlias = AttackedPiece | ProvedPiece


@dataclass(frozen=True, eq=False)
class Known(Attack[AttackResult]):
    """Perturbations (n, columns) that were found already: a certificate need not look for them again."""

    perturbations: Tensor

    def propose(self, target: Target) -> Attempt:
        return Attempt(self.perturbations, self.perturbations)


def alone(pieces: Sequence[Piece]) -> Iterator[Outcome]:
    """One after another, here."""
    return (piece() for piece in pieces)


def some(data: Data, rows: Tensor) -> Data:
    """These training examples, without the held-out ones: a piece takes nothing along that it does not need."""
    return data.training.take(rows)
