"""`brittle theorems`: what the papers promise, one line each."""

from pathlib import Path
from typing import Annotated, Any

import typer

from brittle.cli.console import complain, emit, rows_table, say
from brittle.cli.described import load_theorem_descriptions, theorem_row
from brittle.cli.options import JsonFile, file_to_write
from brittle.common import parts
from brittle.common.errors import InputError

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
    own = load_theorem_descriptions()
    known = [*own, *_installed({row["id"] for row in own})]
    papers = list(dict.fromkeys(row["paper"] for row in known))
    if paper is not None and paper not in papers:
        raise InputError(f"--paper is {paper!r}; it must be one of {', '.join(papers)}")
    if markdown is not None:
        from brittle.report.theorem_index import read_results, write_index
        from brittle.theorems import THEOREMS

        pages = [theorem for theorem in THEOREMS.values() if paper in (None, theorem.paper)]
        write_index(markdown, pages, read_results(results))
        say(f"wrote {markdown}")
        return
    rows = [row for row in known if paper in (None, row["paper"])]
    table = rows_table(["id", "claim", "applies to"], [[row["id"], row["claim"], row["applies_to"]] for row in rows])
    table.columns[0].no_wrap = True
    emit({"theorems": rows}, json_file, table)


def _installed(own: set[str]) -> list[dict[str, Any]]:
    """Those of other packages; one that is broken is told of and left out."""
    found = []
    for identity in parts.find_entry_points(parts.THEOREMS):
        if identity in own:
            continue
        try:
            from brittle.theorems.registry import find

            found.append(theorem_row(find(identity)))
        except InputError as error:
            complain(str(error))
    return found
