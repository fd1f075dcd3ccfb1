"""The checkers stand alone, and are short."""

import ast
from pathlib import Path

import pytest


def files(package):
    return sorted((Path(__file__).parents[2] / package).glob("*.py"))


CHECKERS = {"proofcheck": 400, "margincheck": 200}  # with the lines that each may have
ALLOWED = {"argparse", "collections", "dataclasses", "functools", "hashlib", "itertools", "numpy", "pathlib"}
ALLOWED |= {"margincheck", "math", "proofcheck", "scipy", "sys", "time", "typing", "zipfile"}


@pytest.mark.parametrize("package", CHECKERS)
def test_it_imports_nothing_of_brittle(package):
    names = set()
    for path in files(package):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                names.add((node.module or "").split(".")[0])
    assert names <= ALLOWED
    assert package == "margincheck" or "margincheck" not in names


def lines_of_code(text):
    """Without blank lines, comments and docstrings."""
    silent = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            silent |= set(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in silent for number, line in lines
    )


@pytest.mark.parametrize("package", CHECKERS)
def test_it_is_short(package):
    assert sum(lines_of_code(path.read_text()) for path in files(package)) <= CHECKERS[package]
