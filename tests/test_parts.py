"""To add a part: one file, and its class in the folder's `PARTS`; the command line follows by itself.

These fail where a part is not in `PARTS`, where a field is without help or without an option, and where the row in
cases.py is missing.
"""

import inspect
import json
from dataclasses import dataclass, field, fields
from importlib import import_module

import pytest

import brittle
from brittle.attacks import Attack
from brittle.auditing import Remedy
from brittle.certificates import Certificate
from brittle.cli import described
from brittle.cli.parts import Family
from brittle.common.parts import KEY, NotAnOption, Option, by_name, option, parameters
from brittle.data import Setting
from brittle.networks import Initialisation
from brittle.training import GradientDescent, Trainer
from tests.cases import TABLES

BASES = {
    "data": Setting,
    "networks": Initialisation,
    "attacks": Attack,
    "training": Trainer,
    "certificates": Certificate,
    "auditing": Remedy,
}
FAMILIES = {room: Family(room, room, base.__name__) for room, base in BASES.items()}
PARTS = [part for family in FAMILIES.values() for part in family.parts.values()]


def exported_parts(room: str) -> set[type]:
    """Concrete classes that a folder exports and that follow one of the house's abstract classes."""
    module = import_module(f"brittle.{room}")
    classes = [value for name in module.__all__ if inspect.isclass(value := getattr(module, name))]
    return {part for part in classes if not inspect.isabstract(part) and _follows_an_abstract_class(part)}


def _follows_an_abstract_class(part: type) -> bool:
    return any(inspect.isabstract(base) and base.__module__.startswith("brittle.") for base in part.__mro__[1:])


@pytest.mark.parametrize("room", [room for room in brittle.ROOMS if room != "report"])
def test_every_exported_part_has_a_row(room):
    rows = {type(part) for table in TABLES for _, part in table}
    missing = {part.__name__ for part in exported_parts(room) - rows}
    assert not missing, f"add a row to tests/cases.py for {sorted(missing)}"


def test_rows_have_names_of_their_own():
    for table in TABLES:
        names = [name for name, _ in table]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("room", BASES)
def test_every_exported_part_can_be_chosen(room):
    exported = {part for part in exported_parts(room) if issubclass(part, BASES[room])}
    parts = FAMILIES[room].parts
    assert exported <= set(parts.values()), "add it to the folder's PARTS"
    assert all("name" in vars(part) for part in parts.values()), "a part has a name of its own"


def unexplained(part: type) -> list[str]:
    """The fields that have no help, or neither an option nor a reason why not."""
    said = {each.name: each.metadata.get(KEY) for each in fields(part)}
    asked = {each.field for each in parameters(part).values()}
    reasons = {name for name, word in said.items() if isinstance(word, NotAnOption) and word.reason}
    return [name for name, word in said.items() if not (word and word.help and name in asked | reasons)]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.__module__}.{part.__name__}")
def test_every_field_of_a_part_has_help_and_an_option(part):
    assert unexplained(part) == []


def test_a_field_without_help_or_option_would_be_seen():
    @dataclass(frozen=True)
    class Momentum(GradientDescent):
        momentum: float = 0.9
        explained: float = field(default=1.0, metadata=option("Something."))
        unreadable: complex = field(default=1j, metadata=option("What nobody can type."))

    assert unexplained(Momentum) == ["momentum", "unreadable"]


@pytest.mark.parametrize("room", BASES)
def test_an_option_means_the_same_type_in_all_parts(room):
    kinds: dict[str, set] = {}
    for part in FAMILIES[room].parts.values():
        for name, each in parameters(part).items():
            kinds.setdefault(name, set()).add((each.flag, each.kind, tuple(each.words)))
    assert {name: kind for name, kind in kinds.items() if len(kind) > 1} == {}


def test_what_the_command_line_knows_of_the_parts_is_what_they_are():
    """It is written down, so that a mistake is told of without importing them."""
    advice = "run python -m brittle.cli.described"
    assert json.loads(described.STORED.read_text()) == json.loads(json.dumps(described.content())), advice
    assert described.load_theorem_descriptions() == json.loads(json.dumps(described.theorem_rows())), advice
    assert all(FAMILIES[room].base is base for room, base in BASES.items())


def test_the_defaults_pass_the_checks_of_their_fields():
    """So that a check is one of the field's own kind; None stands for what is not given."""
    for part in PARTS:
        for each in fields(part):
            said = each.metadata.get(KEY)
            if isinstance(said, Option) and said.check is not None and isinstance(each.default, int | float):
                said.check(each.name, each.default)
                with pytest.raises(brittle.InputError, match=f"{each.name} is -1"):
                    said.check(each.name, -1)


def test_a_new_part_is_on_the_command_line_by_being_in_the_folder():
    @dataclass(frozen=True)
    class Momentum(GradientDescent):
        name = "momentum"
        momentum: float = field(default=0.9, metadata=option("Share of the last step that is kept."))

    class Regimes(Family):
        parts = FAMILIES["training"].parts | by_name((Momentum,))
        offered = described.describe_parts(parts)

    family = Regimes("regime", "training", "Trainer")
    assert family.words.endswith("lipschitz-margin, momentum")
    (shown,) = family.options["momentum"].__metadata__
    assert (shown.default, shown.help) == ("--momentum", "momentum: share of the last step that is kept.")
    assert family.chosen("momentum", {"momentum": 0.5, "rate": 2.0}) == Momentum(momentum=0.5, rate=2.0)
    with pytest.raises(brittle.InputError, match="--momentum does not belong to the regime flow, which takes --until"):
        family.chosen("flow", {"momentum": 0.5})
