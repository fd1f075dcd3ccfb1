"""What a user sees first: `import brittle`, its rooms, its one function, and their types."""

import inspect
import subprocess
import sys
from importlib.resources import files

import pytest

import brittle

HELP = "import sys, brittle, brittle.cli; brittle.cli.main(['--help']); print('torch' in sys.modules, file=sys.stderr)"


def test_help_does_not_wait_for_torch():
    seen = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    assert seen.stderr.split() == ["False"]


def test_audit_is_a_function_whatever_is_imported():
    import brittle.auditing
    import brittle.auditing.run

    assert inspect.isfunction(brittle.audit)
    assert brittle.audit is brittle.auditing.audit


def test_every_room_is_there_when_it_is_named():
    assert [getattr(brittle, room).__name__ for room in brittle.ROOMS] == [f"brittle.{room}" for room in brittle.ROOMS]
    assert {*brittle.ROOMS, "audit", "testing", "InputError"} <= set(dir(brittle))
    assert brittle.testing.assert_robust.__doc__
    with pytest.raises(AttributeError, match="no attribute 'atacks'"):
        brittle.atacks  # noqa: B018


def test_type_checkers_are_told_that_the_package_is_typed():
    assert (files(brittle) / "py.typed").is_file()
