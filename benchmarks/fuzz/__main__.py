"""No attack, no enumeration and no rational arithmetic may land below a certificate: random networks by the thousand.

python -m benchmarks.fuzz [CASES] [SEED] [--preset two-minutes|weekly|million] [--keep DIR] [--only PART] [--json FILE]
where a case is one network with one example. Chunks that are kept in the folder are not done again, unless the code of
certificates has changed: a larger run goes on where a smaller one ended. JOBS processes. Exit code 1 on any violation.
"""

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.fuzz.ordinary import METHODS, Tally
from benchmarks.fuzz.run import run
from brittle.common.files import write_json

PRESETS = {"two-minutes": 4_000, "weekly": 100_000, "million": 1_000_000}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", type=int, nargs="?")
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--preset", choices=PRESETS, default="weekly")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cases = options.cases or PRESETS[options.preset]
    started, jobs = time.perf_counter(), int(os.environ.get("JOBS", os.cpu_count() or 1))
    totals = run(cases, options.seed, jobs, options.keep, options.only)
    for name, tally in totals.items():
        SHOWN[name](tally)
    violations = [each for tally in totals.values() for each in tally.violations]
    print(f"{cases} cases asked for, {time.perf_counter() - started:.0f} s; violations: {len(violations)}")
    print(*violations[:20], sep="\n", end="\n" if violations else "")
    if options.json is not None:
        write_json(options.json, {name: vars(tally) for name, tally in totals.items()})
    return 1 if violations else 0


def _show_ordinary(total: Tally) -> None:
    print(f"two layers: {total.cases} cases, {total.right} rightly classified")
    for name in METHODS:
        if total.asked[name]:
            share = total.zero[name] / total.asked[name]
            print(f"{name:>20}: {total.asked[name]:6d} certified, {share:.4%} of them with radius 0")
    print(f"exact closed the gap on {total.closed} of {total.asked['exact']}")
    print(f"brute force: {total.brute} compared, largest disagreement {total.worst:.1e}; ", end="")
    print(f"{total.touching} margins that reach 0 and never go below it")


def _show_layered(total: Any) -> None:
    print(f"any depth: {sum(total.cases.values())} cases: {_counted(total.cases)}")
    print(f"  {_counted(total.outcomes)}")
    if total.closed:
        print(
            f"  {total.closed} closed; the radius less what is proved, on average {total.lost / total.closed:.1e} of it"
        )


def _show_counted(words: str) -> Any:
    return lambda total: print(f"{words}: {total.cases} cases: {_counted(total.outcomes)}")


def _counted(outcomes: Counter[str]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))


SHOWN = {
    "ordinary": _show_ordinary,
    "far": _show_counted("two layers at far scales, two methods each"),
    "deep": _show_counted("degenerate deep networks against enumeration"),
    "layered": _show_layered,
    "rational": _show_counted("rational arithmetic"),
    "checked": _show_counted("proofs in files, judged by proofcheck"),
}

if __name__ == "__main__":
    sys.exit(main())
