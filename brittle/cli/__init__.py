"""The command line: parse, call, print. One file per command; a file is loaded only when its command is used."""

import os
import re
import signal
import sys
import traceback
from importlib import import_module
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperGroup

from brittle.cli.console import OutputClosed, complain, describe_error, output, prepare_streams
from brittle.cli.sections import write_groups
from brittle.common import interrupts
from brittle.common.errors import InputError

FAILED = 70  # the exit code of an error in brittle itself: EX_SOFTWARE of sysexits.h
DEBUG = "BRITTLE_DEBUG"
COMMANDS = {
    "audit": "Say why a network is not robust, exactly how far it holds, and what helps.",
    "explore": "Explore points, the papers and an audit in the browser.",
    "harden": "Apply one remedy to a network and measure what it changes.",
    "data": "Sample, list, fetch and inspect data.",
    "train": "Train a network by one of the papers' regimes.",
    "kkt": "Measure how far from a KKT point; solve for one, or for the largest margin.",
    "attack": "Find perturbations that flip a network.",
    "certify": "Prove how far every example is from flipping.",
    "truth": "Make instances with proved radii, and score attacks and verifiers on them.",
    "theorems": "List what the papers promise.",
    "check": "Check a theorem on its own instance, on yours, or all of them.",
    "cite": "Print BibTeX of brittle, of a paper, or of the paper behind a theorem.",
    "simulate": "Check a theorem at a dimension that nobody could store.",
    "figures": "List the papers' figures, with what each would cost on this machine.",
    "reproduce": "Reproduce figures of the papers, resumable and on a cluster.",
    "bench": "Measure speed and tightness against a reference, as ratios.",
}


GROUPS = {
    "Your network": ("audit", "explore", "harden"),
    "One step at a time": ("data", "train", "kkt", "attack", "certify"),
    "The papers": ("theorems", "check", "simulate", "figures", "reproduce", "cite"),
    "brittle itself": ("truth", "bench"),
}


class LazyCommands(TyperGroup):
    """Lists every command, imports only the one that runs: PyTorch takes seconds to load."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in COMMANDS:
            return args[0], load(args[0]), args[1:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        write_groups(formatter, GROUPS, COMMANDS)


def load(name: str) -> Any:
    command = typer.main.get_command(import_module(f"brittle.cli.{name}").app)
    command.name = name
    interrupts.start()
    return command


app = typer.Typer(
    cls=LazyCommands,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Why is this ReLU network not robust, how non-robust is it exactly, and what would help?",
    epilog="Exit codes: 0 done, 1 a checked claim does not hold, 2 bad input, 70 an error in brittle itself "
    f"({DEBUG}=1 shows its traceback).",
)


def _listed_only() -> None:
    """Stands for a command in the list of commands; `LazyCommands` runs the real one."""


for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(_listed_only)


def _print_version(asked: bool) -> None:
    if asked:
        from brittle import __version__

        typer.echo(f"brittle {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Options before the command."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code.

    A mistake of the user's ends in one line and exit code 2, an error that was not foreseen in one line and 70.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    prepare_streams()
    try:
        with output():
            return _run(arguments or ["--help"])
    except InputError as error:
        complain(str(error))
        return 2
    except typer.TyperException as error:
        complain(_with_value(getattr(error, "format_message", error.__str__)(), arguments))
        return 2
    except (typer.Abort, KeyboardInterrupt):
        complain("interrupted")
        return 128 + signal.SIGINT
    except OutputClosed:
        return 128 + signal.SIGPIPE
    except Exception as error:
        if os.environ.get(DEBUG):
            traceback.print_exception(error)
        hint = "" if os.environ.get(DEBUG) else f"; {DEBUG}=1 shows where"
        complain(f"an error in brittle itself{hint}: {describe_error(error)}")
        return FAILED


def _with_value(message: str, arguments: list[str]) -> str:
    """Typer names the option that is wrong, and not what was given for it."""
    found = re.fullmatch(r"Invalid value for '(--[a-z-]+)': Input should be (.*)", message, re.DOTALL)
    if found is None:
        return message
    flag, needed = found[1], found[2].partition(", unable to")[0]
    given = [after for before, after in pairwise(arguments) if before == flag]
    given += [each.partition("=")[2] for each in arguments if each.startswith(f"{flag}=")]
    return f"{flag} is {given[-1]!r}; it must be {needed}" if given else message


def _run(arguments: list[str]) -> int:
    try:
        command = typer.main.get_command(app)
        return command(args=arguments, prog_name="brittle", standalone_mode=False, obj=tuple(arguments)) or 0
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # Typer's own way to end, with code 1
            raise stop.__context__ from None
        raise
