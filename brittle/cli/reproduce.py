"""brittle reproduce: run a figure's cells, judge its claims, draw it."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brittle.cli.console import Deliveries, emit, rows_table, say, watching
from brittle.cli.options import MOST_JOBS, JsonFile, Seed, file_to_write, folder_to_write, suggesting, word_of
from brittle.common import interrupts
from brittle.common.errors import require
from brittle.common.files import replacing
from brittle.common.progress import duration

if TYPE_CHECKING:
    from brittle.experiments.base import FigureResult

PRESETS = ("smoke", "quick", "full")  # as in experiments, without importing it
app = typer.Typer(rich_markup_mode=None, add_completion=False, help="Reproduce the papers' figures.")


@app.command()
def reproduce_command(
    figure: Annotated[str, typer.Argument(metavar="FIGURE", help="An id of `brittle figures`, a paper, or all.")],
    preset: Annotated[
        str,
        typer.Option(
            "--preset",
            callback=word_of(*PRESETS),
            autocompletion=suggesting(lambda: PRESETS),
            help="smoke, quick or full.",
        ),
    ] = "quick",
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="DIR", is_eager=True, callback=folder_to_write, help="Finished cells and figures."
        ),
    ] = Path("out"),
    engine_name: Annotated[str, typer.Option("--engine", help="local, or dask://host:port.")] = "local",
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, max=MOST_JOBS, help="Processes of the local engine.")
    ] = os.cpu_count() or 1,
    patience: Annotated[
        float, typer.Option("--patience", metavar="SECONDS", min=0, help="Dask: to wait while there is no worker.")
    ] = 60.0,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME=V,V", help="Only cells with these parameters.")
    ] = None,
    seed: Seed = 0,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page", metavar="FILE", callback=file_to_write(), help="Also write the page of all figures in DIR here."
        ),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Run what is not in DIR yet, judge the claims, and write PNG, SVG, CSV, JSON and HTML. Stop and go on at will."""
    chosen = _selection(only or [])
    from brittle.experiments.engines import engine
    from brittle.experiments.run import FigurePlan, cells_folder, find, slowness
    from brittle.report.figures import write_figure

    plan = FigurePlan(tuple(find(figure)), preset, chosen, seed)
    place = engine(engine_name, jobs, patience, say)
    say(f"{len(plan.costs)} cells, about {duration(slowness() * plan.cost(out) / jobs)} to go")
    results: list[FigureResult] = []
    kept = f"finished cells are in {cells_folder(out)}, and the same command goes on from there"
    deliveries = Deliveries()
    with interrupts.keeping(lambda: kept), watching(figure) as watch:
        for result in plan.run(out, place, watch):
            results.append(result)
            deliveries(lambda: say(f"wrote {write_figure(results[-1], out)}"))
    results.sort(key=lambda result: list(plan.cells).index(result.id))
    content = {"preset": preset, "holds": all(each.holds for each in results), "figures": results}
    deliveries(lambda: emit(content, json_file, _claims(results)))
    for path in (out / "reproduction.md", *([] if page is None else [page])):
        deliveries(partial(_write_page, path, out))
    deliveries.finish()
    for result in results if json_file != "-" else ():
        _remark(result)
    raise typer.Exit(0 if content["holds"] else 1)


def _selection(only: list[str]) -> dict[str, list[Any]]:
    """`alpha=.5,.8` as {"alpha": [0.5, 0.8]}."""
    chosen = {}
    for text in only:
        name, equals, values = text.partition("=")
        require(bool(name and equals and values), f"--only is {text!r}; write NAME=VALUE,VALUE")
        chosen[name] = [_value(value) for value in values.split(",")]
    return chosen


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def _write_page(path: Path, folder: Path) -> None:
    from brittle.report.figures import contents, reproduction

    with replacing(path) as stream:
        stream.write(reproduction(contents(folder)).encode())


def _claims(results: "list[FigureResult]") -> Any:
    from brittle.report.figures import CLAIM_WORDS

    rows = [
        [each.id, claim.text, claim.measured, CLAIM_WORDS[claim.holds]] for each in results for claim in each.claims
    ]
    return rows_table(["figure", "claim", "measured", "verdict"], rows)


def _remark(result: "FigureResult") -> None:
    if result.unreached:
        total = len(result.points) + len(result.unreached)
        say(f"{result.id}: {len(result.unreached)} of {total} cells missed their stop and carry no claim")
    for remark in result.remarks:
        say(f"{result.id}: {remark}")
