"""To add a part: one file, one export, one row in cases.py. This fails where the row is missing."""

import inspect
from importlib import import_module

import pytest

import brittle
from tests.cases import TABLES


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
