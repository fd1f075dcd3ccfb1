"""Work in pieces of a few examples, each kept in a file: they run anywhere, and go on where they stopped."""

import base64
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from brittle.attacks import Attack
from brittle.certificates import Certificate
from brittle.common.errors import InputError
from brittle.common.fingerprint import fingerprint
from brittle.common.progress import Progress, Watch, silent
from brittle.experiments.cell import Task
from brittle.experiments.cells import finished_cells
from brittle.experiments.code import code_hash
from brittle.experiments.sweep import Engine, Measured

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
class Crew:
    """Carries pieces out by an engine, and keeps what they found in a `folder`, or for the time of a call in none.

    Examples:
        >>> import brittle as bt
        >>> crew = bt.experiments.Crew(bt.experiments.Local(2))  # for bt.audit(..., crew=crew)
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
        for task, outcome in finished_cells(tasks, folder, carry_out, self.engine):
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
