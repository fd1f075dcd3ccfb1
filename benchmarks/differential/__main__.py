"""Generated models are read as the functions that they compute, or refused in one line: thousands of them, compared.

python -m benchmarks.differential [--modules N] [--programs N] [--onnx N] [--pipelines N] [--seed S] [--keep FOLDER]
                                  [--full | --short] [--json FILE] [--case KIND NUMBER]
Chunks that are kept in the folder are not done again, unless the code of the networks has changed. JOBS processes.
--case looks at one generated model alone and prints its source. Exit code 1 where one is read as another function.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.differential import modules, onnx_graphs, pipelines, programs
from benchmarks.differential.tally import ReadingTally
from benchmarks.fuzz.run import Part, chunks_of, done
from brittle.common.files import write_json

JUDGED = "brittle.networks.store"
DESCRIBED: dict[str, Callable[[int], str]] = {
    "modules": modules.described,
    "programs": programs.described,
    "onnx": onnx_graphs.described,
    "pipelines": pipelines.described,
}
PARTS = {
    "modules": Part("modules", modules.examine, ReadingTally, judged=JUDGED),
    "programs": Part("programs", programs.examine, ReadingTally, judged=JUDGED),
    "onnx": Part("onnx", onnx_graphs.examine, ReadingTally, judged=JUDGED),
    "pipelines": Part("pipelines", pipelines.examine, ReadingTally, judged=JUDGED),
}
FULL = {"modules": 5_000, "programs": 1_000, "onnx": 7_000, "pipelines": 500}
SHORT = {"modules": 300, "programs": 80, "onnx": 300, "pipelines": 60}
SHOWN = 12  # reasons of each kind


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in PARTS:
        parser.add_argument(f"--{name}", type=int, metavar="N", default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--case", nargs=2, metavar=("KIND", "NUMBER"))
    options = parser.parse_args()
    if options.case is not None:
        return _alone(options.case[0].removesuffix(":"), int(options.case[1]))
    preset = FULL if options.full else SHORT if options.short else {}
    totals = run({name: getattr(options, name) or preset.get(name, 0) for name in PARTS}, options.seed, options.keep)
    for name, total in totals.items():
        show(name, total)
    violations = [each for total in totals.values() for each in total.violations]
    print(f"{sum(total.cases for total in totals.values())} models; wrong: {len(violations)}")
    print(*violations, sep="\n", end="\n" if violations else "")
    if options.json is not None:
        write_json(options.json, {name: vars(total) for name, total in totals.items()})
    return 1 if violations else 0


def run(counts: dict[str, int], seed: int = 0, keep: Path | None = None, jobs: int = 0) -> dict[str, ReadingTally]:
    """The tallies of so many models of each kind."""
    totals = {name: ReadingTally() for name, count in counts.items() if count}
    jobs = jobs or int(os.environ.get("JOBS", os.cpu_count() or 1))
    started, models = time.perf_counter(), 0
    for name in totals:
        for _, tally in done(chunks_of(PARTS[name], counts[name], seed), jobs, keep):
            totals[name].add(tally)
            models += tally.cases
            words = f"{name}: {totals[name].cases} of {counts[name]}, {len(totals[name].violations)} wrong"
            print(f"\r{words}, {models / (time.perf_counter() - started):.1f} a second ", end="", file=sys.stderr)
        print(file=sys.stderr)
    return totals


def show(name: str, total: ReadingTally) -> None:
    """One kind of models as a table."""
    counts = {"read and compared": total.compared, "refused": total.refused.total()}
    counts |= {"black boxes": total.black_boxes.total(), "reference fails": total.skipped.total()}
    print(f"{name}: {total.cases} models, " + ", ".join(f"{count} {word}" for word, count in counts.items()), end="")
    print(f", {len(total.violations)} wrong")
    for word, reasons in (("refused", total.refused), ("black box", total.black_boxes), ("skipped", total.skipped)):
        _show_reasons(word, reasons)


def _show_reasons(word: str, reasons: Counter[str]) -> None:
    for reason, count in reasons.most_common(SHOWN):
        print(f"  {word:>9} {count:5d}  {reason}")
    others = len(reasons) - SHOWN
    if others > 0:
        print(f"  {word:>9} {sum(sorted(reasons.values())[:others]):5d}  for {others} other reasons")


def _alone(kind: str, case: int) -> int:
    name = next((each for each in PARTS if each.startswith(kind)), kind)
    if name not in PARTS:
        print(f"the kind is '{kind}'; it must be one of {', '.join(PARTS)}", file=sys.stderr)
        return 2
    print(DESCRIBED[name](case))
    total: ReadingTally = PARTS[name].examine(case)
    show(name, total)
    print(*total.violations, sep="\n", end="\n" if total.violations else "")
    return 1 if total.violations else 0


if __name__ == "__main__":
    sys.exit(main())
