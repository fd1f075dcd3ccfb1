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

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table

from brittle.common import progress
from brittle.common.errors import LOGGER, InputError, one_line, printable
from brittle.common.files import write_json
from brittle.common.parts import describe_foreign_error
from brittle.common.result import jsonable, short

LONGEST_WORD = 200  # characters of a value or a path that an error shows whole
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
    """Print one line of moderate length on standard error."""
    words = (word if len(word) <= LONGEST_WORD else f"{word[:80]}...{word[-40:]}" for word in message.split())
    say(f"brittle: {one_line(' '.join(words))}")


def describe_error(error: Exception) -> str:
    """Return what the user is told of an error: bad input explains itself, another error is named by its type too."""
    return str(error) if isinstance(error, InputError) else describe_foreign_error(error)


def say(message: str) -> None:
    """A remark beside the result: where something was written, what was skipped. No reason to fail."""
    with suppress(OSError):
        print(printable(message), file=sys.stderr)


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


class Deliveries:
    """Outputs that do not depend on each other: what goes wrong in one is raised after the others, in `finish`."""

    def __init__(self) -> None:
        self.failures: list[Exception] = []

    def __call__(self, output: Callable[[], None]) -> None:
        try:
            output()
        except Exception as failure:  # of a page, perhaps, which must not cost the numbers
            self.failures.append(failure)

    def finish(self) -> None:
        """Raise the first failure; the others are mentioned."""
        for each in self.failures[1:]:
            if not isinstance(each, OutputClosed):
                complain(describe_error(each))
        if self.failures:
            raise self.failures[0]


def deliver(*outputs: Callable[[], None]) -> None:
    """Every output, then the first failure: a full disk costs nothing that can be printed, a closed pipe no file.

    Numbers come first, pages and pictures last.
    """
    deliveries = Deliveries()
    for each in outputs:
        deliveries(each)
    deliveries.finish()


def _write_json(file: str | None, content: Any) -> None:
    if file is not None:
        write_json(file, content)
        say(f"wrote {file}")


def _show(table: Any) -> None:
    with output():
        PrintableConsole().print(table)


class PrintableConsole(Console):
    """A console for texts from files: they hold no markup, and what is not printable does not reach the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for each in super().render(renderable, options):
            yield each if each.control else Segment(printable(each.text), each.style)


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
    console = PrintableConsole(stderr=True)
    if not console.is_terminal:
        yield progress.silent
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
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
