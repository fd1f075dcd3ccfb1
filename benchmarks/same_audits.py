"""The same audit four times: with one thread, with two, beside busy processes, and by two processes.

python -m benchmarks.same_audits [--budget S] [--only WORD]; trains networks on scikit-learn's digits with fixed seeds,
and runs `brittle audit` with all remedies on each in processes of its own. What they write must be equal but for
seconds, and for the command that it names: exit code 1 where it is not.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.networks import Task, architectures, tasks, trained
from brittle.data import save_data

SUBJECTS = {"two layers": "3 and 8", "three layers": "10 digits", "convolutions": "10 digits", "GELU": "3 and 8"}
CLOCKS = ("seconds", "mean_seconds", "command")


@dataclass(frozen=True)
class Way:
    """To run the command: with so many `threads`, beside so many `busy` processes, with these `options`."""

    name: str
    threads: int = 1
    busy: int = 0
    options: tuple[str, ...] = ()


WAYS = (
    Way("one thread"),
    Way("two threads", threads=2),
    Way("beside two busy processes", busy=2),
    Way("--jobs 2", options=("--jobs", "2")),
)


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def audited(way: Way, files: list[str], out: Path) -> tuple[Any, float]:
    """What the command writes without its seconds, and those of the clock."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(way.threads), "MKL_NUM_THREADS": str(way.threads)}
    begun = time.perf_counter()
    with busy_processes(way.busy):
        command = [sys.executable, "-m", "brittle", "audit", *files, *way.options, "--json", str(out)]
        subprocess.run(command, env=environment, check=True, capture_output=True)
    return plain(json.loads(out.read_text())), time.perf_counter() - begun


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if name not in CLOCKS}
    return [plain(each) for each in value] if isinstance(value, list) else value


def differences(first: Any, second: Any, place: str = "") -> list[str]:
    """Where two of them differ."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        return [each for name in first for each in differences(first[name], second[name], f"{place}.{name}")]
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        pairs = enumerate(zip(first, second, strict=True))
        return [each for number, (a, b) in pairs for each in differences(a, b, f"{place}[{number}]")]
    same = json.dumps(first) == json.dumps(second)  # NaN is itself here
    return [] if same else [f"{place}: {str(first)[:60]} and {str(second)[:60]}"]


def compared(name: str, task: Task, budget: float, folder: Path) -> bool:
    """One network in every way; whether all are the same."""
    module, data = folder / "module.pt", folder / "data.npz"
    network = trained(architectures()[name], task)
    shape = (64,) if name in ("two layers", "three layers", "GELU") else (1, 8, 8)
    torch.jit.trace(network, torch.zeros(2, *shape)).save(str(module))  # type: ignore[no-untyped-call]
    save_data(task.data, data)
    files = [str(module), "--data", str(data), "--shape", ",".join(map(str, shape)), "--budget", str(budget)]
    found, words, same = list[Any](), list[str](), True
    for way in WAYS:
        audit, seconds = audited(way, files, folder / "audit.json")
        found.append(audit)
        words.append(f"{way.name} {seconds:.0f} s")
        for each in differences(found[0], audit)[:5]:
            print(f"  {way.name}: {each}", flush=True)
            same = False
    verdict = "the same" if same else "not the same"
    print(f"{name}, {task.name}: {', '.join(words)}: {verdict}; reproducible: {found[0]['reproducible']}", flush=True)
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=10.0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    known = {task.name: task for task in tasks()}
    with tempfile.TemporaryDirectory() as folder:
        chosen = [(name, known[task]) for name, task in SUBJECTS.items() if options.only in name]
        same = [compared(name, task, options.budget, Path(folder)) for name, task in chosen]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
