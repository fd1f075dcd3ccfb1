"""The rules of the house that a machine can check: who imports whom, who prints, who draws."""

import ast
from pathlib import Path

import pytest
from hypothesis import settings

PACKAGE = Path(__file__).parent.parent / "brittle"
ORDER = [
    "common",
    "geometry",
    "data",
    "networks",
    "attacks",
    "training",
    "kkt",
    "certificates",
    "proving",
    "truth",
    "theorems",
    "auditing",
    "experiments",
    "report",
    "explorer",
    "cli",
]
FILES = sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Dotted names of everything that a file imports, at any depth."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where a name comes from"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


def forbidden(importer: str, imported: str) -> bool:
    if importer == imported:
        return False
    beside = {importer, imported} == {"data", "networks"}
    return beside or ORDER.index(imported) > ORDER.index(importer)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_data_walk_through_the_house_in_one_direction(path: Path) -> None:
    if room(path) not in ORDER:
        return
    rooms = {name.split(".")[1] for name in imports(path) if name.startswith("brittle.")} & set(ORDER)
    wrong = {other for other in rooms if forbidden(room(path), other)}
    assert not wrong, f"{room(path)} may not import {wrong}"


def test_the_order_knows_every_folder() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert folders <= set(ORDER)


def test_a_forbidden_import_would_be_seen() -> None:
    assert forbidden("data", "networks")
    assert forbidden("networks", "data")
    assert forbidden("attacks", "report")
    assert not forbidden("report", "attacks")


def test_only_the_report_draws() -> None:
    drawing = {room(path) for path in FILES if any(name.startswith("matplotlib") for name in imports(path))}
    assert drawing <= {"report"}


def test_only_the_outer_rooms_print() -> None:
    printing = {
        room(path)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printing <= {"cli", "report"}


def test_no_test_can_wait_for_ever(pytestconfig: pytest.Config) -> None:
    """A signal ends it and, where native code lets none through, a thread in C; slow hypotheses are no failures."""
    assert 0 < float(pytestconfig.getini("timeout")) < float(pytestconfig.getini("faulthandler_timeout"))
    assert pytestconfig.getini("faulthandler_exit_on_timeout")
    assert settings().deadline is None
