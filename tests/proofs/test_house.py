"""The checker stands alone, and is short."""

import ast
from pathlib import Path

FILES = sorted((Path(__file__).parents[2] / "proofcheck").glob("*.py"))
ALLOWED = {"argparse", "collections", "dataclasses", "functools", "hashlib", "itertools", "numpy", "pathlib"}
ALLOWED |= {"proofcheck", "scipy", "sys", "time", "typing", "zipfile"}


def test_it_imports_nothing_of_brittle():
    names = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                names.add((node.module or "").split(".")[0])
    assert names <= ALLOWED


def lines_of_code(text):
    """Without blank lines, comments and docstrings."""
    silent = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            silent |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), start=1)
    spoken = ((number, line.strip()) for number, line in lines)
    return sum(bool(line) and not line.startswith("#") and number not in silent for number, line in spoken)


def test_it_is_short():
    assert sum(lines_of_code(path.read_text()) for path in FILES) <= 400
