"""What a part says of itself: its name, and of every field what a person is to be told and may type."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from brittle.common.errors import InputError, require
from brittle.common.kinds import require_kind

THEOREMS = "brittle.theorems"  # the group of those who offer theorems, which are named by their ids


@cache
def find_entry_points(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    """By name, all that are called so; nothing is imported."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for each in entry_points(group=group):
        found[each.name] = (*found.get(each.name, ()), each)
    return found


def load_entry_point(group: str, name: str) -> Any:
    """What the entry point stands for; whatever goes wrong there is one line that names it."""
    points = find_entry_points(group)[name]
    places = " and ".join(sorted({each.value for each in points}))
    require(len({each.value for each in points}) == 1, f"two plug-ins of {group} are called {name!r}: {places}")
    try:
        return points[0].load()
    except Exception as error:
        raise InputError(
            f"the plug-in {name!r} of {group} ({places}) is broken: {describe_foreign_error(error)}"
        ) from None


def describe_foreign_error(error: BaseException) -> str:
    """An error of somebody else's code, by its kind and words."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


KEY = "option"  # of a field's metadata
AFTER_NAME = ":"  # the flag of a field that is typed behind the part's own name, as in foolbox:DDNAttack
TYPED = (int, float, str, bool, Path)
Part = TypeVar("Part")
Given = Mapping[str, Any]  # what was typed, by the names of the options


@dataclass(frozen=True)
class Option:
    """What the command line has to know of a field.

    `help` is for people. `flag` is --name-of-the-field unless given; two with a slash are a switch. `kind` is the type
    of what is typed, the field's own unless given; `read` makes the field's value from it and from all that is given.
    `words` are all that may be typed, with what they mean; `parts` are those that the field itself may be, by name,
    and their options follow. `check(name, value)` refuses bad values, wherever they come from.
    """

    help: str
    flag: str = ""
    kind: Any = None
    read: Callable[[Any, Given], Any] | None = None
    words: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, type] = field(default_factory=dict)
    check: Callable[[str, Any], None] | None = None


@dataclass(frozen=True)
class NotAnOption:
    """A field that has no option; `help` says what it is, `reason` where its value comes from instead."""

    help: str
    reason: str


def option(help: str, flag: str = "", **further: Any) -> dict[str, Option]:
    """The metadata of a field that is an option: see `Option`."""
    return {KEY: Option(help, flag, **further)}


def not_an_option(help: str, reason: str) -> dict[str, NotAnOption]:
    """The metadata of a field that cannot be typed."""
    return {KEY: NotAnOption(help, reason)}


@dataclass(frozen=True)
class Parameter:
    """An option of a part: of its field `field`, or of a part that this field holds (`inside`).

    `check` refuses bad values of the field, and sees what was typed where that is the value itself.
    """

    field: str
    flag: str
    help: str
    kind: Any
    words: Mapping[str, Any]
    required: bool
    read: Callable[[Any, Given], Any] | None
    inside: str | None = None
    check: Callable[[str, Any], None] | None = None

    @property
    def name(self) -> str:
        """--random-means/--orthogonal-means is random_means."""
        return self.flag.partition("/")[0].removeprefix("--").replace("-", "_")

    def refuse(self, typed: Any) -> None:
        """What can be said against it without knowing anything else."""
        if self.words:
            require(typed in self.words, f"{self.flag} is {typed!r}; it must be one of {', '.join(self.words)}")
        elif self.check is not None and self.read is None:
            self.check(self.field, typed)

    def value(self, typed: Any, given: Given) -> Any:
        """The field's value."""
        self.refuse(typed)
        typed = self.words[typed] if self.words else typed
        return typed if self.read is None else self.read(typed, given)


def name_of(part: type) -> str:
    """What the command line calls a part; a class without a name goes by its own."""
    return getattr(part, "name", part.__name__)


def by_name(parts: Iterable[type[Part]]) -> dict[str, type[Part]]:
    """The parts of a folder."""
    return {name_of(part): part for part in parts}


def complete(part: type) -> bool:
    """Whether the part can be made from what is typed."""
    asked = {each.field for each in parameters(part).values()}
    needed = {each.name for each in fields(part) if each.default is MISSING and each.default_factory is MISSING}
    return needed <= asked


def flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def parameters(part: type) -> dict[str, Parameter]:
    """All that can be typed for a part, by name; a field without metadata is asked for if its type can be typed."""
    found: dict[str, Parameter] = {}
    for each in fields(part):
        said = each.metadata.get(KEY, Option(""))
        if isinstance(said, Option):
            found |= _parameters(part, each, said)
    return found


def _parameters(part: type, each: Field[Any], said: Option) -> dict[str, Parameter]:
    kind, words = _kind(_hints(part).get(each.name))
    if said.words or said.parts:
        kind, words = str, said.words or said.parts
    kind = said.kind or kind
    if kind is None:
        return {}
    required = each.default is MISSING and each.default_factory is MISSING
    flag = flag_of(each.name)
    flag = said.flag or (f"{flag}/--no{flag[1:]}" if kind is bool else flag)
    own = Parameter(each.name, flag, said.help, kind, words, required, said.read, check=said.check)
    return {own.name: own} | {
        name: Parameter(**(vars(inner) | {"inside": each.name}))
        for nested in said.parts.values()
        for name, inner in parameters(nested).items()
    }


@cache
def _hints(part: type) -> dict[str, Any]:
    try:
        return get_type_hints(part)
    except NameError:  # names that only a type checker imports
        return {}


def _kind(hint: Any) -> tuple[Any, Mapping[str, Any]]:
    """The type that is typed for a field of this type, None if it cannot be, and the words that are all there is."""
    kinds = [each for each in _alternatives(hint) if each is not NoneType]
    words = _words(hint)
    if words and len(kinds) == 1:
        return str, {word: word for word in words}
    kinds = [each for each in kinds if get_origin(each) is not Literal]
    if set(kinds) == {str, Path}:
        return Path, {}
    return (kinds[0], {}) if len(kinds) == 1 and kinds[0] in TYPED else (None, {})


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _words(hint: Any) -> tuple[Any, ...]:
    return tuple(word for each in _alternatives(hint) if get_origin(each) is Literal for word in get_args(each))


def check_fields(part: Any) -> None:
    """Refuse what the field's type does not allow, words that it does not list, and what its own check refuses."""
    kind: type = type(part)
    for each in fields(part):
        value, hint = getattr(part, each.name), _hints(kind).get(each.name, Any)
        said = each.metadata.get(KEY)
        check = said.check if isinstance(said, Option) else None
        if check is None or value is None:
            require_kind(each.name, value, hint)
        if value is None:
            continue
        others = tuple(kind for kind in _alternatives(hint) if isinstance(kind, type))
        words = _words(hint)
        if words and not isinstance(value, others):
            listed = [*map(repr, words), *(("True", "False") if bool in others else ())]
            require(value in words, f"{each.name} is {value!r}; it must be one of {', '.join(listed)}")
        if check is not None:
            check(each.name, value)


def refuse(known: Mapping[str, Parameter], given: Given, called: str) -> None:
    """Say what does not belong to a part with these options, what is missing, and what cannot be right."""
    taken = ", ".join(each.flag for each in known.values() if each.flag != AFTER_NAME) or "no options"
    for name in given:
        require(name in known, f"{flag_of(name)} does not belong to {called}, which takes {taken}")
    for name, each in known.items():
        needed = each.required and each.inside is None
        require(name in given or not needed, f"{called} needs {each.flag}")
        if name in given:
            each.refuse(given[name])


def build_part(part: type[Part], given: Given, called: str) -> Part:
    """The part with what was typed; one line if something does not belong to it or is missing."""
    known = parameters(part)
    refuse(known, given, called)
    own = {name: each for name, each in known.items() if each.inside is None}
    values = {each.field: each.value(given[name], given) for name, each in own.items() if name in given}
    for held in fields(part):  # type: ignore[arg-type]
        inner = {name: typed for name, typed in given.items() if known[name].inside == held.name}
        if inner or isinstance(values.get(held.name), type):
            values[held.name] = _held(held, values.get(held.name), inner, called)
    return part(**values)


def _held(field: Field[Any], kind: type | None, given: Given, called: str) -> Any:
    """The part in a field: of that kind, the usual one unless named, and as the usual one is where nothing is given."""
    factory = field.default_factory
    usual: Any = field.default if factory is MISSING else factory()
    kind = type(usual) if kind is None else kind
    typed = {parameters(kind)[name].field for name in given if name in parameters(kind)}
    kept = {each.name for each in fields(kind)} & {each.name for each in fields(usual)} - typed
    return replace(build_part(kind, given, called), **{name: getattr(usual, name) for name in kept})
