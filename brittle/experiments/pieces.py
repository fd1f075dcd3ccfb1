"""Work in pieces of a few examples, each kept in a file: they run anywhere, and go on where they stopped."""

import base64
import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Generator, Tensor, nn

from brittle.attacks import Attack, AttackResult
from brittle.attacks.base import Bounds as Box
from brittle.certificates import Certificate, RadiusBounds
from brittle.certificates.base import default_cap
from brittle.common.ending import Status
from brittle.common.errors import InputError, require
from brittle.common.progress import Progress, Watch, silent
from brittle.data import Data
from brittle.experiments.cell import Task
from brittle.experiments.cells import run_cells
from brittle.experiments.code import code_hash
from brittle.experiments.engines import Engine, Measured
from brittle.networks import Network
from brittle.proving import Proof, join_proofs, prove

LENGTH = 24  # hexadecimal digits


def fingerprint(value: Any) -> str:
    """Of all numbers of all tensors in it, at any depth; other objects count by how they print themselves."""
    digest = hashlib.sha256()
    for part in _parts(value):
        digest.update(part)
        digest.update(b"\0")
    return digest.hexdigest()[:LENGTH]


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, Tensor):
        yield f"{tuple(value.shape)} {value.dtype}".encode()
        yield value.detach().contiguous().numpy().tobytes()
    elif isinstance(value, nn.Module):
        yield repr(value).encode()
        yield from _parts(value.state_dict())
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
        for field in fields(value):
            yield field.name.encode()
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for name in value:
            yield from _parts((name, value[name]))
    elif isinstance(value, list | tuple):
        yield f"{len(value)} values".encode()
        for each in value:
            yield from _parts(each)
    else:
        yield repr(value).encode()


Outcome = Mapping[str, Any]  # tensors, and plain JSON values


class Piece(Protocol):
    """A frozen dataclass that holds all it needs: it travels to a worker as it is, and is named by its content."""

    def __call__(self) -> Outcome: ...


@dataclass(frozen=True, eq=False)
class PieceTask(Task):
    """A piece on its way; its file is named by its fingerprint and its code."""

    piece: Piece

    @classmethod
    def of(cls, piece: Piece) -> "PieceTask":
        kind, values = type(piece), vars(piece).values()
        parts = {type(value).__module__ for value in values if isinstance(value, Attack | Certificate)}  # perhaps yours
        code = "-".join(code_hash(module) for module in (kind.__module__, *sorted(parts)))
        return cls(kind.__name__, {"piece": fingerprint(piece)}, code, piece)

    @property
    def task(self) -> "PieceTask":
        return self


@dataclass(frozen=True)
class Executor:
    """Carries pieces out by an engine, and keeps what they found in a `folder`, or for the time of a call in none.

    Examples:
        >>> import brittle as bt
        >>> crew = bt.experiments.Executor(bt.experiments.Local(2))  # for bt.audit(..., crew=crew)
        >>> crew.engine
        Local(jobs=2)
    """

    engine: Engine | None = None
    folder: Path | None = None

    def __call__(self, pieces: Sequence[Piece], watch: Watch = silent) -> Iterator[Outcome]:
        """What every piece found, in their order, as soon as those before it are there.

        A piece that fails ends it, once all others that were begun are kept.
        """
        if self.folder is not None:
            yield from self._kept(pieces, self.folder, watch)
            return
        with tempfile.TemporaryDirectory(prefix="brittle-") as folder:
            yield from self._kept(pieces, Path(folder), watch)

    def _kept(self, pieces: Sequence[Piece], folder: Path, watch: Watch) -> Iterator[Outcome]:
        tasks = [PieceTask.of(piece) for piece in pieces]
        found: dict[str, Measured] = {}
        failed: list[Exception] = []
        place = count = 0
        for task, outcome in run_cells(tasks, folder, carry_out, self.engine):
            count += 1
            watch(Progress(count / len(tasks), f"{count} of {len(tasks)} chunks"))
            if isinstance(outcome, Exception):
                failed.append(outcome)
                continue
            found[task.key] = outcome
            while not failed and place < len(tasks) and tasks[place].key in found:
                yield {name: _read(value) for name, value in found[tasks[place].key]["measured"].items()}
                place += 1
        if failed:
            message = f"{len(failed)} of {len(tasks)} chunks failed (the others are kept), the first: {failed[0]}"
            raise InputError(message)


def carry_out(task: Task) -> Measured:
    """What a worker does."""
    assert isinstance(task, PieceTask)
    return {"measured": {name: _written(value) for name, value in task.piece().items()}, "seconds": {}}


def _written(value: Any) -> Any:
    """Numbers as they are, to the last bit, infinities among them."""
    if not isinstance(value, Tensor):
        return value
    array = value.detach().contiguous().numpy()
    return {"shape": list(array.shape), "type": array.dtype.str, "base64": base64.b64encode(array.tobytes()).decode()}


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    array = np.frombuffer(base64.b64decode(value["base64"]), dtype=value["type"])
    return torch.from_numpy(array.reshape(value["shape"]).copy())


# Certificates and attacks of many examples, a chunk at a time: the chunks run anywhere and survive an interruption.


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


def certify_in_chunks(
    network: Network,
    data: Data,
    method: Certificate,
    crew: Executor,
    *,
    box: Box | None = None,
    cap: float | None = None,
    seed: int = 0,
    flips: bool = False,
    watch: Watch = silent,
) -> RadiusBounds:
    """What `method.bound` gives, chunk by chunk, with `flips` if asked; every chunk draws from the same `seed`."""
    limit = default_cap(data) if cap is None else cap
    parts = [CertifiedChunk(network, each, method, box, limit, seed, flips) for each in chunks(data, CERTIFIED_AT_ONCE)]
    found = list(crew(parts, watch))
    endings = {str(ending): ending for ending in Status}
    return RadiusBounds(
        **{name: torch.cat([each[name] for each in found]) for name in KEPT},
        status=tuple(endings[word] for word in _joined(found, "status")),
        reason=tuple(_joined(found, "reason")),
        method=method.name,
        cap=limit,
        flips=torch.cat([each["flips"] for each in found]) if flips else data.X.new_zeros(0, data.columns).double(),
    )


def prove_in_chunks(
    network: Network,
    data: Data,
    lower: Tensor,
    flips: Tensor,
    crew: Executor,
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
    return join_proofs(network, data, lower, [len(part.data) for part in parts], found, box)


def attack_in_chunks(
    network: Network,
    data: Data,
    attack: Attack[Found],
    crew: Executor,
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
