"""brittle data: sample, list, fetch and inspect data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brittle.cli.console import deliver, emit, fields_table, rows_table, say, watching
from brittle.cli.models import DATA_HELP, DataFile
from brittle.cli.options import ArraysOut, JsonFile, Seed, generator
from brittle.cli.parts import PartsCommand, get_part_name
from brittle.cli.sampling import Sampling, with_sampling
from brittle.cli.sections import WholeSentences
from brittle.common.errors import require_value

if TYPE_CHECKING:
    from brittle.data import Data, Summary

app = typer.Typer(
    cls=WholeSentences,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Sample, list, fetch and inspect data.",
)


@app.command("sample", cls=PartsCommand)
@with_sampling
def sample_command(
    sampling: Sampling | None, seed: Seed = 0, out: ArraysOut = None, json_file: JsonFile = None
) -> None:
    """Draw data from a setting, write them as .npz and say what they are."""
    sampling = require_value(sampling, "--setting is missing: say where the data come from")
    from brittle.data import summary

    name = get_part_name(sampling.setting)
    with watching(name):
        data = sampling.draw(generator(seed))
    deliver(lambda: _save(data, out), lambda: _emit_summary(summary(data), json_file, setting=name, seed=seed))


def _save(data: "Data", out: Path | None) -> None:
    from brittle.data import save_data

    if out is not None:
        save_data(data, out)
        say(f"wrote {out}")


@app.command("show")
def show_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=DATA_HELP)], json_file: JsonFile = None
) -> None:
    """Say what a data file holds: shapes, labels, norms, and the truth that it carries."""
    DataFile(file).refuse()
    from brittle.data import summary

    _emit_summary(summary(DataFile(file).load()), json_file, file=str(file))


@app.command("list")
def list_command(json_file: JsonFile = None) -> None:
    """Say which real data sets are there, where, and whether their files are the original ones."""
    from brittle.data import data_folder, holding
    from brittle.data.sources import SOURCES

    holdings = [holding(name) for name in SOURCES]
    rows = [["digits", "complete", "comes with scikit-learn"]]
    rows += [[held.name, held.state, str(held.folder)] for held in holdings]
    content = {"folder": data_folder(), "sets": [{**held.to_json(), "state": held.state} for held in holdings]}
    emit(content, json_file, rows_table(["set", "state", "where"], rows))


@app.command("fetch")
def fetch_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A set of `brittle data list`.")],
    json_file: JsonFile = None,
) -> None:
    """Download a data set into the data folder and check the SHA-256 of every file."""
    from brittle.data import fetch

    with watching(name) as watch:
        held = fetch(name, watch)
    emit(held.to_json(), json_file)


def _emit_summary(seen: "Summary", json_file: str | None, **context: Any) -> None:
    content = {**context, **seen.to_json()}
    truth = {
        name: " × ".join(map(str, value)) if isinstance(value, list) else value for name, value in seen.truth.items()
    }
    emit(content, json_file, fields_table({**content, "truth": truth}))
