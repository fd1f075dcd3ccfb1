"""Many cases in turn or in several processes, a chunk at a time: what a folder keeps is not done again."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import torch

from benchmarks.fuzz import checked, deep, far, layered, ordinary, proofs
from brittle.common.files import write_json
from brittle.common.threads import one_thread
from brittle.experiments.code import code_hash

SEEDS = 20  # in a chunk


class Tally(Protocol):
    """What cases add up to."""

    violations: list[str]

    def add(self, other: Any) -> None: ...


@dataclass(frozen=True)
class Part:
    """A kind of cases: `examine` looks at those of a seed, `cases` of them, one in `share` of all cases asked for.

    What they judge is the code of the module `judged`.
    """

    name: str
    examine: Callable[[int], Any]
    tally: type[Any]
    cases: int = 1
    share: float = 0.0
    judged: str = "brittle.certificates.exact"


PARTS = (
    Part("ordinary", ordinary.examine, ordinary.Tally, ordinary.POINTS, 0.7),
    Part("far", far.examine, far.FarTally, far.POINTS * far.NETWORKS, 0.235),
    Part("deep", deep.examine, deep.DeepTally, deep.POINTS, 0.005),
    Part("layered", layered.examine, layered.LayeredTally, layered.POINTS, 0.05),
    Part("rational", proofs.examine, proofs.ProofTally, 1, 0.01),
    Part("checked", checked.examine, proofs.ProofTally, checked.POINTS, 0.001),
)


@dataclass(frozen=True)
class Chunk:
    """Some seeds of one part; its file is named by them and by the code that they judge."""

    part: Part
    first: int
    count: int

    def __call__(self) -> Any:
        total = self.part.tally()
        with one_thread():
            for seed in range(self.first, self.first + self.count):
                total.add(self.part.examine(seed))
        return total

    @property
    def file(self) -> str:
        return f"{self.part.name}-{self.first}-{self.count}-{code_hash(self.part.judged)}.json"


def run(cases: int, seed: int = 0, jobs: int = 1, keep: Path | None = None, only: str = "") -> dict[str, Any]:
    """The tallies of all parts, of at least so many cases together."""
    totals = {part.name: part.tally() for part in PARTS if only in part.name}
    for chunk, tally in done(_chunks(cases, seed, only), jobs, keep):
        totals[chunk.part.name].add(tally)
    return totals


def chunks_of(part: Part, wanted: int, seed: int) -> list[Chunk]:
    """The seeds from `seed` times ten million on, a chunk at a time."""
    first = seed * 10**7
    return [Chunk(part, first + start, min(SEEDS, wanted - start)) for start in range(0, wanted, SEEDS)]


def _chunks(cases: int, seed: int, only: str) -> list[Chunk]:
    found: list[Chunk] = []
    for part in PARTS:
        wanted = max(1, -(-int(part.share * cases) // part.cases)) if only in part.name else 0
        found += chunks_of(part, wanted, seed)
    return found


def done(chunks: list[Chunk], jobs: int, keep: Path | None) -> Iterator[tuple[Chunk, Any]]:
    """The chunks and their tallies, those that the folder holds first."""
    known = {chunk: keep / chunk.file for chunk in chunks if keep is not None and (keep / chunk.file).exists()}
    for chunk, path in known.items():
        yield chunk, _read(chunk.part.tally, json.loads(path.read_text()))
    for chunk, tally in _worked([chunk for chunk in chunks if chunk not in known], jobs):
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            write_json(keep / chunk.file, vars(tally))
        yield chunk, tally


def _worked(chunks: list[Chunk], jobs: int) -> Iterator[tuple[Chunk, Any]]:
    if jobs == 1:
        yield from ((chunk, chunk()) for chunk in chunks)
        return
    with ProcessPoolExecutor(jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        waiting = {pool.submit(chunk): chunk for chunk in chunks}
        for each in as_completed(waiting):
            yield waiting[each], each.result()


def _read(kind: type[Any], content: dict[str, Any]) -> Any:
    """A tally from its JSON."""
    empty = kind()
    counted = {each.name for each in fields(kind) if isinstance(getattr(empty, each.name), Counter)}
    return kind(**{name: Counter(value) if name in counted else value for name, value in content.items()})
