"""Certificates and attacks of many examples, a chunk at a time: the chunks run anywhere and survive an interruption."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import torch
from torch import Generator, Tensor

from brittle.attacks import Attack, AttackResult
from brittle.attacks.base import Bounds as Box
from brittle.certificates import Bounds, Certificate
from brittle.certificates.base import default_cap
from brittle.common.ending import Ending
from brittle.common.errors import require
from brittle.common.progress import Watch, silent
from brittle.experiments.pieces import Crew, Outcome
from brittle.networks import Network
from brittle.proving import Proof, joined, prove
from brittle.settings import Data

CERTIFIED_AT_ONCE = 16  # sizes do not depend on the engine, so neither does what is found
ATTACKED_AT_ONCE = 256  # more: attacks start from other examples of the chunk, too
KEPT = ("lower", "upper", "exact", "seconds", "nodes")  # of certificates; flips only where they are needed

Found = TypeVar("Found", bound=AttackResult)


@dataclass(frozen=True, eq=False)
class CertifiedChunk:
    """These `data` with all that their bounds depend on."""

    network: Network
    data: Data
    method: Certificate
    box: Box | None
    cap: float
    seed: int
    flips: bool = False

    def __call__(self) -> Outcome:
        rng = Generator().manual_seed(self.seed)
        found = self.method.bound(self.network, self.data, bounds=self.box, cap=self.cap, rng=rng)
        words = {"status": [str(ending) for ending in found.status], "reason": list(found.reason)}
        kept = (*KEPT, "flips") if self.flips else KEPT
        return {**{name: getattr(found, name) for name in kept}, **words}


@dataclass(frozen=True, eq=False)
class ProvedChunk:
    """These `data` with the radii that are to be proved, and with where to look."""

    network: Network
    data: Data
    lower: Tensor
    flips: Tensor
    box: Box | None
    seconds: float

    def __call__(self) -> Outcome:
        found = prove(self.network, self.data, self.lower, self.flips, box=self.box, seconds=self.seconds)
        return {name: torch.from_numpy(values) for name, values in found.claims().items()}


@dataclass(frozen=True, eq=False)
class AttackedChunk:
    """These `data` with all that the attack depends on."""

    network: Network
    data: Data
    attack: Attack[AttackResult]
    box: Box | None
    seed: int
    vectors: bool = True

    def __call__(self) -> Outcome:
        rng = Generator().manual_seed(self.seed)
        found = self.attack.run(self.network, self.data, bounds=self.box, rng=rng, vectors=self.vectors)
        return {field.name: getattr(found, field.name) for field in fields(found)}


def certified(
    network: Network,
    data: Data,
    method: Certificate,
    crew: Crew,
    *,
    box: Box | None = None,
    cap: float | None = None,
    seed: int = 0,
    flips: bool = False,
    watch: Watch = silent,
) -> Bounds:
    """What `method.bound` gives, chunk by chunk, with `flips` if asked; every chunk draws from the same `seed`."""
    limit = default_cap(data) if cap is None else cap
    parts = [CertifiedChunk(network, each, method, box, limit, seed, flips) for each in chunks(data, CERTIFIED_AT_ONCE)]
    found = list(crew(parts, watch))
    endings = {str(ending): ending for ending in Ending}
    return Bounds(
        **{name: torch.cat([each[name] for each in found]) for name in KEPT},
        status=tuple(endings[word] for word in _joined(found, "status")),
        reason=tuple(_joined(found, "reason")),
        method=method.name,
        cap=limit,
        flips=torch.cat([each["flips"] for each in found]) if flips else data.X.new_zeros(0, data.columns).double(),
    )


def proved(
    network: Network,
    data: Data,
    lower: Tensor,
    flips: Tensor,
    crew: Crew,
    *,
    box: Box | None = None,
    seconds: float = 60.0,
    watch: Watch = silent,
) -> Proof:
    """What `prove` gives, chunk by chunk."""
    radii, directions = torch.split(lower, CERTIFIED_AT_ONCE), torch.split(flips, CERTIFIED_AT_ONCE)
    parts = [
        ProvedChunk(network, *each, box, seconds)
        for each in zip(chunks(data, CERTIFIED_AT_ONCE), radii, directions, strict=True)
    ]
    found = [{name: values.numpy() for name, values in each.items()} for each in crew(parts, watch)]
    return joined(network, data, lower, [len(part.data) for part in parts], found, box)


def attacked(
    network: Network,
    data: Data,
    attack: Attack[Found],
    crew: Crew,
    *,
    box: Box | None = None,
    seed: int = 0,
    watch: Watch = silent,
    vectors: bool = True,
) -> Found:
    """What `attack.run` gives, chunk by chunk; every chunk draws from the same `seed`."""
    require(not attack.joint, f"the attack {attack.name} looks at all examples together: it cannot be cut into chunks")
    parts = [AttackedChunk(network, each, attack, box, seed, vectors) for each in chunks(data, ATTACKED_AT_ONCE)]
    found = list(crew(parts, watch))
    joined = {field.name: torch.cat([each[field.name] for each in found]) for field in fields(attack.result)}
    return attack.result(**joined)  # type: ignore[return-value]


def chunks(data: Data, size: int) -> Iterator[Data]:
    """The training examples, so many at a time and without the others: every chunk travels by itself."""
    for rows in torch.split(torch.arange(len(data)), size):
        yield data.training.take(rows)


def _joined(found: Sequence[Outcome], name: str) -> list[Any]:
    return [value for each in found for value in each[name]]
