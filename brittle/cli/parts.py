"""The command line of the parts, made from their classes: an option that chooses one, and the options of all."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from brittle.cli.described import Described, load_descriptions
from brittle.cli.imported import import_object
from brittle.cli.options import suggesting
from brittle.cli.sections import SectionedCommand
from brittle.cli.signatures import Command, Values, offering, own_parameters, parameter
from brittle.common import parts as plugins
from brittle.common.errors import require
from brittle.common.parts import AFTER_NAME, Parameter, build_part, flag_of, name_of, parameters, refuse

METAVARS = {int: "N", float: "NUMBER", str: "TEXT", Path: "PATH", bool: None, list[str]: "TEXT"}
FAMILIES = "families"  # of a command that offers parts


@dataclass(frozen=True)
class Family:
    """The parts of a folder, of which one is chosen by its name, the `default` unless given.

    What they are and may be given is known before they are imported. A part of somebody else's is chosen by the name
    under which an installed package offers it, or as MODULE:CLASS.
    """

    noun: str
    room: str  # the folder
    kind: str  # their abstract class, which the folder exports
    default: str | None = None
    short: str = ""  # of the noun, for the option

    @property
    def name(self) -> str:
        return self.short or self.noun

    @property
    def flag(self) -> str:
        return flag_of(self.name)

    @property
    def offered(self) -> Described:
        """The parts that can be made from what is typed, with what may be."""
        return load_descriptions()[self.room]

    @property
    def parts(self) -> Mapping[str, type]:
        """The classes."""
        parts: Mapping[str, type] = import_module(f"brittle.{self.room}").PARTS
        return parts

    @property
    def base(self) -> type:
        base: type = getattr(import_module(f"brittle.{self.room}"), self.kind)
        return base

    @property
    def group(self) -> str:
        """Of entry points."""
        return f"brittle.{self.room}"

    @property
    def installed(self) -> list[str]:
        """The names that installed packages offer; brittle's own go first."""
        return [name for name in plugins.find_entry_points(self.group) if name not in self.offered]

    @property
    def words(self) -> str:
        """All names, for people."""
        own = (
            f"{name}:{options[AFTER_NAME].field.upper()}" if AFTER_NAME in options else name
            for name, options in self.offered.items()
        )
        return ", ".join([*own, *self.installed])

    def names(self) -> list[str]:
        """The same, for shells."""
        return [*self.offered, *self.installed]

    @property
    def options(self) -> dict[str, Any]:
        """What Typer is told of all options of all parts, by name."""
        return options_of(self.offered, f"Options of {self.flag}")

    @property
    def choice(self) -> Any:
        """What Typer is told of the option that chooses."""
        text = f"{self.words}, or your own as MODULE:CLASS."
        return Annotated[
            str | None, typer.Option(self.flag, metavar="WORD", help=text, autocompletion=suggesting(self.names))
        ]

    def refuse(self, word: str | None, given: Mapping[str, Any]) -> None:
        """What can be said against a choice before anything is imported."""
        if word is None:
            require(not given, f"{', '.join(map(flag_of, given))} needs {self.flag}")
        elif not self.is_foreign(word):
            name, rest = self.divided(word)
            refuse(self.offered[name], {**given, **rest}, f"the {self.noun} {word}")

    def chosen(self, word: str, given: Mapping[str, Any]) -> Any:
        """The part of that name with what was typed."""
        called = f"the {self.noun} {word}"
        if self.is_foreign(word):
            return build_part(self.foreign(word), given, called)
        name, rest = self.divided(word)
        return build_part(self.parts[name], {**given, **rest}, called)

    def divided(self, word: str) -> tuple[str, dict[str, Any]]:
        """The name of one of brittle's own, and what was typed behind it."""
        head, colon, tail = word.partition(":")
        known = head in self.offered
        require(known, f"{self.flag} is {word!r}; it must be one of {self.words}, or MODULE:CLASS")
        return head, {AFTER_NAME: tail} if colon else {}

    def is_foreign(self, word: str) -> bool:
        """Whether the word can only stand for a class that is not brittle's."""
        head, colon, _ = word.partition(":")
        return word in self.installed or (bool(colon) and AFTER_NAME not in self.offered.get(head, {}))

    def foreign(self, word: str) -> type:
        """A class of the user's own, or of an installed package."""
        found = plugins.load_entry_point(self.group, word) if word in self.installed else import_object(self.flag, word)
        good = isinstance(found, type) and issubclass(found, self.base) and is_dataclass(found)
        require(good, f"{self.flag} is {word!r}, which is no dataclass that extends {self.kind}")
        assert isinstance(found, type)
        return found


def get_part_name(part: Any) -> str:
    """The word that chooses a part."""
    behind = [getattr(part, each.field) for each in parameters(type(part)).values() if each.flag == AFTER_NAME]
    return ":".join([name_of(type(part)), *behind])


def options_of(parts: Described, section: str) -> dict[str, Any]:
    """The options of several parts; one that several have is said once, with those who have it."""
    holders: dict[str, dict[str, Parameter]] = {}
    for word, options in parts.items():
        for name, each in options.items():
            if each.flag != AFTER_NAME:
                holders.setdefault(name, {})[word] = each
    return {
        name: _option(next(iter(held.values())), _help(held, len(parts)), section) for name, held in holders.items()
    }


def _option(each: Parameter, text: str, section: str) -> Any:
    metavar = "WORD" if each.words else METAVARS[each.kind]
    offered = suggesting(lambda: each.words) if each.words else None
    shown = typer.Option(each.flag, help=text, metavar=metavar, rich_help_panel=section, autocompletion=offered)
    return Annotated[each.kind | None, shown]


def _help(holders: Mapping[str, Parameter], parts: int) -> str:
    """flow, lazy: of the weights (float64, float32). The names are left out where every part has the option."""
    texts: dict[str, list[str]] = {}
    for word, each in holders.items():
        text = f"{each.help.removesuffix('.')} ({', '.join(each.words)})." if each.words else each.help
        texts.setdefault(text, []).append(word)
    if len(texts) == 1 and len(holders) == parts:
        return next(iter(texts))
    return " ".join(f"{', '.join(words)}: {_lowered(text)}" for text, words in texts.items())


def _lowered(text: str) -> str:
    return text[0].lower() + text[1:] if text[1:2].islower() else text


@dataclass(frozen=True)
class Foreign:
    """A part of the user's own and what was typed for it; stands for the word that chose it."""

    word: str
    given: Values


def with_part(family: Family) -> Callable[[Command], Command]:
    """Gives a command the options of a family; it receives the part that they make under the family's name, or None."""

    def decorate(command: Command) -> Command:
        own = own_parameters(command)
        own.pop(family.name)
        options = {name: parameter(name, kind) for name, kind in family.options.items()}
        twice = set(own) & set(options)
        assert not twice, f"{family.flag} has options that the command has too: {twice}"

        def arguments(values: Values) -> Values:
            given = take_values(values, options)
            return {**values, family.name: _made(family, values[family.name], given)}

        chooser = {family.name: parameter(family.name, family.choice, family.default)}
        wrapped = offering(command, {**chooser, **options, **own}, arguments)
        setattr(wrapped, FAMILIES, (family, *getattr(command, FAMILIES, ())))
        return wrapped

    return decorate


def collect_typed(values: Values, names: Iterable[str]) -> Values:
    """What was typed for these options."""
    found = {name: values[name] for name in names}
    return {name: value for name, value in found.items() if value is not None and value != []}


def take_values(values: Values, names: Iterable[str]) -> Values:
    """The same, taken out of the values."""
    found = collect_typed(values, names)
    for name in names:
        del values[name]
    return found


def _made(family: Family, word: str | Foreign | None, given: Values) -> Any:
    if isinstance(word, Foreign):
        return family.chosen(word.word, {**given, **word.given})
    return None if word is None else family.chosen(word, given)


class PartsCommand(SectionedCommand):
    """Lists the options of each family under a heading, and offers those of a class that is not brittle's own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        families: tuple[Family, ...] = getattr(self.callback, FAMILIES, ())
        foreign = {}
        for family in families:
            word = _word_after(family.flag, args)
            if word is not None and family.is_foreign(word):
                foreign[family.name] = word, self._offer(family, word)
        rest: list[str] = super().parse_args(ctx, args)
        for family in families:
            if family.name not in foreign:
                family.refuse(ctx.params[family.name], collect_typed(ctx.params, family.options))
        for name, (word, names) in foreign.items():
            ctx.params[name] = Foreign(word, take_values(ctx.params, names))
        return rest

    def _offer(self, family: Family, word: str) -> list[str]:
        """Take the options of a foreign part in, in the place of the family's own of the same names."""
        options = options_of({word: parameters(family.foreign(word))}, f"Options of {word}")
        kept = [each for each in self.params if each.name not in options or each.name not in family.options]
        twice = {each.name for each in kept} & set(options)
        require(not twice, f"{family.flag} {word} has the option {', '.join(map(flag_of, twice))}, as the command has")
        self.params = kept + _click_options(options)
        return list(options)


def _word_after(flag: str, arguments: list[str]) -> str | None:
    for place, each in enumerate(arguments):
        if each.startswith(f"{flag}="):
            return each.removeprefix(f"{flag}=")
        if each == flag and place + 1 < len(arguments):
            return arguments[place + 1]
    return None


def _click_options(options: Mapping[str, Any]) -> list[Any]:
    """What Typer makes of these options."""
    app = typer.Typer(add_completion=False)
    app.command()(offering(lambda: None, {name: parameter(name, kind) for name, kind in options.items()}, dict))
    return list(typer.main.get_command(app).params)
