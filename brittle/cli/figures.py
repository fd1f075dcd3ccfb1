"""brittle figures: the figures that can be reproduced, and what each would cost on this machine."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from brittle.cli.console import emit, rows_table, watching
from brittle.cli.options import MOST_JOBS, JsonFile
from brittle.common.progress import duration

if TYPE_CHECKING:
    from brittle.experiments.base import Experiment

app = typer.Typer(
    rich_markup_mode=None, add_completion=False, help="List the papers' figures, with estimates of their cost here."
)


@app.command()
def figures_command(
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=MOST_JOBS, help="Processes to estimate for.")] = 2,
    json_file: JsonFile = None,
) -> None:
    """List the papers' figures, and how long each preset would take on this machine."""
    from brittle.experiments.base import PRESETS
    from brittle.experiments.run import EXPERIMENTS, slowness

    with watching("how fast this machine is"):
        factor = slowness()
    listed = [_estimate(figure, factor, jobs) for figure in EXPERIMENTS.values()]
    rows = [[item["id"], item["title"], *(duration(item[preset]["seconds"]) for preset in PRESETS)] for item in listed]
    emit({"jobs": jobs, "figures": listed}, json_file, rows_table(["figure", "what", *PRESETS], rows))


def _estimate(figure: "Experiment", factor: float, jobs: int) -> dict[str, Any]:
    """Wall-clock seconds: the sum over the jobs, or the longest cell."""
    from brittle.experiments.base import PRESETS
    from brittle.experiments.run import FigurePlan

    found: dict[str, Any] = {"id": figure.id, "title": figure.title}
    for preset in PRESETS:
        costs = FigurePlan((figure,), preset).costs.values()
        found[preset] = {"cells": len(costs), "seconds": factor * max(sum(costs) / jobs, max(costs))}
    return found
