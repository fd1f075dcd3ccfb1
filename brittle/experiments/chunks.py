"""Certificates of many examples in chunks that are kept in files: they run anywhere, and go on where they stopped."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor

from brittle.attacks.base import Bounds as Box
from brittle.certificates import Bounds, Certificate
from brittle.certificates.base import default_cap
from brittle.common.ending import Ending
from brittle.common.errors import InputError
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import jsonable
from brittle.experiments.cell import Task
from brittle.experiments.cells import finished_cells
from brittle.experiments.code import code_hash
from brittle.experiments.sweep import Engine, Measured
from brittle.networks import Network
from brittle.settings import Data

SIZE = 16  # examples of a chunk: it does not depend on the engine, so neither do the bounds


@dataclass(frozen=True)
class Chunk:
    """Examples `first` to `last` - 1 of what `subject` names by its fingerprint."""

    subject: str
    first: int
    last: int
    code: str

    @property
    def task(self) -> Task:
        return Task("certify", {"subject": self.subject, "first": self.first, "last": self.last}, self.code)

    @property
    def key(self) -> str:
        return self.task.key


@dataclass(frozen=True, eq=False)
class Certifying:
    """A certificate of all examples of the data, as `method.bound` would give it chunk by chunk.

    `box` restricts flips, `cap` is the radius beyond which nobody asks, and every chunk draws from the same `seed`.
    """

    network: Network
    data: Data
    method: Certificate
    box: Box | None = None
    cap: float | None = None
    seed: int = 0

    @cached_property
    def chunks(self) -> list[Chunk]:
        subject, code = self._fingerprint(), code_hash(type(self.method).__module__)
        starts = range(0, len(self.data), SIZE)
        return [Chunk(subject, first, min(first + SIZE, len(self.data)), code) for first in starts]

    def _fingerprint(self) -> str:
        """Of everything that the bounds depend on but the code."""
        digest = hashlib.sha256(repr((self.method, self.box, self._cap, self.seed)).encode())
        for array in (self.data.X, self.data.y, *self.network.arrays.values()):
            digest.update(f"{tuple(array.shape)} {array.dtype}".encode())
            digest.update(array.detach().contiguous().numpy().tobytes())
        return digest.hexdigest()[:24]

    @property
    def _cap(self) -> float:
        return default_cap(self.data) if self.cap is None else self.cap

    def __call__(self, task: Task) -> Measured:
        """What a worker does with one chunk."""
        rows = torch.arange(task.params["first"], task.params["last"])
        rng = Generator().manual_seed(self.seed)
        found = self.method.bound(self.network, self.data.take(rows), bounds=self.box, cap=self._cap, rng=rng)
        kept = ("lower", "upper", "exact", "status", "reason", "nodes")
        return {
            "measured": jsonable({name: getattr(found, name) for name in kept}),
            "seconds": {"examples": found.seconds.tolist()},
        }

    def run(self, folder: Path, engine: Engine | None = None, watch: Watch = silent) -> Bounds:
        """Every chunk that is not in the folder yet, and the bounds of all examples; flips are not kept."""
        outcomes: dict[str, Measured | Exception] = {}
        for chunk, outcome in finished_cells(self.chunks, folder, self, engine):
            outcomes[chunk.key] = outcome
            watch(Progress(len(outcomes) / len(self.chunks), f"{len(outcomes)} of {len(self.chunks)} chunks"))
        failed = [outcome for outcome in outcomes.values() if isinstance(outcome, Exception)]
        if failed:
            message = f"{len(failed)} of {len(self.chunks)} chunks failed (the others are kept), the first: {failed[0]}"
            raise InputError(message)
        return self._joined([each for chunk in self.chunks if isinstance(each := outcomes[chunk.key], dict)])

    def _joined(self, parts: list[Measured]) -> Bounds:
        def joined(name: str) -> list[Any]:
            return [value for part in parts for value in part["measured"][name]]

        def numbers(values: list[Any]) -> Tensor:
            return torch.tensor([torch.inf if value is None else value for value in values], dtype=torch.float64)

        endings = {str(ending): ending for ending in Ending}
        return Bounds(
            lower=numbers(joined("lower")),
            upper=numbers(joined("upper")),
            exact=torch.tensor(joined("exact"), dtype=torch.bool),
            seconds=numbers([value for part in parts for value in part["seconds"]["examples"]]),
            status=tuple(endings[word] for word in joined("status")),
            method=self.method.name,
            cap=self._cap,
            flips=torch.zeros(0, self.data.columns, dtype=torch.float64),
            reason=tuple(joined("reason")),
            nodes=torch.tensor(joined("nodes"), dtype=torch.int64),
        )
