"""`brittle check --sweep`: a theorem at every combination of some sizes, as a table and in files."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from brittle.cli.console import deliver, emit, rows_table, say, watching
from brittle.cli.options import generator
from brittle.common.errors import require
from brittle.report.theorem_index import headings, summary, write_csv, write_latex
from brittle.theorems import Theorem
from brittle.theorems.trials import SweepCase, combinations, is_violated, sweep


class Files(NamedTuple):
    """Where the sweep is written."""

    csv: Path | None
    latex: Path | None
    json: str | None


def check_each(theorem: Theorem, axes: Mapping[str, Sequence[Any]], seed: int, files: Files) -> bool:
    """Shows and writes the sweep; whether a claim did not hold somewhere although its hypotheses do."""
    combinations(theorem, axes)  # a value that the theorem refuses is said before the work
    with watching(f"{theorem.id} at each size") as watch:
        cases = sweep(theorem, axes, generator(seed), watch=watch)
    require(any(case.verdict for case in cases), f"no combination has an instance: {cases[0].problem}")
    content = {"id": theorem.id, "claim": theorem.claim, "seed": seed, "cases": [case.to_json() for case in cases]}
    table = rows_table(headings(cases), [summary(case) for case in cases], f"{theorem.id}: {theorem.claim}")
    deliver(
        lambda: emit(content, files.json, table),
        lambda: _write(write_csv, files.csv, cases),
        lambda: _write(write_latex, files.latex, cases),
    )
    return is_violated(cases)


def _write(write: Callable[[Path, Sequence[SweepCase]], None], file: Path | None, cases: Sequence[SweepCase]) -> None:
    if file is not None:
        write(file, cases)
        say(f"wrote {file}")
