"""`brittle simulate`: a theorem at a dimension that nobody could store."""

from typing import Annotated

import typer

from brittle.cli.console import emit, say, watching
from brittle.cli.options import JsonFile, Seed, generator

app = typer.Typer(add_completion=False, rich_markup_mode=None)

Identity = Annotated[str, typer.Argument(metavar="ID", help="vardi2022/4.1, frei2023/3.1 or frei2023/4.2.")]
Dim = Annotated[int, typer.Option("--dim", min=2, help="The dimension d, such as 2000000.")]
Examples = Annotated[
    int | None, typer.Option("--examples", min=2, help="Training examples; by default as many as the theorem needs.")
]
ClusterCount = Annotated[int, typer.Option("--clusters", min=2, help="Clusters with random means (frei2023).")]
Noise = Annotated[float, typer.Option("--noise", min=0, help="σ of the clusters (frei2023).")]
Fresh = Annotated[int, typer.Option("--test", min=1, help="Fresh examples (frei2023).")]


@app.command()
def simulate(
    identity: Identity,
    dim: Dim,
    examples: Examples = None,
    clusters: ClusterCount = 2,
    noise: Noise = 1.0,
    test: Fresh = 1000,
    seed: Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Check a theorem in R^dim on data that are sampled in their span, at a KKT point that is solved for.

    vardi2022/4.1 takes as many points of the sphere as it admits; frei2023 takes n = k ln²d examples of k clusters with
    random means. Exit code 1 if the claim does not hold although its hypotheses do.
    """
    from brittle.cli.checking import verdict_table
    from brittle.theorems import CheckOutcome
    from brittle.theorems.simulate import Request
    from brittle.theorems.simulate import simulate as run

    with watching(f"{identity} in R^{dim}") as watch:
        result = run(identity, Request(dim, examples, clusters, noise, test), generator(seed), watch)
    content = result.to_json()
    emit({**content.pop("verdict"), **content}, json_file, verdict_table(result.verdict))
    if json_file != "-":
        say(
            f"{result.examples} examples in R^{result.dim}, {result.columns} numbers each; "
            f"KKT point in {result.seconds_to_solve:.2g} s, {result.seconds:.2g} s in all"
        )
    if result.verdict.verdict is CheckOutcome.VIOLATED:
        raise typer.Exit(1)
