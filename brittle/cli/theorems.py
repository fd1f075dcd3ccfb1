"""`brittle theorems`: what the papers promise, one line each."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from brittle.cli.console import complain, emit, rows_table, say
from brittle.cli.options import JsonFile, file_to_write
from brittle.common.errors import InputError

if TYPE_CHECKING:
    from brittle.theorems import Theorem

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def theorems(
    paper: Annotated[str | None, typer.Option("--paper", help="Only this paper's, such as melamed2023.")] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown", metavar="FILE", callback=file_to_write(), help="Write the theorem index page to this file."
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="FILE", help="What `brittle check all --json FILE` wrote, for the page."),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """List every theorem, those of installed packages among them: its id, its claim, and where it applies."""
    from brittle.theorems import THEOREMS

    known = [*THEOREMS.values(), *_installed()]
    papers = list(dict.fromkeys(theorem.paper for theorem in known))
    if paper is not None and paper not in papers:
        raise InputError(f"--paper is {paper!r}; it must be one of {', '.join(papers)}")
    chosen = [theorem for theorem in known if paper in (None, theorem.paper)]
    if markdown is not None:
        from brittle.report.theorem_index import read_results, write_index

        own = [theorem for theorem in chosen if theorem.id in THEOREMS]
        write_index(markdown, own, read_results(results))
        say(f"wrote {markdown}")
        return
    rows = [
        {
            "id": each.id,
            "claim": each.claim,
            "paper": each.paper,
            "applies_to": each.applies_to,
            "flaw": each.flaw,
            "repaired": each.repaired,
            "solve_for": list(each.unknowns),
        }
        for each in chosen
    ]
    table = rows_table(["id", "claim", "applies to"], [[row["id"], row["claim"], row["applies_to"]] for row in rows])
    table.columns[0].no_wrap = True
    emit({"theorems": rows}, json_file, table)


def _installed() -> "list[Theorem]":
    """Those of other packages; one that is broken is told of and left out."""
    from brittle.theorems.registry import find, installed

    found = []
    for identity in installed():
        try:
            found.append(find(identity))
        except InputError as error:
            complain(str(error))
    return found
