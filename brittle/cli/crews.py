"""Who does the work of a command that looks at many examples: this process, several, or a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from brittle.cli.console import say
from brittle.cli.options import LARGE, MOST_JOBS, folder_to_write
from brittle.common import interrupts
from brittle.common.errors import require

if TYPE_CHECKING:
    from brittle.experiments.pieces import Executor


def _engine(context: typer.Context, option: typer.CallbackParam, value: str) -> str:
    good = value == "local" or (value.startswith("dask://") and value != "dask://")
    require(good, f"{option.opts[0]} is {value!r}; it must be local or dask://host:port")
    return value


Keep = Annotated[
    Path | None,
    typer.Option(
        "--keep",
        metavar="DIR",
        callback=folder_to_write,
        help="Keep finished chunks, and go on from there.",
        rich_help_panel=LARGE,
    ),
]
EngineName = Annotated[
    str, typer.Option("--engine", callback=_engine, help="local, or dask://host:port.", rich_help_panel=LARGE)
]
Jobs = Annotated[
    int, typer.Option("--jobs", min=1, max=MOST_JOBS, help="Processes of the local engine.", rich_help_panel=LARGE)
]


@contextmanager
def crew_for(keep: Path | None, engine_name: str, jobs: int) -> "Iterator[Executor | None]":
    """None where all is to be done here and at once."""
    if keep is None and (jobs, engine_name) == (1, "local"):
        yield None
        return
    from brittle.experiments.engines import engine
    from brittle.experiments.pieces import Executor

    crew = Executor(engine(engine_name, jobs, tell=say), keep)
    if keep is None:
        yield crew
        return
    with interrupts.keeping(lambda: f"finished chunks are in {keep}, and the same command goes on from there"):
        yield crew
