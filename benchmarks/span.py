"""Sampling in the span: what a larger dimension costs, as ratios measured in one run.

    python -m benchmarks.span --json -

Every size is timed in turn, round after round, by the processor time of one thread, and the median counts.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from brittle.data import Clusters, Setting, Sphere, Subspace

LARGEST = 10**9


def settings_of(dim: int, examples: int) -> dict[str, Setting]:
    return {
        "sphere": Sphere(dim),
        "clusters": Clusters(dim, clusters=5),
        "clusters, random means": Clusters(dim, clusters=5, random_means=True),
        "subspace": Subspace(dim, codimension=(dim - examples) // 5),
    }


def timed(setting: Setting, examples: int, in_span: bool) -> float:
    rng = torch.Generator().manual_seed(0)
    start = time.process_time()
    setting.sample(examples, rng, in_span=in_span)
    return time.process_time() - start


def measure(examples: int, rounds: int) -> list[dict[str, Any]]:
    """One row per setting and dimension, with its ratio to d = n."""
    base = examples
    runs: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for dim in (base, 1000 * examples, LARGEST):
            for name, setting in settings_of(dim, examples).items():
                runs.setdefault((name, f"in the span, d = {dim}"), []).append(timed(setting, examples, True))
        for dim in (base, 10 * base):
            setting = Sphere(dim)
            runs.setdefault(("sphere", f"explicit, d = {dim}"), []).append(timed(setting, examples, False))
    seconds = {key: statistics.median(times) for key, times in runs.items()}
    return [
        {"setting": name, "sampling": how, "ratio": value / seconds[name, f"in the span, d = {base}"], "seconds": value}
        for (name, how), value in seconds.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", help="write the result as JSON; - for standard output")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = measure(arguments.examples, arguments.rounds)
    worst = max(row["ratio"] for row in rows if f"d = {LARGEST}" in row["sampling"])
    result = {"examples": arguments.examples, "rounds": arguments.rounds, "worst_ratio": worst, "rows": rows}
    text = json.dumps(result, indent=2)
    if arguments.json == "-":
        print(text)
        return
    if arguments.json:
        Path(arguments.json).write_text(text + "\n")
    for row in rows:
        print(f"{row['setting']:24} {row['sampling']:32} {row['ratio']:7.2f}  {1000 * row['seconds']:8.2f} ms")
    print(f"largest ratio of d = 10^9 to d = n: {worst:.2f}")


if __name__ == "__main__":
    main()
