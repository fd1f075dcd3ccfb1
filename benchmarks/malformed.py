"""Damaged files of every format: each must give a network, data, or one clear line, within 10 s and 2 GB.

python -m benchmarks.malformed [FILES] [SEED]; exit code 1 on any other outcome. One file again, with its traceback:
python -m benchmarks.malformed --again NUMBER [SEED].
"""

import contextlib
import os
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter, deque
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch

from benchmarks.good_files import Format, good_files
from benchmarks.mutations import mutated
from brittle.common.errors import LONGEST_END, LONGEST_START, InputError
from brittle.networks import Network

SECONDS = 10.0
BYTES = 2 * 2**30
FINE = ("network", "data", "refused")


def outcome_of(number: int, seed: int, files: dict[str, Format], folder: Path) -> tuple[str, str]:
    """The format of one damaged file and what became of it."""
    rng = random.Random(f"{seed}:{number}")
    key = list(files)[number % len(files)]
    kind = files[key]
    place = folder / key
    place.mkdir(exist_ok=True)
    for name, content in kind.beside.items():
        (place / name).write_bytes(content)
    path = place / kind.name
    path.write_bytes(mutated(kind.name, kind.content, rng))
    return key, _opened(kind, path)


def _opened(kind: Format, path: Path) -> str:
    try:
        result = kind.open(path)
    except InputError as error:
        text = str(error)
        clear = text.isprintable() and 0 < len(text) <= LONGEST_START + LONGEST_END + 5
        return "refused" if clear and str(path.parent) in text else f"a poor line: {text[:200]!r}"
    except MemoryError:
        return "memory"
    except BaseException as error:  # whatever it is, it is what this looks for
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}"
    return "network" if isinstance(result, Network) else "data"


def _work(connection: Connection, files: dict[str, Format], seed: int) -> None:
    """Opens the files that it is sent, in a process of its own."""
    torch.set_num_threads(1)
    limit = _address_space() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(EOFError):
        while True:
            number = connection.recv()
            connection.send((number, *outcome_of(number, seed, files, Path(folder))))


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


@dataclass
class Worker:
    """A process, what it is busy with, and since when."""

    process: Any
    connection: Any
    number: int | None = None
    since: float = 0.0

    def send(self, number: int) -> None:
        self.number, self.since = number, time.monotonic()
        self.connection.send(number)

    def stop(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


@dataclass
class Tally:
    """Outcomes by format, and the numbers of the files that ended badly."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    bad: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, number: int, key: str, outcome: str) -> None:
        good = outcome in FINE
        self.outcomes.setdefault(key, Counter())[outcome if good else "bad"] += 1
        if not good:
            self.bad.append((number, key, outcome))


def run(count: int, seed: int = 0, jobs: int = 1) -> Tally:
    files, total, waiting = good_files(), Tally(), deque(range(count))
    workers = [_started(files, seed) for _ in range(jobs)]
    try:
        while waiting or any(worker.number is not None for worker in workers):
            for worker in workers:
                if worker.number is None and waiting:
                    worker.send(waiting.popleft())
            busy = [worker.connection for worker in workers if worker.number is not None]
            wait(busy, timeout=0.5)
            workers = [_collected(worker, total, files, seed) for worker in workers]
    finally:
        for worker in workers:
            worker.stop()
    return total


def _started(files: dict[str, Format], seed: int) -> Worker:
    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, files, seed), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours)


def _collected(worker: Worker, total: Tally, files: dict[str, Format], seed: int) -> Worker:
    """Take an answer where there is one; a worker that is dead or too slow is replaced."""
    number = worker.number
    if number is None:
        return worker
    key = list(files)[number % len(files)]
    try:
        if worker.connection.poll():
            total.add(*worker.connection.recv())
            worker.number = None
            return worker
        if time.monotonic() - worker.since < SECONDS:
            return worker
        total.add(number, key, f"more than {SECONDS:g} s")
    except (EOFError, OSError):
        total.add(number, key, "the process died")
    worker.stop()
    return _started(files, seed)


def show(total: Tally) -> None:
    print(f"{'format':24}" + "".join(f"{name:>10}" for name in (*FINE, "bad")))
    for key, outcomes in total.outcomes.items():
        print(f"{key:24}" + "".join(f"{outcomes[name]:10d}" for name in (*FINE, "bad")))
    print(
        f"bad outcomes: {len(total.bad)}", *(f"{number} ({key}): {what}" for number, key, what in total.bad), sep="\n"
    )


def again(number: int, seed: int) -> None:
    """One file in this process, with whatever it raises."""
    files = good_files()
    kind = files[list(files)[number % len(files)]]
    with tempfile.TemporaryDirectory() as folder:
        print(*outcome_of(number, seed, files, Path(folder)))
        path = Path(folder) / list(files)[number % len(files)] / kind.name
        print(kind.open(path))


def main() -> int:
    if sys.argv[1:2] == ["--again"]:
        again(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
        return 0
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    started = time.perf_counter()
    total = run(count, seed, int(os.environ.get("JOBS", os.cpu_count() or 1)))
    show(total)
    print(f"{count} files, {time.perf_counter() - started:.0f} s")
    return 1 if total.bad else 0


if __name__ == "__main__":
    sys.exit(main())
