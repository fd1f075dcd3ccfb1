"""Results go to standard output, everything else to standard error."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from brittle.common import progress
from brittle.common.files import write_json
from brittle.common.result import jsonable, short


def complain(message: str) -> None:
    """One line on standard error."""
    print(f"brittle: {' '.join(message.split())}", file=sys.stderr)


def say(message: str) -> None:
    """A remark beside the result: where something was written, what was skipped."""
    print(message, file=sys.stderr)


def emit(result: Mapping[str, Any], json_file: str | None, table: Table | None = None) -> None:
    """The result as JSON on standard output (`-`), or as a table there and as JSON in a file."""
    content = jsonable(dict(result))
    if json_file == "-":
        print(json.dumps(content, indent=2, allow_nan=False))
        return
    if json_file is not None:
        write_json(json_file, content)
        say(f"wrote {json_file}")
    Console(soft_wrap=False).print(table if table is not None else fields_table(content))


def fields_table(content: Mapping[str, Any]) -> Table:
    """Name and value of everything short; long lists by their length."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in content.items():
        table.add_row(name.replace("_", " "), short(value))
    return table


def rows_table(columns: list[str], rows: list[list[Any]], title: str | None = None) -> Table:
    table = Table(*columns, title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(short(cell) for cell in row))
    return table


@contextmanager
def watching(label: str) -> Iterator[progress.Watch]:
    """A progress bar with an estimate on standard error; nothing where that is not a terminal."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=1.0, note="")

        def watch(step: progress.Progress) -> None:
            bar.update(task, completed=step.done, note=step.note)

        yield watch
