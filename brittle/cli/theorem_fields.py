"""What is typed for the fields of a theorem: one value each (--set), or several to go through (--sweep)."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from brittle.common.errors import InputError, require
from brittle.common.parts import parameters
from brittle.theorems import Theorem

SWITCH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
NEEDED = {int: "a whole number", float: "a number", bool: "true or false"}


def configure_theorem(theorem: Theorem, settings: list[str]) -> Theorem:
    """The theorem with NAME=VALUE fields changed."""
    return _changed(theorem, {name: _value(theorem, "--set", name, text) for name, text in _pairs("--set", settings)})


def axes(theorem: Theorem, sweeps: list[str]) -> dict[str, list[Any]]:
    """The values to go through, by field, from NAME=VALUE,VALUE,..."""
    found: dict[str, list[Any]] = {}
    for name, text in _pairs("--sweep", sweeps):
        require(name not in found, f"--sweep {name} is given twice: name all its values in one")
        several = isinstance(_current(theorem, name), tuple)
        require(not several, f"--sweep {name}: this field is a list already; change it with --set {name}=...")
        found[name] = [_value(theorem, "--sweep", name, part) for part in text.split(",")]
    return found


def facts(told: list[str]) -> dict[str, float]:
    """Numbers by their names, from NAME=NUMBER."""
    return {name: _number("--fact", name, text) for name, text in _pairs("--fact", told)}


def _pairs(flag: str, texts: list[str]) -> list[tuple[str, str]]:
    for text in texts:
        require(all(text.partition("=")), f"{flag} {text!r} is not of the form NAME=VALUE")
    return [(name, value) for name, _, value in (text.partition("=") for text in texts)]


def _current(theorem: Theorem, name: str) -> Any:
    assert is_dataclass(theorem)
    known = [field.name for field in fields(theorem)]
    require(name in known, f"{theorem.id} has no field {name!r}; it has {', '.join(known) or 'none'}")
    return getattr(theorem, name)


def _changed(theorem: Theorem, changes: dict[str, Any]) -> Theorem:
    assert is_dataclass(theorem)
    return replace(theorem, **changes)


def _value(theorem: Theorem, flag: str, name: str, text: str) -> Any:
    current = _current(theorem, name)
    if isinstance(current, tuple):
        kind = type(current[0])
        return tuple(_typed(kind, flag, name, part, current[0]) for part in text.split(","))
    known = parameters(type(theorem)).get(name)
    kind = type(current) if current is not None or known is None else known.kind
    return _typed(kind, flag, name, text, current)


def _typed(kind: type, flag: str, name: str, text: str, current: Any) -> Any:
    if kind is bool:
        require(text.lower() in SWITCH, f"{flag} {name}={text}: {NEEDED[bool]} is needed")
        return SWITCH[text.lower()]
    require(kind in NEEDED, f"{flag} {name}: a {kind.__name__} cannot be typed")
    number = _number(flag, name, text, NEEDED[kind], current)
    require(kind is float or number.is_integer(), _needed(flag, name, text, NEEDED[kind], current))
    return kind(number)


def _number(flag: str, name: str, text: str, needed: str = "a number", current: Any = None) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(_needed(flag, name, text, needed, current)) from None


def _needed(flag: str, name: str, text: str, needed: str, current: Any) -> str:
    return f"{flag} {name}={text}: {needed} is needed" + ("" if current is None else f", such as {current}")
