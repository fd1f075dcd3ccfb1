"""What the command line has to know of parts and theorems before it imports them: PyTorch takes seconds to load.

`parts.json` and `theorems.json` are made from the classes by `python -m brittle.cli.described`; a test says when it is
time to.
"""

import json
from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brittle.common import errors
from brittle.common.files import write_json
from brittle.common.parts import Parameter, complete, parameters

if TYPE_CHECKING:
    from brittle.theorems import Theorem

STORED = Path(__file__).with_name("parts.json")
STORED_THEOREMS = Path(__file__).with_name("theorems.json")
ROOMS = ("data", "networks", "attacks", "training", "certificates", "auditing")
KINDS: dict[str, Any] = {"int": int, "float": float, "str": str, "bool": bool, "Path": Path, "list[str]": list[str]}

Described = dict[str, dict[str, Parameter]]  # the options of every part by name


def describe_parts(parts: Mapping[str, type]) -> Described:
    """The parts that can be made from what is typed, from their classes."""
    return {name: parameters(part) for name, part in parts.items() if complete(part)}


@cache
def load_descriptions() -> dict[str, Described]:
    """The same of every room, without its classes."""
    content = json.loads(STORED.read_text())
    return {
        room: {part: {name: _parameter(each) for name, each in options.items()} for part, options in parts.items()}
        for room, parts in content.items()
    }


@cache
def load_theorem_descriptions() -> list[dict[str, Any]]:
    """What `brittle theorems` says of every theorem of the papers, without its class."""
    rows: list[dict[str, Any]] = json.loads(STORED_THEOREMS.read_text())
    return rows


def theorem_row(theorem: "Theorem") -> dict[str, Any]:
    """The same of one."""
    names = ("id", "claim", "paper", "applies_to", "flaw", "repaired")
    return {**{name: getattr(theorem, name) for name in names}, "solve_for": list(theorem.unknowns)}


def theorem_rows() -> list[dict[str, Any]]:
    """What `theorems.json` has to hold."""
    return [theorem_row(theorem) for theorem in import_module("brittle.theorems").THEOREMS.values()]


def content() -> dict[str, Any]:
    """What `parts.json` has to hold."""
    return {
        room: {
            part: {name: _words(each) for name, each in options.items()}
            for part, options in describe_parts(import_module(f"brittle.{room}").PARTS).items()
        }
        for room in ROOMS
    }


def _words(each: Parameter) -> dict[str, Any]:
    """All but what is code; a check of `common` goes by its name."""
    (kind,) = (name for name, known in KINDS.items() if known == each.kind)
    said = {"field": each.field, "flag": each.flag, "help": each.help, "kind": kind, "required": each.required}
    return said | {
        "words": list(each.words),
        "inside": each.inside,
        "check": None if each.read is not None else _check(each.check),
    }


def _check(check: Any) -> list[Any] | None:
    """The name of a check of `common`, with what it is to be called with; others wait for the class."""
    plain = check.func if isinstance(check, partial) else check
    known = plain is not None and getattr(errors, plain.__name__, None) is plain
    return [plain.__name__, check.keywords if isinstance(check, partial) else {}] if known else None


def _parameter(said: dict[str, Any]) -> Parameter:
    name, options = said["check"] or ("", {})
    check = partial(getattr(errors, name), **options) if name else None
    made = {"kind": KINDS[said["kind"]], "words": {word: word for word in said["words"]}, "check": check}
    return Parameter(**{**said, **made}, read=None)


if __name__ == "__main__":
    write_json(STORED, content())
    write_json(STORED_THEOREMS, theorem_rows())
