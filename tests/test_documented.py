"""Everything public says what it is: classes, functions, and every field by its name.

What a room exports is looked at in all rooms, and in the thorough ones whatever their modules define, verbs included.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import brittle
from brittle.common.parts import KEY

THOROUGH = ("theorems",)
ROOMS = ("geometry", *brittle.ROOMS, "report.plot", "testing")


def exported(room: str) -> Iterator[tuple[str, Any]]:
    """Classes and functions that a room offers."""
    module = importlib.import_module(f"brittle.{room}")
    for name in getattr(module, "__all__", ()):
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield f"{room}.{name}", thing


def defined(room: str) -> Iterator[tuple[str, Any]]:
    """Classes and functions of a room, where they are defined."""
    package = importlib.import_module(f"brittle.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for name, thing in vars(importlib.import_module(module.name)).items():
            documented = inspect.isclass(thing) or inspect.isfunction(thing)
            if documented and thing.__module__ == module.name and not name.startswith("_"):
                yield f"{module.name}.{name}", thing


EXPORTED = {name: thing for room in ROOMS for name, thing in exported(room)}
DEFINED = {name: thing for room in THOROUGH for name, thing in defined(room)}
PUBLIC = EXPORTED | DEFINED


def classes(things: dict[str, Any]) -> dict[str, type]:
    return {name: thing for name, thing in things.items() if inspect.isclass(thing)}


def own_bases(kind: type) -> list[type]:
    return [base for base in kind.__mro__ if base.__module__.startswith("brittle.")]


def sentences(kind: type) -> str:
    """What a class and those that it is made of say of themselves."""
    return "\n".join(base.__dict__.get("__doc__") or "" for base in own_bases(kind))


def comments(kind: type) -> set[str]:
    """The fields with a comment on their line."""
    lines = [line for base in own_bases(kind) for line in inspect.getsource(base).splitlines()]
    return {found[1] for line in lines if (found := re.match(r"    (\w+): .*  # \S", line))}


def helped(kind: type) -> set[str]:
    """The fields whose metadata say what they are."""
    said = {field.name: field.metadata.get(KEY) for field in fields(kind)} if is_dataclass(kind) else {}
    return {name for name, option in said.items() if option is not None and option.help}


def names_of_fields(kind: Any) -> list[str]:
    return [field.name for field in fields(kind)] if is_dataclass(kind) else [*getattr(kind, "_fields", ())]


@pytest.mark.parametrize("name", PUBLIC)
def test_it_says_what_it_is(name):
    thing = PUBLIC[name]
    assert thing.__doc__
    assert not thing.__doc__.startswith(f"{thing.__name__}("), "that is what dataclass writes by itself"


@pytest.mark.parametrize("name", list(classes(EXPORTED)))
def test_every_field_is_explained(name):
    kind = EXPORTED[name]
    words = {*re.findall(r"\w+", sentences(kind)), *comments(kind), *helped(kind)}
    assert [field for field in names_of_fields(kind) if field not in words] == []


@pytest.mark.parametrize("name", classes(DEFINED))
def test_every_field_and_every_verb_of_a_thorough_room_is_explained(name):
    kind = DEFINED[name]
    assert [field for field in names_of_fields(kind) if f"`{field}`" not in sentences(kind)] == []
    verbs = {verb: part for verb, part in vars(kind).items() if not verb.startswith("_")}
    spoken = {verb for verb, part in verbs.items() if callable(part) or hasattr(part, "__get__")}
    assert [verb for verb in spoken if not inspect.getdoc(getattr(kind, verb))] == []


def test_an_unexplained_field_would_be_seen():
    assert names_of_fields(brittle.geometry.LeastDistance) == ["point", "lower"]
    assert "noise" in comments(brittle.data.DataInfo)
    assert "X_test" not in comments(brittle.data.Data)
    assert helped(brittle.data.Sphere) == {"dim", "radius"}
    assert not helped(brittle.data.Data)
