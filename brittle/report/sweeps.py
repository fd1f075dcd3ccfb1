"""A sweep of a theorem as a table: one row a combination (LaTeX), or one row a comparison (CSV)."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from brittle.common.files import replacing
from brittle.common.kinds import kinds_checked
from brittle.common.latex import tabular
from brittle.common.result import short
from brittle.theorems.comparison import Comparison
from brittle.theorems.sweeps import Case

COMPARED = ("part", "name", "value", "relation", "limit", "slack", "holds")


def summary(case: Case) -> list[Any]:
    """What a person sees of a combination: verdict, hypothesis and conclusion that are tightest, with their slack."""
    return [*case.values.values(), case.outcome, *_beside(case.hypothesis, case.problem), *_beside(case.conclusion)]


def headings(cases: Sequence[Case]) -> list[str]:
    """Of the same columns."""
    return [*cases[0].values, "verdict", "tightest hypothesis", "slack", "conclusion", "slack"]


def _beside(comparison: Comparison | None, otherwise: str = "") -> list[str]:
    return [otherwise, ""] if comparison is None else [str(comparison), short(comparison.slack)]


@kinds_checked
def write_csv(path: str | Path, cases: Sequence[Case]) -> None:
    """Every hypothesis and every promise of every combination.

    Examples:
        >>> from pathlib import Path
        >>> import torch
        >>> import brittle as bt
        >>> theorem, rng = bt.theorems.find("vardi2022/3.1"), torch.Generator().manual_seed(0)
        >>> cases = bt.theorems.sweep(theorem, {"dim": [50]}, rng)
        >>> bt.report.write_csv("sweep.csv", cases)
        >>> Path("sweep.csv").read_text().split()[0]
        'dim,verdict,part,name,value,relation,limit,slack,holds,problem'
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*cases[0].values, "verdict", *COMPARED, "problem"])
    for case in cases:
        for row in _compared(case):
            writer.writerow([*case.values.values(), case.outcome, *row, case.problem])
    _write(path, stream.getvalue())


def _compared(case: Case) -> Iterator[list[Any]]:
    if case.verdict is None:
        yield [""] * len(COMPARED)
        return
    parts = (("hypothesis", case.verdict.hypotheses), ("promise", case.verdict.bound), ("outside", case.verdict.beyond))
    for part, comparisons in parts:
        for each in comparisons:
            yield [part, each.name, each.value, each.relation.value, each.threshold, each.slack, each.holds]


@kinds_checked
def write_latex(path: str | Path, cases: Sequence[Case]) -> None:
    """A tabular with the rules of booktabs.

    Examples:
        >>> from pathlib import Path
        >>> import torch
        >>> import brittle as bt
        >>> theorem, rng = bt.theorems.find("vardi2022/3.1"), torch.Generator().manual_seed(0)
        >>> cases = bt.theorems.sweep(theorem, {"dim": [50]}, rng)
        >>> bt.report.write_latex("sweep.tex", cases)
        >>> "verdict" in Path("sweep.tex").read_text()
        True
    """
    _write(path, tabular(headings(cases), map(_shown, cases), "r" * len(cases[0].values) + "llrlr"))


def _write(path: str | Path, text: str) -> None:
    with replacing(path) as stream:
        stream.write(text.encode())


def _shown(case: Case) -> list[str]:
    return [short(cell) for cell in summary(case)]
