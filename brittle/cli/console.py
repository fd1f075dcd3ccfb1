"""Results go to standard output, everything else to standard error."""

import io
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console, Group
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from brittle.common import progress
from brittle.common.errors import InputError
from brittle.common.files import write_json
from brittle.common.notes import LOGGER
from brittle.common.result import jsonable, short

PATIENCE = 2.0  # seconds without a sign of life that nobody minds


class OutputClosed(Exception):
    """Nobody reads standard output any more: there is nothing left to say, and nothing wrong."""


def prepare_streams() -> None:
    """Characters that a terminal does not know become question marks; streams that are closed lead nowhere.

    The library's notes go to standard error too.
    """
    LOGGER.addHandler(REMARKS)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def output() -> Iterator[None]:
    """What is printed here has arrived when the block ends, or it is said why not."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        raise OutputClosed from None
    except OSError as error:
        _discard_output()
        raise InputError(f"{error.filename or 'standard output'}: {error.strerror or error}") from None


def _discard_output() -> None:
    """What is still in the buffer would fail once more when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def complain(message: str) -> None:
    """One line on standard error."""
    say(f"brittle: {' '.join(message.split())}")


def say(message: str) -> None:
    """A remark beside the result: where something was written, what was skipped. No reason to fail."""
    with suppress(OSError):
        print(message, file=sys.stderr)


class _Remarks(logging.Handler):
    """What the library notes is a remark."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


REMARKS = _Remarks()


def emit(result: Mapping[str, Any], json_file: str | None, table: Table | Group | None = None) -> None:
    """The result as JSON on standard output (`-`), or as a table there and as JSON in a file."""
    content = jsonable(dict(result))
    if json_file == "-":
        with output():
            print(json.dumps(content, indent=2, allow_nan=False))
        return
    shown = table if table is not None else fields_table(content)
    deliver(lambda: _write_json(json_file, content), lambda: _show(shown))


def deliver(*outputs: Callable[[], None]) -> None:
    """Every one, then the first failure: a full disk costs nothing that can be printed, a closed pipe no file."""
    failures: list[InputError | OutputClosed] = []
    for each in outputs:
        try:
            each()
        except (InputError, OutputClosed) as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


def _write_json(file: str | None, content: Any) -> None:
    if file is not None:
        write_json(file, content)
        say(f"wrote {file}")


def _show(table: Any) -> None:
    with output():
        Console(soft_wrap=False).print(table)


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
    """A progress bar with an estimate on standard error, once the work has taken PATIENCE seconds.

    Nothing where that is not a terminal. Work that does not say how far it is has the time that it took.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield progress.silent
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(label, total=None, note="")

    def watch(step: progress.Progress) -> None:
        bar.update(task, total=1.0, completed=step.done, note=step.note)

    begin = threading.Timer(PATIENCE, bar.start)
    begin.daemon = True
    begin.start()
    try:
        yield watch
    finally:
        begin.cancel()
        begin.join()  # a bar that is just appearing would stay
        if bar.live.is_started:
            bar.stop()
