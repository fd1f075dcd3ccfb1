"""python -m benchmarks.fuzz [CASES] [SEED]; a case is one network with one example. Exit code 1 on any violation."""

import os
import sys
import time
from collections import Counter

from benchmarks.fuzz import confirm, run, run_deep, run_far
from benchmarks.fuzz.ordinary import METHODS, Tally

FAR = 4  # one case of so many is at far scales
DEEP = 200  # and one of so many is a deep network whose regions are enumerated


def main() -> int:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    started = time.perf_counter()
    jobs = int(os.environ.get("JOBS", os.cpu_count() or 1))
    far = run_far(cases // FAR, seed, jobs)
    deep = run_deep(cases // DEEP, seed, jobs)
    total = run(cases - cases // FAR, seed, jobs)
    print(f"{total.cases} cases, {total.right} rightly classified, {time.perf_counter() - started:.0f} s")
    _print_ordinary(total)
    shown = ", ".join(f"{count} {outcome}" for outcome, count in far.outcomes.most_common())
    print(f"far scales: {far.cases} cases, two methods each: {shown}")
    shown = ", ".join(f"{count} {outcome}" for outcome, count in deep.outcomes.most_common())
    print(f"deep networks against enumeration: {deep.cases} cases: {shown}")
    outcomes = Counter(confirm(seed) for seed in range(1000))
    print("rational arithmetic:", ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    violations = total.violations + far.violations + deep.violations
    print(f"violations: {len(violations)}", *violations[:20], sep="\n")
    return 1 if violations or outcomes["refuted"] else 0


def _print_ordinary(total: Tally) -> None:
    for name in METHODS:
        if total.asked[name]:
            share = total.zero[name] / total.asked[name]
            print(f"{name:>20}: {total.asked[name]:6d} certified, {share:.4%} of them with radius 0")
    print(f"exact closed the gap on {total.closed} of {total.asked['exact']}")
    print(f"brute force: {total.brute} compared, largest disagreement {total.worst:.1e}; ", end="")
    print(f"{total.touching} margins that reach 0 and never go below it")


if __name__ == "__main__":
    sys.exit(main())
