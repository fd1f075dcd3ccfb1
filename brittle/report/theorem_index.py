"""The theorem index: a page that is written from the theorems themselves."""

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from brittle.common.errors import InputError
from brittle.common.files import existing, replacing
from brittle.theorems import PAPERS, Theorem

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
