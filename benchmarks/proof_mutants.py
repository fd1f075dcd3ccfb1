"""Mutants of what proofs rest on: does a test notice when a checker is wrong?

    python -m benchmarks.proof_mutants --mutants 100 --seed 0 --json -

As benchmarks.mutants, which see, with every function of the files below: the two checkers, the checker of margins
inside brittle, and what judges the dual points of certificates with rounding. Each group has tests of its own. A mutant
that makes a check stricter can survive, because every genuine proof in the tests has room: `--only` and the line say
which; those that change nothing at all are in `EQUIVALENT`.
"""

import argparse
import ast
import contextlib
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.mutants import HOME, Hunt, Mutant, changes, functions, report, settled, spared


class Group(NamedTuple):
    """Files, and the tests that are to notice."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


GROUPS = {
    "proofcheck": Group(
        tuple(f"proofcheck/{name}.py" for name in ("balls", "network", "lagrangian", "proof")),
        ("tests/proofs/test_balls.py", "tests/proofs/test_lagrangian.py", "tests/proofs/test_forged.py"),
    ),
    "margincheck": Group(
        tuple(f"margincheck/{name}.py" for name in ("leaf", "cover", "proof")),
        ("tests/proofs/test_margincheck.py",),
    ),
    "margin": Group(
        ("brittle/margin/any_width/checker.py", "brittle/margin/any_width/cover.py"),
        ("tests/margin/test_margin_checker.py",),
    ),
    "certificates": Group(
        tuple(f"brittle/certificates/{name}.py" for name in ("judgement", "dual_bound", "linear_floors", "cholesky")),
        ("tests/certificates/test_rounding_terms.py", "tests/certificates/test_soundness.py"),
    ),
    "layered": Group(
        tuple(f"brittle/certificates/deep_dual/{name}.py" for name in ("judge", "definite")),
        ("tests/certificates/test_layered_terms.py", "tests/certificates/test_deep_dual.py"),
    ),
    "deep": Group(
        tuple(f"brittle/certificates/deep_exact/{name}.py" for name in ("judge", "leaf")),
        tuple(f"tests/certificates/test_{name}.py" for name in ("rounding_terms", "leaf", "deep_exact")),
    ),
}
EQUIVALENT: dict[tuple[str, str, str], str] = {}  # as in benchmarks.mutants


def group_of(mutant: Mutant) -> str:
    return next(name for name, group in GROUPS.items() if mutant.file in group.files)


def mutants(only: str) -> Iterator[Mutant]:
    """Of every group whose name has the word, or of every file."""
    for name, group in GROUPS.items():
        for file in group.files:
            if only in name or only in file:
                yield from of_file(HOME / file)


def of_file(path: Path) -> Iterator[Mutant]:
    tree = ast.parse(path.read_text())
    owner: dict[ast.AST, str] = {}
    skip: set[ast.AST] = set()
    for function in functions(tree):
        owner |= {node: function.name for part in function.body for node in ast.walk(part)}
        skip |= spared(function)
    for place, name, value in settled(tree):
        if place in _enums(tree):  # members are names, whatever their numbers
            skip |= set(ast.walk(value))
        owner |= dict.fromkeys(ast.walk(value), name)
    yield from changes(path, tree, owner, skip)


def _enums(tree: ast.AST) -> set[str]:
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {each.name for each in classes if any("Enum" in ast.unparse(base) for base in each.bases)}


def of_group(item: pytest.Item, name: str) -> bool:
    return str(item.path.relative_to(HOME)) in GROUPS[name].tests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=100, help="how many; 0 for all")
    parser.add_argument("--only", default="", help="of this group or file alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=120, help="limit for one mutant")
    parser.add_argument("--json", help="write the result as JSON; - for standard output alone")
    given = parser.parse_args()
    chosen = list(mutants(given.only))
    print(f"{len(chosen)} mutants in all", file=sys.stderr)
    if given.mutants:
        chosen = random.Random(given.seed).sample(chosen, min(given.mutants, len(chosen)))
    started, hunt = time.perf_counter(), Hunt(chosen, given.seconds, group_of, of_group)
    files = sorted({str(HOME / test) for mutant in chosen for test in GROUPS[group_of(mutant)].tests})
    with contextlib.redirect_stdout(sys.stderr):
        pytest.main([*files, "-s", "-p", "no:cacheprovider", "-p", "no:xdist"], plugins=[hunt])
    text = json.dumps(report(hunt.alive, started, EQUIVALENT), indent=2, ensure_ascii=False)
    if given.json and given.json != "-":
        Path(given.json).write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
