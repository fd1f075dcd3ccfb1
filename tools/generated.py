"""Pages that are made for the site and not kept: python -m tools.generated writes them into docs.

The commands with their options, from the commands themselves; and what lies beside the documentation, in it.
"""

from pathlib import Path
from typing import Any

from brittle.cli import COMMANDS, load
from tools.pages import ROOT

DOCS = ROOT / "docs"
OPENING = """\
# Commands

This page is written by `python -m tools.generated` from the commands themselves. Exit codes: 0 done, 1 a checked claim
does not hold, 2 bad input, 130 and 143 interrupted.
"""


def page() -> str:
    """A section for each command."""
    return "\n".join([OPENING, *(section(f"brittle {name}", load(name)) for name in COMMANDS)])


def section(title: str, command: Any) -> str:
    """Its help, and a table of what may be typed; of a group one for each command in it."""
    words = " ".join((command.help or "").split())
    heading = f"## {title}\n\n{words}\n"
    if hasattr(command, "commands"):
        inner = [section(f"{title} {name}", each).replace("## ", "### ", 1) for name, each in command.commands.items()]
        return "\n".join([heading, *inner])
    rows = [f"| {cell(names(each))} | {cell(each_help(each))} |" for each in command.params if shown(each)]
    return "\n".join([heading, "| | |", "|---|---|", *rows, ""])


def shown(parameter: Any) -> bool:
    """All but what every command has."""
    return not getattr(parameter, "hidden", False) and "--help" not in parameter.opts


def names(parameter: Any) -> str:
    """`--budget SECONDS`, or the argument's own word."""
    metavar = (parameter.metavar or "").strip()
    if parameter.param_type_name == "argument":
        return f"`{metavar or parameter.name.upper()}`"
    flags = " / ".join([*parameter.opts, *parameter.secondary_opts])
    return f"`{flags} {metavar}`" if metavar and not parameter.is_flag else f"`{flags}`"


def each_help(parameter: Any) -> str:
    """With the default, where it says something."""
    text = " ".join((getattr(parameter, "help", None) or "").split())
    plain = isinstance(parameter.default, int | float | str) and not isinstance(parameter.default, bool)
    return f"{text} Default: {parameter.default}." if plain and parameter.default != "" else text


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def moved(path: Path) -> str:
    """A page from beside the documentation, with its links as they are inside."""
    return path.read_text().replace("](docs/", "](")


if __name__ == "__main__":
    for name, text in {
        "commands": page(),
        "changelog": moved(ROOT / "CHANGELOG.md"),
        "contributing": moved(ROOT / "CONTRIBUTING.md"),
    }.items():
        (DOCS / f"{name}.md").write_text(text)
        print(f"wrote docs/{name}.md")
