"""TorchScript: its records are read as data, and the text of `forward` is followed statement by statement.

The text is Python's syntax, so that `ast` reads it. Following it means: submodules and functions are entered, choices
between known values are made, calls of ATen's operations become steps of a graph. Loops, choices that depend on the
input, and operations outside the vocabulary are refused. Nothing of the file is run.
"""

import ast
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from brittle.common.errors import InputError, about, require
from brittle.common.limits import LARGEST_GRAPH, LARGEST_TEXT, Archive, open_archive
from brittle.common.torch_files import PickledCall, Storages, archive_content
from brittle.networks.graph import WAY_OUT, Builder, Graph, GraphValue
from brittle.networks.outputs import HOW, Choice, entries, of_program


class Unknown:
    """A number or a choice that depends on the input, such as its number of axes."""


FOLDED: dict[str, Callable[..., Any]] = {
    "__is__": operator.is_, "__isnot__": operator.is_not, "__not__": operator.not_,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
}  # fmt: skip
IDENTITIES = ("__is__", "__isnot__")  # asked of anything beside None


def fold_constants(name: str, values: list[Any], named: dict[str, Any]) -> Any:
    """The result on known numbers; unknown where one of them is."""
    if named not in ({}, {"alpha": 1}):  # 1 is what the tracer writes down
        raise InputError(f"the operation '{name}' on numbers has other arguments here ({', '.join(named)[:100]})")
    if any(isinstance(each, Unknown) for each in values):
        return Unknown()
    if not all(map(_is_plain, values)) and not (name in IDENTITIES and any(each is None for each in values)):
        raise InputError(f"the operation '{name}' on lists or tensors is not read")
    try:
        result = FOLDED[name](*values)
    except (TypeError, OverflowError) as error:
        raise InputError(f"the operation '{name}' cannot be done ({error})") from None
    if isinstance(result, str) or (isinstance(result, int) and abs(result) >= 2**63):
        raise InputError(f"the operation '{name}' gives more than a number of 64 bits")
    return result


def whole(value: Any) -> int:
    """`int(value)` of a known number: the digits after the point are cut off."""
    if not isinstance(value, bool | int | float):
        raise InputError("'int' of something that is no known number is not read")
    if not -(2.0**63) <= value < 2.0**63:  # neither NaN nor infinity
        raise InputError(f"'int' of {value} gives more than a number of 64 bits")
    return int(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


LONGEST_LINE = 20_000


def read_script(path: str | Path, output: Choice | None = None) -> Graph:
    """The operations that the `forward` of a TorchScript file calls."""
    with open_archive(path, "a complete TorchScript file") as archive:
        records, storages = archive_content(archive, "data.pkl"), Storages(archive)
        constants = archive_content(archive, "constants.pkl")
        require(isinstance(records, PickledCall), f"{path}: holds no scripted module")
        require(isinstance(constants, tuple), f"{path}: its constants are no tuple")
        reader = _Reader(archive, storages, constants)
        try:
            returned = reader.call(records, "forward", [GraphValue("input")])
        except RecursionError:
            raise InputError(f"{path}: its code is nested too deeply") from None
        except InputError as error:
            raise about(path, error) from None
        if output is not None or isinstance(returned, tuple | list | dict):
            returned = of_program(path, entries(returned), output)
        require(isinstance(returned, GraphValue), f"{path}: its forward does not return one tensor; {HOW}")
        return reader.builder.finished(returned.name)


class _Reader:
    """Follows the code of an archive."""

    def __init__(self, archive: Archive, storages: Storages, constants: tuple[Any, ...]) -> None:
        self.archive, self.path, self.storages = archive, archive.path, storages
        self.constants, self.constant_storages = constants, Storages(archive, "constants")
        self.tensors: dict[str, Tensor] = {}
        self.builder = Builder(self.path, "input", self.tensors)
        self.sources: dict[str, dict[str, ast.FunctionDef]] = {}
        self.statements = 0

    def refuse(self, what: str) -> InputError:
        return InputError(f"{self.path}: its code uses {what[:200]}, which is not read; {WAY_OUT}")

    def call(self, module: PickledCall, method: str, arguments: list[Any]) -> Any:
        return self.enter(f"{module.name}.{method}", [module, *arguments])

    def enter(self, name: str, arguments: list[Any]) -> Any:
        """Follow one function of the file with these arguments."""
        function = self.function(name)
        names = [each.arg for each in function.args.args]
        defaults = [self.value(each, {}) for each in function.args.defaults]
        missing = len(names) - len(arguments)
        require(0 <= missing <= len(defaults), f"{self.path}: the function '{name}' takes other arguments")
        given = [*arguments, *(defaults[-missing:] if missing else [])]
        returned, value = self.follow(function.body, dict(zip(names, given, strict=True)))
        return value if returned else None

    def function(self, name: str) -> ast.FunctionDef:
        """By its full name: a function of a source, or a method of a class in it."""
        stem, _, last = name.rpartition(".")
        for source, short in ((stem, last), (stem.rpartition(".")[0], f"{stem.rpartition('.')[2]}.{last}")):
            if f"code/{source.replace('.', '/')}.py" in self.archive:
                found = self.source(source).get(short)
                if found is not None:
                    return found
        raise InputError(f"{self.path}: the code of '{name[:200]}' is missing")

    def source(self, name: str) -> dict[str, ast.FunctionDef]:
        if name not in self.sources:
            entry = f"code/{name.replace('.', '/')}.py"
            self.sources[name] = _functions(self.path, self.archive.read(entry, LARGEST_TEXT // 16))
        return self.sources[name]

    def follow(self, body: list[ast.stmt], local: dict[str, Any]) -> tuple[bool, Any]:
        """Whether the statements return, and what."""
        for statement in body:
            self.statements += 1
            few = self.statements <= 20 * LARGEST_GRAPH
            require(few, f"{self.path}: its code takes more than {20 * LARGEST_GRAPH} statements to follow")
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    local[name] = self.value(value, local)
                case ast.Return(value=value):
                    return True, None if value is None else self.value(value, local)
                case ast.If():
                    returned, value = self.choose(statement, local)
                    if returned:
                        return True, value
                case ast.Expr(value=value):
                    self.value(value, local)
                case ast.Pass():
                    pass
                case _:
                    raise self.refuse(f"a statement of the kind {type(statement).__name__}")
        return False, None

    def choose(self, choice: ast.If, local: dict[str, Any]) -> tuple[bool, Any]:
        """Follow the branch that is taken; where that is not known, the one that does not raise."""
        test = self.value(choice.test, local)
        if isinstance(test, bool):
            return self.follow(choice.body if test else choice.orelse, local)
        require(isinstance(test, Unknown), f"{self.path}: its code chooses by something that is no truth value")
        raising = [_raises(choice.body), _raises(choice.orelse)]
        if raising.count(True) == 1:
            return self.follow(choice.orelse if raising[0] else choice.body, local)
        self.disregard(choice.body, local)
        self.disregard(choice.orelse, local)
        return False, None

    def disregard(self, branch: list[ast.stmt], local: dict[str, Any]) -> None:
        """A branch that may or may not be taken can only compute numbers, and these stay unknown."""
        for statement in branch:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    steps = len(self.builder.steps)
                    self.value(value, local)
                    if len(self.builder.steps) > steps:
                        raise self.refuse("a choice that depends on the input")
                    local[name] = Unknown()
                case ast.Pass():
                    pass
                case _:
                    raise self.refuse("a choice that depends on the input")

    def value(self, node: ast.expr, local: dict[str, Any]) -> Any:
        match node:
            case ast.Constant(value=value) if value is None or isinstance(value, bool | int | float | str):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.List(elts=parts):
                return [self.value(part, local) for part in parts]
            case ast.Tuple(elts=parts):
                return tuple(self.value(part, local) for part in parts)
            case ast.Dict(keys=keys, values=parts):
                names = [each.value if isinstance(each, ast.Constant) else None for each in keys]
                if not all(isinstance(each, str) for each in names) or len(set(names)) < len(names):
                    raise self.refuse("a dictionary whose keys are no words")
                return {name: self.value(part, local) for name, part in zip(names, parts, strict=True)}
            case ast.Name(id=name) if name in local:
                return local[name]
            case ast.Attribute(value=ast.Name(id="CONSTANTS"), attr=name):
                return self.constant(name)
            case ast.Attribute():
                return self.attribute(node, local)
            case ast.Call(func=function, args=arguments, keywords=options):
                return self.called(function, arguments, options, local)
        raise self.refuse(f"an expression of the kind {type(node).__name__}")

    def attribute(self, node: ast.Attribute, local: dict[str, Any]) -> Any:
        path = _dotted(node)
        if path and path.startswith("__torch__.") and "__torch__" not in local:
            return _Function(path)
        return self.member(self.value(node.value, local), node.attr)

    def member(self, owner: Any, name: str) -> Any:
        """A submodule, a number or a tensor of a scripted module; every module is in evaluation mode."""
        if not isinstance(owner, PickledCall) or not isinstance(owner.state, dict):
            raise self.refuse(f"the attribute '{name}' of something that is no module")
        if name == "training":
            return False
        require(name in owner.state, f"{self.path}: the module '{owner.name}' has no '{name}'")
        value = owner.state[name]
        if isinstance(value, PickledCall) and not value.name.startswith("__torch__."):
            return self.tensor(f"{owner.name}.{name}", value, self.storages)
        return value

    def constant(self, name: str) -> Any:
        place = name.removeprefix("c")
        held = place.isdecimal() and len(place) < 9 and int(place) < len(self.constants)
        require(held, f"{self.path}: the constant '{name[:100]}' is missing")
        return self.tensor(f"CONSTANTS.{name}", self.constants[int(place)], self.constant_storages)

    def tensor(self, name: str, value: PickledCall, storages: Storages) -> Any:
        key = f"{name}#{id(value)}"  # several modules of one class have arrays of one name
        if key not in self.tensors:
            self.tensors[key] = storages.tensor(name, value)
            self.builder.constant(key)
        return GraphValue(key)

    def called(self, function: ast.expr, arguments: Any, options: Any, local: dict[str, Any]) -> Any:
        path = _dotted(function)
        if path == "getattr" and len(arguments) == 2:
            return self.member(self.value(arguments[0], local), str(self.value(arguments[1], local)))
        if path in ("annotate", "unchecked_cast") and len(arguments) == 2:
            return self.value(arguments[1], local)
        if path == "ops.prim.RaiseException":
            raise InputError(f"{self.path}: its code raises an error on every input")
        values = [self.value(each, local) for each in arguments]
        named = {each.arg: self.value(each.value, local) for each in options if each.arg}
        if path in ("int", "ops.prim.NumToTensor") and len(values) == 1 and not named:
            (value,) = values
            length = isinstance(value, Unknown) or (isinstance(value, GraphValue) and self.builder.is_length(value))
            return value if length or path != "int" else whole(value)
        if path and path.startswith("torch.") and "torch" not in local:
            return self.operation(path.removeprefix("torch."), values, named)
        if path and path.startswith("ops."):
            raise self.refuse(f"the operation '{path}'")
        if isinstance(function, ast.Attribute) and not (path or "").startswith("__torch__."):
            module = self.value(function.value, local)
            if isinstance(module, PickledCall) and not named:
                return self.call(module, function.attr, values)
        target = self.value(function, local)
        if not isinstance(target, _Function) or named:
            raise self.refuse("a call of something that is no function")
        return self.enter(target.name, values)

    def operation(self, name: str, values: list[Any], named: dict[str, Any]) -> Any:
        if name in ("format", "warn"):
            return Unknown()
        if name in ("dim", "len") or (name == "size" and len(values) == 1):
            measurable = len(values) == 1 and isinstance(values[0], list | tuple)
            return len(values[0]) if measurable else Unknown()
        tensors = any(isinstance(each, GraphValue) for each in values)
        if name in FOLDED and (name.startswith("__") or not tensors):
            return fold_constants(name, values, named)
        if any(isinstance(each, Unknown | PickledCall) for each in (*values, *named.values())):
            raise self.refuse(f"the operation '{name}' on something that depends on the input")
        return self.builder.add(name, *values, **named)


class _Function:
    """A function of the file, by name."""

    def __init__(self, name: str) -> None:
        self.name = name


def _dotted(node: ast.expr) -> str | None:
    """`a.b.c` as text, where an expression is just that."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else None


def _raises(body: list[ast.stmt]) -> bool:
    calls = [each.value for each in body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)]
    return any(_dotted(call.func) == "ops.prim.RaiseException" for call in calls)


def _functions(path: Path, content: bytes) -> dict[str, ast.FunctionDef]:
    """The functions of a source, and the methods of its classes as `Class.method`."""
    short = max((len(line) for line in content.splitlines()), default=0) <= LONGEST_LINE
    require(short, f"{path}: its code has a line of more than {LONGEST_LINE} characters")
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"{path}: its code is not TorchScript that can be read") from None
    found = {}
    for each in tree.body:
        if isinstance(each, ast.FunctionDef):
            found[each.name] = each
        elif isinstance(each, ast.ClassDef):
            methods = (part for part in each.body if isinstance(part, ast.FunctionDef))
            found |= {f"{each.name}.{part.name}": part for part in methods}
    return found
