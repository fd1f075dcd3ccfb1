"""Mutants: does a test notice when one constant, comparison, sign or refusal of the code is wrong?

    python -m benchmarks.mutants                       a sample of every group, in a table
    python -m benchmarks.mutants --only steps.py --all --keep /tmp/mutants

A mutant changes one place in what states, measures or judges: formulas and measurements of theorems, certificates,
proof checkers, the verification of attacks, the figures of an audit, refusals of untrusted files. The tests of its
group run on it, those first that execute the changed line, in a process of its own (`mutant_runs`), up to the first
that fails. Which tests execute which line is recorded once, without a mutant. What no test notices survives:
`mutant_targets` lists the survivors that are known, and the mutants that change nothing, with the reason of each.
"""

import argparse
import contextlib
import functools
import hashlib
import json
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import mutant_runs
from benchmarks.mutant_changes import Mutant, mutants, mutated
from benchmarks.mutant_runs import HOME, Job, module_of
from benchmarks.mutant_targets import EQUIVALENT, GROUPS, KNOWN

MAP_SECONDS = 400.0  # processor time for one test file, unchanged and recorded
TESTS_SECONDS = 8.0  # of tests on one mutant: what would take longer is not run


@dataclass(frozen=True)
class Result:
    """What noticed a mutant: a test, "import", "crash" or "time"; "" where it survives."""

    mutant: Mutant
    by: str
    seconds: float


class Kept:
    """Results in a folder, one JSON line each; what was noticed stays so while the file that is changed is the same."""

    def __init__(self, folder: Path | None) -> None:
        self.folder, self.known = folder, dict[str, dict[str, Any]]()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            for path in folder.glob("*.jsonl"):
                lines = map(json.loads, path.read_text().splitlines())
                self.known |= {line["key"]: line for line in lines}

    def get(self, key: str) -> dict[str, Any] | None:
        return self.known.get(key)

    def put(self, key: str, value: dict[str, Any]) -> None:
        self.known[key] = {"key": key, **value}
        if self.folder is not None:
            with (self.folder / "results.jsonl").open("a") as lines:
                lines.write(json.dumps(self.known[key], ensure_ascii=False) + "\n")


@functools.cache
def digest(*files: str) -> str:
    """Of the contents of files."""
    return hashlib.sha256(b"\0".join((HOME / file).read_bytes() for file in files)).hexdigest()[:16]


def everything() -> str:
    """Of all code and tests."""
    folders = ("brittle", "proofcheck", "margincheck", "tests")
    return digest(*sorted(str(path.relative_to(HOME)) for each in folders for path in (HOME / each).rglob("*.py")))


def all_mutants(only: str) -> dict[Mutant, str]:
    """Every one that is not known to change nothing, with its group."""
    found: dict[Mutant, str] = {}
    for name, group in GROUPS.items():
        for file in group.paths:
            for mutant in mutants(file, (HOME / file).read_text(), group.left_out):
                if (only in mutant.name or only == name) and not reason(mutant, EQUIVALENT):
                    found.setdefault(mutant, name)
    return found


def reason(mutant: Mutant, reasons: dict[str, str]) -> str:
    """The first that fits, "" if there is none."""
    return next((why for pattern, why in reasons.items() if re.search(pattern, mutant.key)), "")


class Map:
    """Which tests run which lines, and how long each takes."""

    def __init__(self, kept: Kept, groups: Iterable[str]) -> None:
        self.tests = dict[str, float]()
        self.lines = dict[str, dict[int, set[str]]]()
        chosen = [GROUPS[name] for name in groups]
        files = sorted({path for group in chosen for path in group.test_paths})
        covered = tuple(sorted({path for group in GROUPS.values() for path in group.paths}))
        key = {file: f"map {digest(file)} {file}" for file in files}
        jobs = [
            Job(file, (file,), seconds=MAP_SECONDS, covered=covered)
            for file in files
            if not self._valid(kept.get(key[file]), covered)
        ]
        for number, (job, ran) in enumerate(mutant_runs.run(jobs), 1):
            if ran.by in ("import", "crash", "time"):
                say(f"left out, as it ends by {ran.by} without a mutant: {job.name}")
                continue
            if ran.by:
                say(f"left out, as it fails without a mutant: {ran.by}")
            digests = {file: digest(file) for file in ran.lines}
            kept.put(key[job.name], {"tests": ran.tests, "lines": ran.lines, "digests": digests, "covered": covered})
            say(f"{number}/{len(jobs)} recorded {job.name} ({ran.seconds:.0f} s)")
        for file in files:
            if (known := kept.get(key[file])) is not None:
                self._add(known)

    @staticmethod
    def _valid(known: dict[str, Any] | None, covered: tuple[str, ...]) -> bool:
        """Whether what the tests of a file run is known, and still as it was."""
        if known is None or not set(covered) <= set(known["covered"]):
            return False
        return all((HOME / file).exists() and digest(file) == was for file, was in known["digests"].items())

    def _add(self, known: dict[str, Any]) -> None:
        self.tests |= known["tests"]
        for file, lines in known["lines"].items():
            mine = self.lines.setdefault(file, {})
            for line, tests in lines.items():
                mine.setdefault(int(line), set()).update(tests)

    def of(self, mutant: Mutant) -> list[str]:
        """The tests for a mutant: those that run its lines, then those whose file shares them, the fastest first."""
        lines = self.lines.get(mutant.file, {})
        found = {test for line in range(mutant.line, mutant.last + 1) for test in lines.get(line, ())}
        if mutant.constant:  # its line runs once, at the import
            found = {test for tests in lines.values() for test in tests}
        direct = found & self.tests.keys()
        files = {test.split("::")[0] for test in found}
        near = {test for test in self.tests if test.split("::")[0] in files} - direct
        chosen, total = list[str](), 0.0
        for test in [*sorted(direct, key=self._seconds), *sorted(near, key=self._seconds)]:
            total += self._seconds(test)
            if chosen and total > TESTS_SECONDS:
                break
            chosen.append(test)
        return chosen

    def _seconds(self, test: str) -> float:
        return self.tests[test]

    def limit(self, tests: Iterable[str]) -> float:
        """The processor time that a child may take with these tests."""
        return 15 + 3 * sum(map(self._seconds, tests))


def results(chosen: dict[Mutant, str], kept: Kept, seconds: float | None = None) -> Iterator[Result]:
    """Of every mutant, as they come; those that are known first."""
    unknown = dict[str, Mutant]()
    for mutant in chosen:
        line = kept.get(f"{digest(mutant.file)} {mutant.place} {mutant.which}")
        if line is not None and (line["by"] or line["all"] == everything()):
            yield Result(mutant, line["by"], line["seconds"])
        else:
            unknown[mutant.name + str(mutant.place)] = mutant
    known = Map(kept, sorted({chosen[mutant] for mutant in unknown.values()}))
    jobs = []
    for name, mutant in unknown.items():
        tests = known.of(mutant)
        if not tests:
            yield Result(mutant, "", 0.0)
            continue
        files = tuple(sorted({test.split("::")[0] for test in tests}))
        source = mutated(mutant, (HOME / mutant.file).read_text())
        limit = seconds or known.limit(tests)
        jobs.append(Job(name, files, tuple(tests), module_of(mutant.file), source, limit))
    for job, ran in mutant_runs.run(jobs):
        mutant = unknown[job.name]
        kept.put(
            f"{digest(mutant.file)} {mutant.place} {mutant.which}",
            {"all": everything(), "by": ran.by, "seconds": ran.seconds, "name": mutant.name},
        )
        yield Result(mutant, ran.by, ran.seconds)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def table(found: list[Result], groups: dict[Mutant, str]) -> Iterator[str]:
    """Lines of Markdown: a row for every group, and the survivors."""
    yield "| group | mutants | noticed | by a test | at the import | by a crash | by time |"
    yield "|---|---|---|---|---|---|---|"
    for name in [*dict.fromkeys(groups[each.mutant] for each in found), "all"]:
        mine = [each for each in found if name in ("all", groups[each.mutant])]
        by = Counter(each.by if each.by in ("", "import", "crash", "time") else "test" for each in mine)
        noticed = len(mine) - by[""]
        share = f"{noticed} ({noticed / len(mine):.1%})"
        yield f"| {name} | {len(mine)} | {share} | {by['test']} | {by['import']} | {by['crash']} | {by['time']} |"
    yield ""
    for each in sorted(found, key=lambda result: result.mutant.name):
        if not each.by:
            why = reason(each.mutant, KNOWN) or "a test is missing"
            yield f"survives: {each.mutant.name} [{each.mutant.code}]: {why}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=600, help="Number of mutants that are drawn.")
    parser.add_argument("--all", action="store_true", help="Run every mutant instead of a sample.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the sample; a larger one contains a smaller one.")
    parser.add_argument("--only", default="", help="A group, or a part of `file:line function: change`.")
    parser.add_argument("--keep", type=Path, help="Folder where results are kept; a later run resumes there.")
    parser.add_argument("--seconds", type=float, help="Limit of the processor time for one mutant.")
    parser.add_argument("--list", action="store_true", help="Print the mutants and run nothing.")
    parser.add_argument("--json", type=Path, help="Also write the results to this file.")
    given = parser.parse_args()
    groups, started = all_mutants(given.only), time.monotonic()
    chosen = sorted(groups, key=lambda mutant: hashlib.sha256(f"{given.seed} {mutant.key}".encode()).digest())
    chosen = chosen if given.all else chosen[: given.sample]
    if not chosen:
        parser.error(f"--only {given.only}: no mutant has this in its name, and no group has this name")
    say(f"{len(chosen)} of {len(groups)} mutants")
    if given.list:
        print("\n".join(f"{groups[mutant]}: {mutant.name}" for mutant in chosen))
        return
    mutant_runs.preload()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it otherwise
    order, found = list(GROUPS), list[Result]()
    with contextlib.suppress(KeyboardInterrupt):  # the table is that of what was run until then
        for result in results({mutant: groups[mutant] for mutant in chosen}, Kept(given.keep), given.seconds):
            found.append(result)
            if not result.by or len(found) % 20 == 0:
                state = "" if result.by else f"survives: {result.mutant.name}"
                say(f"{len(found)}/{len(chosen)} {time.monotonic() - started:.0f} s {state}")
    found.sort(key=lambda result: order.index(groups[result.mutant]))
    print("\n".join(table(found, groups)))
    print(f"\n{len(found)} of {len(chosen)} in {time.monotonic() - started:.0f} s")
    if given.json is not None:
        rows = [{"name": each.mutant.name, "group": groups[each.mutant], "by": each.by} for each in found]
        given.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
