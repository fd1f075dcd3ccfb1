"""`brittle theorems`: what the papers promise, one line each."""

from pathlib import Path
from typing import Annotated

import typer

from brittle.cli.console import emit, rows_table, say
from brittle.cli.options import JsonFile, file_to_write
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
    """List every theorem: its id, its claim, and where it applies."""
    from brittle.theorems import THEOREMS
    from brittle.theorems.registry import PAPERS

    if paper is not None and paper not in PAPERS:
        raise InputError(f"--paper is {paper!r}; it must be one of {', '.join(PAPERS)}")
    chosen = [theorem for theorem in THEOREMS.values() if paper in (None, theorem.paper)]
    if markdown is not None:
        from brittle.report.theorem_index import read_results, write_index

        write_index(markdown, chosen, read_results(results))
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
