"""`brittle cite`: BibTeX of brittle, of a paper, or of the paper behind a theorem."""

from typing import Annotated

import typer

from brittle.cli.console import output
from brittle.cli.described import load_theorem_descriptions
from brittle.cli.options import suggesting

app = typer.Typer(add_completion=False, rich_markup_mode=None)


def _known() -> list[str]:
    """Papers and theorems."""
    return [word for row in load_theorem_descriptions() for word in (row["paper"], row["id"])]


@app.command()
def cite(
    identity: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            autocompletion=suggesting(_known),
            help="A theorem or a paper, such as melamed2023/4.1 or frei2023; brittle itself unless given.",
        ),
    ] = None,
) -> None:
    """Print BibTeX of brittle, of a paper, or of the paper behind a theorem."""
    from brittle.theorems import citation

    text = citation(identity)
    with output():
        typer.echo(text)
