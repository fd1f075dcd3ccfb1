"""The help in sections: options under the headings that they name, commands by what they are for."""

from collections.abc import Iterable, Mapping
from typing import Any

from typer.core import TyperCommand, TyperGroup


class SectionedCommand(TyperCommand):
    """Lists options under their own headings, after those that have none."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """As Typer does it, in sections."""
        sections: dict[str, list[Any]] = {}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                usual = "Arguments" if each.param_type_name == "argument" else "Options"
                sections.setdefault(getattr(each, "rich_help_panel", None) or usual, []).append(record)
        first = [name for name in ("Arguments", "Options") if name in sections]
        for name in [*first, *(name for name in sections if name not in first)]:
            with formatter.section(name):
                formatter.write_dl(sections[name])


class WholeSentences(TyperGroup):
    """Lists commands with all of their first sentence, where Typer would cut it short."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_sentence(self.commands[name])) for name in self.list_commands(ctx)])


def first_sentence(command: Any) -> str:
    """Of its help, on one line."""
    paragraph = " ".join((command.help or "").partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".") + "."


def write_groups(formatter: Any, groups: Mapping[str, Iterable[str]], words: Mapping[str, str]) -> None:
    """A section for every group of names, each with its words in full, all in line."""
    widest = max(map(len, words))
    for group, names in groups.items():
        with formatter.section(group):
            formatter.write_dl([(name.ljust(widest), words[name]) for name in names])
