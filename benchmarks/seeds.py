"""Which verdicts of `brittle check all` depend on the seed.

    python -m benchmarks.seeds --seeds 0..20,909 --jobs 2 --keep FOLDER

Every seed is a process of its own, which writes FOLDER/SEED.json; a seed whose file is there is not run again. What is
printed are the statements whose verdict differs from that of the first seed; the exit code is 1 where there are any.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

Verdicts = dict[str, str]


def listed(text: str) -> list[int]:
    """Seeds from "0..3,9": 0, 1, 2, 3 and 9."""
    ends = [part.split("..") for part in text.split(",")]
    return [seed for part in ends for seed in range(int(part[0]), int(part[-1]) + 1)]


def verdicts(seed: int, folder: Path) -> Verdicts:
    """Of every statement, by its id; from the file of this seed where it is there."""
    path = folder / f"{seed}.json"
    if not path.exists():
        command = [sys.executable, "-m", "brittle", "check", "all", "--seed", str(seed), "--json", str(path)]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        if not path.exists():
            raise SystemExit(f"seed {seed} ended with exit code {ended.returncode}: {ended.stderr.strip()}")
        print(f"seed {seed} done", file=sys.stderr, flush=True)
    return {result["id"]: result["verdict"] for result in json.loads(path.read_text())["results"]}


def differing(by_seed: dict[int, Verdicts]) -> list[tuple[int, str, str, str]]:
    """Seed, statement, its verdict, and that of the first seed."""
    first = next(iter(by_seed.values()))
    return [
        (seed, identity, verdict, first.get(identity, "absent"))
        for seed, found in by_seed.items()
        for identity, verdict in found.items()
        if verdict != first.get(identity)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=listed, default=listed("0..20,909"), help="such as 0..20,909")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--keep", type=Path, required=True, metavar="FOLDER", help="where the results are kept")
    given = parser.parse_args(arguments)
    given.keep.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(given.jobs) as threads:
        found = list(threads.map(lambda seed: verdicts(seed, given.keep), given.seeds))
    by_seed = dict(zip(given.seeds, found, strict=True))
    rows = differing(by_seed)
    for seed, identity, verdict, first in rows:
        print(f"seed {seed:<6} {identity:<30} {verdict}, at seed {given.seeds[0]} {first}")
    counts = {seed: sum(verdict == "confirmed" for verdict in one.values()) for seed, one in by_seed.items()}
    print("confirmed:", ", ".join(f"{count} at seed {seed}" for seed, count in counts.items()))
    print(f"{len(rows)} verdicts of {len(by_seed)} seeds differ from those of seed {given.seeds[0]}")
    return bool(rows)


if __name__ == "__main__":
    sys.exit(main())
