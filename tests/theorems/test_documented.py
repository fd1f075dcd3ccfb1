"""Everything public in the room says what it is: classes, functions, and every field by its name."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

import brittle.theorems


def public() -> Iterator[tuple[str, Any]]:
    """Classes and functions of the room, where they are defined."""
    for module in pkgutil.walk_packages(brittle.theorems.__path__, "brittle.theorems."):
        for name, thing in vars(importlib.import_module(module.name)).items():
            documented = inspect.isclass(thing) or inspect.isfunction(thing)
            if documented and thing.__module__ == module.name and not name.startswith("_"):
                yield f"{module.name}.{name}", thing


PUBLIC = dict(public())
CLASSES = {name: thing for name, thing in PUBLIC.items() if inspect.isclass(thing)}


def sentences(kind: type) -> str:
    """What a class and those that it is made of say of themselves."""
    return "\n".join(base.__dict__.get("__doc__") or "" for base in kind.__mro__)


@pytest.mark.parametrize("name", PUBLIC)
def test_it_says_what_it_is(name):
    assert PUBLIC[name].__doc__
    assert not PUBLIC[name].__doc__.startswith(f"{PUBLIC[name].__name__}("), "that is what dataclass writes by itself"


@pytest.mark.parametrize("name", CLASSES)
def test_every_field_and_every_verb_is_explained(name):
    kind = CLASSES[name]
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    assert [field for field in names if f"`{field}`" not in sentences(kind)] == []
    verbs = {verb: part for verb, part in vars(kind).items() if not verb.startswith("_")}
    spoken = {verb for verb, part in verbs.items() if callable(part) or hasattr(part, "__get__")}
    assert [verb for verb in spoken if not inspect.getdoc(getattr(kind, verb))] == []
