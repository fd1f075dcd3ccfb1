"""Mutants of the theorems: does a test notice when one constant, comparison or sign of a formula is wrong?

    python -m benchmarks.mutants --mutants 200 --seed 0 --json -

A mutant changes one number, one comparison or one sign in what a theorem supposes or promises. Formulas are the methods
of `ROOTS` and whatever they call in `brittle/theorems/<paper>` and `kkt_proof`; what measures (`witness`), draws
(`default`, `failures`) and searches is not mutated, nor are the sizes of default instances. Every mutant is
put into a process of its own, which runs the tests that write the papers' formulas again by hand, up to the first that
fails. A mutant that no test notices survives; `EQUIVALENT` are those that change nothing, with the reason.
"""

import argparse
import ast
import contextlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

HOME = Path(__file__).parent.parent
THEOREMS = HOME / "brittle" / "theorems"
PAPERS = ("vardi2022", "frei2023", "melamed2023", "wang2022")
PINS = {  # the tests that write the formulas of a folder again by hand
    **dict.fromkeys(("kkt_proof", "vardi2022", "frei2023"), "test_constants.py"),
    "melamed2023": "test_melamed2023_constants.py",
    "wang2022": "test_wang2022_constants.py",
}
ROOTS = {
    *("bound", "hypotheses", "about_data", "probability", "solve_for", "scaling", "allowed", "rate", "limit"),
    *("p1", "p2", "p3", "p4", "p5", "p6"),
}
MEASURES = {  # what is drawn, searched for, or compared with a promise: wrong objects test it (test_*wrong_objects.py)
    *("witness", "default", "failures", "smallest", "exact", "tail", "sizes", "drawn", "draw", "measured", "holds"),
    *("segment_change", "found_change", "shortest_found", "shortest_gradient", "drawn_gradient", "gradients", "active"),
    *("walk", "train", "ordinary", "_deviation", "_distinct", "smallest_flip", "approximations", "displaced", "_best"),
    *("ratio", "ratios", "outside", "scale", "labels", "noises", "_products", "instance", "_with_room", "deviation"),
    *(
        "project",
        "per_output",
        "exponents",
        "rotation",
        "against",
        "speaks_of",
        "noise",
        "perturbation",
        "other_measures",
    ),
    *("side", "MOMENTS", "NEAR_KINK", "SWEEPS", "DRAWS_AT_ONCE", "MANY", "FEW", "KINKS"),
}
SEARCHES = {"worst.py", "farthest.py"}
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt},
}
SIDES = {"at_most": "at_least", "promise_at_most": "promise_at_least"}
SIDES |= {right: left for left, right in SIDES.items()}
# arguments that are no part of a formula; the pins hold every tolerance below 1e-3
SHAPES = {"dim", "keepdim", "dtype", "driver", "size", "ord", "tolerance"}
AXES = {"norm", "sum", "mean", "max", "min", "amax"}  # methods whose arguments are axes
NOT_PUT_IN = 3  # the exit code where a mutant could not be made
EQUIVALENT = {  # by file, line of code and change: why nothing is different
    ("melamed2023/instances.py", "spread = float(weights.square().sum()) / (max(1, count) * beta**2)", "1 -> 2"): (
        "guards a division by zero alone: a network off a subspace has two weights at least"
    ),
    (
        "melamed2023/instances.py",
        "outside = (moved - moved @ off.basis @ off.basis.T).norm() / moved.norm().clamp(min=1e-300)",
        "1e-300 -> 2e-300",
    ): "guards a division by zero alone",
    (
        "melamed2023/instances.py",
        "return float((off.weights - expected).norm() / expected.norm().clamp(min=1e-300))",
        "1e-300 -> 2e-300",
    ): "guards a division by zero alone",
    (
        "frei2023/examples.py",
        "delta = ClusterConstants(dim, 2, 0.0, balance=0.5, noise=1.0).spread",
        "0.5 -> 1.0",
    ): "Δ does not depend on the balance",
    ("frei2023/assumption.py", "low = high // 2", "2 -> 4"): "where a bisection begins",
    (
        "wang2022/tools.py",
        "orders = range(3, 60)",
        "60 -> 120",
    ): "the ratio falls from q = 3 on: later ones add nothing",
    ("wang2022/change.py", "while high - low > 1e-6:", "1e-06 -> 2e-06"): "how exactly a root is bisected",
    ("wang2022/sweep.py", "while high / low > 1 + 1e-9:", "1e-09 -> 2e-09"): "how exactly a root is bisected",
}


@dataclass(frozen=True)
class Mutant:
    """One change: `kind` is constant, comparison or sign; `before` and `after` are the line."""

    file: str
    line: int
    kind: str
    function: str
    before: str
    after: str
    node: int  # the number of the node in the walk of its tree

    @property
    def folder(self) -> str:
        return Path(self.file).parts[2]

    @property
    def package(self) -> str:
        """Where its constants are used."""
        return ".".join(Path(self.file).parts[:2]) if self.file.startswith("brittle/") else Path(self.file).parts[0]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file.removeprefix("brittle/theorems/"), self.before, self.after


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def formulas(trees: dict[Path, ast.Module]) -> set[str]:
    """The names of `ROOTS` and of all that they call."""
    defined = {function.name for tree in trees.values() for function in functions(tree)}
    calls: dict[str, set[str]] = {}
    for tree in trees.values():
        for function in functions(tree):
            names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            names |= {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
            calls.setdefault(function.name, set()).update(names & defined)
    found, new = set[str](), set(ROOTS)
    while new:
        found |= new
        new = {name for each in new for name in calls.get(each, ())} - found - MEASURES
    return found


def changed(node: ast.AST) -> tuple[str, ast.AST] | None:
    """The kind of a change and the new node; None where there is nothing to change."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value):
            return "constant", ast.Constant(1 if value == 0 else 2 * value)
        case ast.BinOp(op=op) if type(op) in SWAPS:
            return "sign", ast.BinOp(node.left, SWAPS[type(op)](), node.right)  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return "sign", operand
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            return "comparison", ast.Compare(node.left, [SWAPS[type(op)]()], node.comparators)  # type: ignore[list-item]
        case ast.Name(id=name) if name in SIDES:
            return "comparison", ast.Name(SIDES[name], node.ctx)
    return None


def spared(function: ast.FunctionDef) -> set[ast.AST]:
    """Indices, axes and texts: not part of a formula."""
    nodes: set[ast.AST] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript):
            nodes |= set(ast.walk(node.slice))
        if isinstance(node, ast.keyword) and node.arg in SHAPES:
            nodes |= set(ast.walk(node))
        if isinstance(node, ast.JoinedStr | ast.arguments):
            nodes |= set(ast.walk(node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in AXES:
            nodes |= {inner for argument in node.args for inner in ast.walk(argument)}
        if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Dict | ast.DictComp):
            nodes.add(node)
    return nodes


def settled(tree: ast.Module) -> Iterator[tuple[str, str, ast.expr]]:
    """Constants of modules and of classes, as owner, name and value; the fields of a theorem are sizes."""
    classes = [(node.name, node.body) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for owner, body in [("", tree.body), *classes]:
        for node in body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in MEASURES:
                    yield owner, name, value
                case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=ast.expr() as value):
                    if "ClassVar" in ast.unparse(kind):
                        yield owner, name, value


def mutants() -> list[Mutant]:
    """Every one that there is."""
    paths = [path for folder in PINS for path in sorted((THEOREMS / folder).glob("*.py"))]
    trees = {path: ast.parse(path.read_text()) for path in paths if path.name not in SEARCHES}
    named, found = formulas(trees), list[Mutant]()
    for path, tree in trees.items():
        owner: dict[ast.AST, str] = {}
        skip: set[ast.AST] = set()
        for function in functions(tree):
            if function.name in named:
                owner |= {node: function.name for part in function.body for node in ast.walk(part)}
                skip |= spared(function)
        for _, name, value in settled(tree):
            owner |= dict.fromkeys(ast.walk(value), name)
        found += changes(path, tree, owner, skip)
    return found


def changes(path: Path, tree: ast.Module, owner: dict[ast.AST, str], skip: set[ast.AST]) -> Iterator[Mutant]:
    """Of the nodes that have an owner and are not spared."""
    lines = path.read_text().splitlines()
    for number, node in enumerate(ast.walk(tree)):
        if node not in owner or node in skip or (change := changed(node)) is None:
            continue
        assert isinstance(node, ast.expr)
        words = f"{ast.unparse(node)} -> {ast.unparse(change[1])}"
        place = str(path.relative_to(HOME)), node.lineno
        yield Mutant(*place, change[0], owner[node], lines[node.lineno - 1].strip(), words, number)


class Swap(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(self.new, node) if node is self.old else self.generic_visit(node)


def mutated(mutant: Mutant) -> ast.Module:
    """The tree of its file with the change made."""
    tree = ast.parse((HOME / mutant.file).read_text())
    target = next(node for number, node in enumerate(ast.walk(tree)) if number == mutant.node)
    change = changed(target)
    assert change is not None
    Swap(target, change[1]).visit(tree)
    return ast.fix_missing_locations(tree)


def put_in(mutant: Mutant) -> None:
    """The change, in the modules of this process: code of functions, values of constants."""
    module = sys.modules[mutant.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")]
    tree = mutated(mutant)
    codes = dict(named(compile(tree, mutant.file, "exec")))
    for function in written(module):
        function.__code__ = codes[function.__qualname__]
    for owner, name, value in settled(tree):
        if name == mutant.function:
            new = eval(compile(ast.Expression(value), mutant.file, "eval"), dict(vars(module)))
            owners = [vars(module)[owner]] if owner else list(modules(mutant.package))
            for each in owners:
                if name in vars(each):
                    setattr(each, name, new)


def modules(package: str) -> Iterator[ModuleType]:
    """Those of a package: a constant is imported by its name."""
    yield from (module for name, module in sys.modules.items() if name.startswith(package))


def named(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """The code of every function inside, by its qualified name."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner.co_qualname, inner
            yield from named(inner)


def written(module: ModuleType) -> Iterator[FunctionType]:
    """The functions and methods that are written in a module."""
    owners = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    for each in [*vars(module).values(), *(value for owner in owners for value in vars(owner).values())]:
        function = getattr(each, "fget", None) or getattr(each, "func", None) or getattr(each, "__wrapped__", each)
        if isinstance(function, FunctionType) and function.__code__.co_filename == module.__file__:
            yield function


class Hunt:
    """Instead of running the tests once, pytest runs them for every mutant, in a process of its own."""

    def __init__(
        self,
        chosen: list[Mutant],
        seconds: int,
        folder: Callable[[Mutant], str] = lambda mutant: mutant.folder,
        pinned: Callable[[pytest.Item, str], bool] = lambda item, folder: pinned(item, folder),
    ) -> None:
        self.chosen, self.seconds, self.folder, self.pinned = chosen, seconds, folder, pinned
        self.alive: dict[Mutant, bool] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for folder in sorted({self.folder(mutant) for mutant in self.chosen}):
            assert self.survives(None, folder, session), f"the tests of {folder} fail without a mutant"
        for number, mutant in enumerate(self.chosen, 1):
            self.alive[mutant] = self.survives(mutant, self.folder(mutant), session)
            if self.alive[mutant]:
                place = f"{mutant.file}:{mutant.line}"
                print(f"{number}/{len(self.chosen)} survives: {place} {mutant.after}", file=sys.stderr, flush=True)
        return True

    def survives(self, mutant: Mutant | None, folder: str, session: pytest.Session) -> bool:
        """Whether every test passes; a mutant that takes too long is noticed."""
        child = os.fork()
        if child:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert code != NOT_PUT_IN, f"{mutant} cannot be put in"
            return code == 0
        code = NOT_PUT_IN
        try:
            signal.alarm(self.seconds if mutant else 10 * self.seconds)
            if mutant is not None:
                put_in(mutant)
            code = 0 if passes([item for item in session.items if self.pinned(item, folder)]) else 1
        except ArithmeticError:
            code = 1  # a constant that has no value: its module could not be imported
        finally:
            os._exit(code)


def pinned(item: pytest.Item, folder: str) -> bool:
    """Whether a test is about the formulas of a folder; one that names no paper may be about any of its file."""
    papers = {paper for paper in PAPERS if paper in item.name}
    return item.path.name == PINS[folder] and (not papers or folder in papers or folder == "kkt_proof")


def passes(items: list[pytest.Item]) -> bool:
    """Up to the first that fails."""
    for item in items:
        reports = runtestprotocol(item, log=False, nextitem=None)
        if any(each.failed for each in reports):
            return False
    return True


def report(
    results: dict[Mutant, bool], started: float, known: dict[tuple[str, str, str], str] = EQUIVALENT
) -> dict[str, Any]:
    equivalent = {mutant for mutant in results if mutant.key in known}
    judged = {mutant: alive for mutant, alive in results.items() if mutant not in equivalent}
    counts = Counter(mutant.kind for mutant in judged)
    killed = Counter(mutant.kind for mutant, alive in judged.items() if not alive)
    kinds = {kind: {"mutants": counts[kind], "killed": killed[kind]} for kind in counts}
    survivors = [asdict(mutant) for mutant, alive in judged.items() if alive]
    share = sum(killed.values()) / max(1, len(judged))
    reasons = {f"{mutant.file}:{mutant.line} {mutant.after}": known[mutant.key] for mutant in equivalent}
    seconds = time.perf_counter() - started
    return {
        "mutants": len(judged),
        "killed": share,
        "kinds": kinds,
        "survivors": survivors,
        "equivalent": reasons,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mutants", type=int, default=200, help="how many; 0 for all")
    parser.add_argument("--kind", choices=["constant", "comparison", "sign"], help="of this kind alone")
    parser.add_argument("--only", default="", help="whose file:line contains this")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=120, help="limit for one mutant")
    parser.add_argument("--list", action="store_true", help="list them and run nothing")
    parser.add_argument("--json", help="write the result as JSON; - for standard output")
    arguments = parser.parse_args()
    chosen = [m for m in mutants() if arguments.kind in (None, m.kind) and arguments.only in f"{m.file}:{m.line}"]
    if arguments.mutants:
        chosen = random.Random(arguments.seed).sample(chosen, min(arguments.mutants, len(chosen)))
    if arguments.list:
        for mutant in chosen:
            print(f"{mutant.file}:{mutant.line} {mutant.function}: {mutant.after}")
        print(Counter(mutant.kind for mutant in chosen))
        return
    started, hunt = time.perf_counter(), Hunt(chosen, arguments.seconds)
    files = [str(HOME / "tests/theorems" / name) for name in sorted(set(PINS.values()))]
    with contextlib.redirect_stdout(sys.stderr):
        pytest.main([*files, "-s", "-p", "no:cacheprovider"], plugins=[hunt])
    results = hunt.alive
    text = json.dumps(report(results, started), indent=2, ensure_ascii=False)
    if arguments.json and arguments.json != "-":
        Path(arguments.json).write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
