"""The theorem index: a page that is written from the theorems themselves."""

import csv
import inspect
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from brittle.common.errors import InputError
from brittle.common.files import existing, replacing
from brittle.common.kinds import check_kinds
from brittle.common.result import short, tabular
from brittle.theorems import PAPERS, Theorem
from brittle.theorems.comparison import Comparison
from brittle.theorems.trials import SweepCase

COMPARED = ("part", "name", "value", "relation", "limit", "slack", "holds")


def summary(case: SweepCase) -> list[Any]:
    """What a person sees of a combination: verdict, hypothesis and conclusion that are tightest, with their slack."""
    return [*case.values.values(), case.outcome, *_beside(case.hypothesis, case.problem), *_beside(case.conclusion)]


def headings(cases: Sequence[SweepCase]) -> list[str]:
    """Of the same columns."""
    return [*cases[0].values, "verdict", "tightest hypothesis", "slack", "conclusion", "slack"]


def _beside(comparison: Comparison | None, otherwise: str = "") -> list[str]:
    return [otherwise, ""] if comparison is None else [str(comparison), short(comparison.slack)]


@check_kinds
def write_csv(path: str | Path, cases: Sequence[SweepCase]) -> None:
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


def _compared(case: SweepCase) -> Iterator[list[Any]]:
    if case.verdict is None:
        yield [""] * len(COMPARED)
        return
    parts = (("hypothesis", case.verdict.hypotheses), ("promise", case.verdict.bound), ("outside", case.verdict.beyond))
    for part, comparisons in parts:
        for each in comparisons:
            yield [part, each.name, each.value, each.relation.value, each.threshold, each.slack, each.holds]


@check_kinds
def write_latex(path: str | Path, cases: Sequence[SweepCase]) -> None:
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


def _shown(case: SweepCase) -> list[str]:
    return [short(cell) for cell in summary(case)]


FEW = 5  # exponents that fit on a line
OPENING = """\
# The theorems

This page is written by `brittle theorems --markdown docs/theorems.md --results FILE`, where FILE is what
`brittle check all --json FILE` wrote; do not edit it. Each theorem can be checked on the instance named here
(`brittle check ID`; `--set NAME=VALUE` changes a size), at every combination of several sizes (`--sweep dim=100,1000
--sweep width=10,20`, with `--csv FILE` and `--latex FILE`), on your own network and data (`--net`, `--data`) and, where
it is a statement about chance, over many draws (`--trials`). `--data` without `--net` evaluates what is supposed of the
data. What a network cannot tell of its training is told with `--start FILE` and `--fact NAME=NUMBER` (melamed2023:
rate, decay, steps, beta). Where a paper and its proof disagree see [errata](errata.md).
"""


def read_results(path: Path | None) -> dict[str, dict[str, Any]]:
    """The results of `brittle check all`, by id."""
    if path is None:
        return {}
    try:
        return {result["id"]: result for result in json.loads(existing(path).read_text())["results"]}
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise InputError(f"{path}: is not what `brittle check all --json FILE` writes") from None


def write_index(path: Path, theorems: Sequence[Theorem], results: Mapping[str, dict[str, Any]]) -> None:
    with replacing(path) as stream:
        stream.write(index(theorems, results).encode())


def index(theorems: Sequence[Theorem], results: Mapping[str, dict[str, Any]]) -> str:
    parts = [OPENING, _overview(theorems, results)]
    for paper in dict.fromkeys(theorem.paper for theorem in theorems):
        parts.append(f"## {paper}\n\n*{_title(paper)}*\n")
        parts += [_entry(theorem, results.get(theorem.id)) for theorem in theorems if theorem.paper == paper]
    return "\n".join(parts)


def _title(paper: str) -> str:
    return PAPERS[paper].title if paper in PAPERS else paper


def _overview(theorems: Sequence[Theorem], results: Mapping[str, dict[str, Any]]) -> str:
    standing = [
        f"| {each.id} | {_cell(each.claim)} | {_verdict(results.get(each.id))} |" for each in theorems if not each.flaw
    ]
    flawed = [
        f"| {each.id} | {_cell(each.flaw)} | {each.repaired} | {_verdict(results.get(each.id))} |"
        for each in theorems
        if each.flaw
    ]
    lines = ["| id | claim | last `check all` |", "|---|---|---|", *standing]
    if flawed:
        lines += ["", "Known to be wrong as printed:", "", "| id | as printed it is | instead | last `check all` |"]
        lines += ["|---|---|---|---|", *flawed]
    return "\n".join(lines) + "\n"


def _entry(theorem: Theorem, result: dict[str, Any] | None) -> str:
    lines = [f"### {theorem.id}", "", _statement(theorem), "", f"- applies to: {theorem.applies_to}"]
    if defaults := _defaults(theorem):
        lines.append(f"- default instance: {defaults}")
    if theorem.unknowns:
        lines.append(f"- can be solved for: {', '.join(theorem.unknowns)}")
    if theorem.flaw:
        stands = f"; see {theorem.repaired}" if theorem.repaired else ""
        lines.append(f"- as printed it is {theorem.flaw}{stands}")
    if theorem.note:
        lines.append(f"- note: {theorem.note}")
    if result is not None:
        lines.append(f"- last check: **{result['verdict']}**{_measured(result)}")
        lines += _exponents(result)
    return "\n".join(lines) + "\n"


def _statement(theorem: Theorem) -> str:
    """The class's own words, on one line: a docstring that runs on would break lists and tables."""
    return " ".join((inspect.getdoc(theorem) or theorem.claim).split())


def _defaults(theorem: Theorem) -> str:
    assert is_dataclass(theorem)
    return ", ".join(f"{field.name} = {_number(getattr(theorem, field.name))}" for field in fields(theorem))


def _measured(result: dict[str, Any]) -> str:
    promises = [
        f"{each['name']} = {_number(each['value'])} {each['relation']} {_number(each['threshold'])}"
        for each in result["bound"]
    ]
    exponents = [
        f"{each['measure']} ~ {each['variable']}^({each['fitted']:.3f} ± {each['standard_error']:.3f})"
        + ("" if each["claimed"] is None else f", claimed {each['claimed']:g}")
        for each in result.get("scaling", [])[: FEW if len(result.get("scaling", [])) <= FEW else 0]
    ]
    shown = "; ".join(promises + exponents)
    return f" ({shown})" if shown else ""


def _exponents(result: dict[str, Any]) -> list[str]:
    """Exponents that are too many for a line, as a table."""
    scaling = result.get("scaling", [])
    if len(scaling) <= FEW:
        return []
    rows = [
        f"| {_cell(each['measure'])} | {'' if each['claimed'] is None else format(each['claimed'], '+g')} "
        f"| {each['fitted']:+.2f} ± {each['standard_error']:.2f} |"
        for each in scaling
    ]
    variable = scaling[0]["variable"]
    return ["", f"| power of {variable} | claimed | fitted |", "|---|---|---|", *rows]


def _verdict(result: dict[str, Any] | None) -> str:
    return "not run" if result is None else result["verdict"]


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "unbounded" if value is None else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
