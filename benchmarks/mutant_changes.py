"""Small changes of source code: one constant, comparison, sign, term, extremum, answer or refusal at a time."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
}
SIDES = {"at_most": "at_least", "promise_at_most": "promise_at_least"}
SIDES |= {right: left for left, right in SIDES.items()}
EXTREMA = {"min": "max", "amin": "amax", "minimum": "maximum", "argmin": "argmax", "any": "all"}
EXTREMA |= {right: left for left, right in EXTREMA.items()}
REFUSALS = ("require", "_require")  # how the names of functions begin that raise unless something holds
# arguments that are no part of what is computed but of its shape or its text
SHAPES = {"dim", "keepdim", "dtype", "driver", "size", "ord", "axis", "indent", "maxlen", "maxsize"}
AXES = {"norm", "sum", "mean", "max", "min", "amax", "amin", "any", "all", "argmin", "argmax", "unsqueeze", "squeeze"}
AXES |= {
    "flatten",
    "reshape",
    "expand",
    "repeat",
    "stack",
    "cat",
    "cumsum",
    "prod",
    "sort",
    "median",
    "transpose",
    "split",
}
TEXTS = {"__str__", "__repr__", "summary", "content", "describe", "advice"}  # functions that write for people
# Invisible in float64: one rounding more or less in γ, the second order of 1 + γ, and what underflows lose
UNDERFLOWS, ROUNDINGS = {"UNDERFLOW", "VALUE_UNDERFLOW", "SQUARES", "TINY"}, {"gamma", "ROUNDOFF", "U"}
GUARD, TOLERANCE = 1e-100, 1e-5  # numbers up to these guard a division by 0, and are tolerances
WIDER = 1e6  # by so much a tolerance grows: twice a rounding error is one too


@dataclass(frozen=True)
class Mutant:
    """One change: `place` counts the nodes of the file's tree, `which` the changes of one node."""

    file: str
    line: int
    last: int  # of the lines of its statement
    kind: str
    function: str
    code: str
    change: str
    place: int
    which: int

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.function}: {self.change}"

    @property
    def constant(self) -> bool:
        """Whether it changes a constant of a module or a class."""
        return self.function.isupper()

    @property
    def key(self) -> str:
        """The same wherever the line moves."""
        return f"{self.file} | {self.function} | {self.code} | {self.change}"


def mutants(file: str, source: str, left_out: frozenset[str]) -> Iterator[Mutant]:
    """All changes of a file, outside the functions that are left out."""
    tree, lines = ast.parse(source), source.splitlines()
    owner, spans, skip = dict[ast.AST, str](), dict[ast.AST, tuple[int, int]](), set[ast.AST]()
    _walk(tree, "", (1, 1), owner, spans, skip, left_out)
    for place, node in enumerate(ast.walk(tree)):
        if node in skip or node not in owner:
            continue
        for which, (kind, new) in enumerate(changes(node)):
            assert isinstance(node, ast.expr | ast.stmt)
            first, last = spans[node]
            change = f"{_text(node)} -> {_text(new)}"
            yield Mutant(file, first, last, kind, owner[node], lines[node.lineno - 1].strip(), change, place, which)


def mutated(mutant: Mutant, source: str) -> str:
    """The source with the change made."""
    tree = ast.parse(source)
    target = next(node for place, node in enumerate(ast.walk(tree)) if place == mutant.place)
    Swap(target, list(changes(target))[mutant.which][1]).visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree))


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The kinds of change of one node, each with the new node."""
    match node:
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int() | float() as value):
            if value == 0:
                yield "constant", ast.Constant(1)
            elif abs(value) > TOLERANCE:
                yield "constant", ast.Constant(2 * value)
            elif abs(value) > GUARD:
                yield "constant", ast.Constant(WIDER * value)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPS and not _texts(left, right):
            yield "operator", _with(node, op=SWAPS[type(op)]())
            if isinstance(op, ast.Add | ast.Sub):
                yield "term", left
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield "operator", operand
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            yield "negation", operand
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            yield "comparison", _with(node, ops=[SWAPS[type(op)]()])
        case ast.BoolOp(op=op):
            yield "boolean", _with(node, op=SWAPS[type(op)]())
        case ast.Name(id=name) if name in SIDES:
            yield "comparison", _with(node, id=SIDES[name])
        case ast.Call(func=ast.Name(id="abs"), args=[inner]):
            yield "term", inner
        case ast.Call(func=ast.Attribute(value=inner, attr="abs"), args=[]):
            yield "term", inner
        case ast.Call(func=ast.Name(id=name) as called) if name in EXTREMA:
            yield "extremum", _with(node, func=_with(called, id=EXTREMA[name]))
        case ast.Call(func=ast.Attribute(attr=name) as called) if name in EXTREMA:
            yield "extremum", _with(node, func=_with(called, attr=EXTREMA[name]))
        case ast.Call(func=ast.Attribute(attr="clamp"), keywords=[ast.keyword(arg="min" | "max" as side, value=value)]):
            yield "extremum", _with(node, keywords=[ast.keyword("max" if side == "min" else "min", value)])
        case ast.Return(value=ast.Constant(value=bool() as value)):
            yield "answer", ast.Return(ast.Constant(not value))
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name.startswith(REFUSALS):
            yield "refusal", ast.Pass()
        case ast.If(body=[ast.Raise()], orelse=[]):
            yield "refusal", ast.Pass()
        case ast.Return(value=ast.Call(func=ast.Name(id="bool")) as value):
            yield "answer", ast.Return(ast.UnaryOp(ast.Not(), value))


class Swap(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.copy_location(self.new, node) if node is self.old else self.generic_visit(node)


def _walk(
    node: ast.AST,
    function: str,
    span: tuple[int, int],
    owner: dict[ast.AST, str],
    spans: dict[ast.AST, tuple[int, int]],
    skip: set[ast.AST],
    left_out: frozenset[str],
) -> None:
    """Note the function, or the name of the constant, and the lines of the statement that every node belongs to."""
    match node:
        case ast.FunctionDef(name=name):
            if name in left_out | TEXTS:
                return
            skip |= {inner for part in (node.args, *node.decorator_list) for inner in ast.walk(part)}
            skip |= set(ast.walk(node.returns)) if node.returns else set()
            function = name
        case ast.ClassDef(bases=bases) if any("Enum" in ast.unparse(base) for base in bases):
            return
        case ast.AnnAssign(value=None) | ast.Assert() | ast.JoinedStr() | ast.arguments():
            return
        case ast.AnnAssign(annotation=kind, value=ast.expr()) if not function:
            if "ClassVar" not in ast.unparse(kind):
                return  # a field's default: the size of an instance or a setting
        case ast.Assign(targets=[ast.Name(id=name)]) if not function:
            if name in left_out or name.startswith("__"):
                return
            function = name
        case ast.Subscript(slice=inside):
            skip |= set(ast.walk(inside))
        case ast.Call(func=ast.Name(id="gamma"), args=arguments):
            skip |= {inner for each in arguments for inner in ast.walk(each)}
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right) if _invisible(left, right):
            skip |= {node, left} if isinstance(left, ast.Constant) else {node}
            skip |= set(ast.walk(right))
        case ast.BinOp(op=ast.Mult(), right=ast.BinOp(left=left, right=right)) if _invisible(left, right):
            skip.add(node)
        case ast.keyword(arg=name, value=inside) if name in SHAPES:
            skip |= set(ast.walk(inside))
        case ast.Call(func=ast.Attribute(attr=name), args=arguments) if name in AXES:
            skip |= {each for each in arguments if isinstance(each, ast.Constant | ast.UnaryOp | ast.Tuple)}
            skip |= {
                inner for each in arguments if isinstance(each, ast.UnaryOp | ast.Tuple) for inner in ast.walk(each)
            }
    if isinstance(node, ast.stmt):
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
        span = node.lineno, max(node.lineno, last or node.lineno)
    if function and isinstance(node, ast.expr | ast.stmt):
        owner[node], spans[node] = function, span
    for child in ast.iter_child_nodes(node):
        _walk(child, function, span, owner, spans, skip, left_out)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A copy with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _invisible(left: ast.AST, right: ast.AST) -> bool:
    """Whether the right summand is too small for any test to see."""
    names = {node.id for node in ast.walk(right) if isinstance(node, ast.Name)}
    return bool(names & UNDERFLOWS) or (isinstance(left, ast.Constant) and left.value == 1 and bool(names & ROUNDINGS))


def _texts(*nodes: ast.AST) -> bool:
    """Whether one is certainly no number: sums of texts and of lists are no terms."""
    kinds = ast.JoinedStr | ast.List | ast.Tuple | ast.Dict | ast.ListComp | ast.DictComp
    return any(
        isinstance(node, kinds) or (isinstance(node, ast.Constant) and isinstance(node.value, str)) for node in nodes
    )


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())
