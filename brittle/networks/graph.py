"""A network from a stranger's file: operations of the one vocabulary, checked before anything is computed."""

import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import torch
from torch import Tensor, nn

from brittle.common.errors import InputError, note, require
from brittle.common.limits import LARGEST_GRAPH
from brittle.networks.operations import (
    ALIASES,
    BENEATH,
    BENEATH_SIGNATURES,
    OPERATIONS,
    SIGNATURES,
    VIEWS,
    Unread,
)

WAY_OUT = "save module.state_dict() and name the module (--architecture MODULE:CLASS), or pass it in Python"

ROWS = 1009  # stands for the number of examples: a prime, so that examples which are mixed up show in the shapes
HALF = (torch.float16, torch.bfloat16)
ENDLESS = 2**31  # what files call the end of an axis, and more than any length


class UnknownOperation(InputError):
    """An operation that is not in the vocabulary."""


@dataclass(frozen=True)
class GraphValue:
    """What a step computes, or a constant of the file, by its name."""

    name: str


@dataclass(frozen=True)
class GraphStep:
    """One operation; among its arguments, by name, are values, numbers and lists of both."""

    operation: str
    arguments: dict[str, Any]
    output: str

    def inputs(self) -> Iterator[str]:
        for argument in self.arguments.values():
            for each in argument if isinstance(argument, list | tuple) else [argument]:
                if isinstance(each, GraphValue):
                    yield each.name


@dataclass(frozen=True)
class Graph:
    """The steps from `input` to `output`; `shape` is that of one example, () where the file does not say."""

    input: str
    constants: dict[str, Tensor]
    steps: list[GraphStep]
    output: str
    shape: tuple[int, ...] = ()


@dataclass
class Builder:
    """Collects the steps of a file; an operation outside the vocabulary is refused by name.

    Operations in place are read as the plain ones: the name that was overwritten stands for the result from then on.
    The other names of that memory cannot be used again, also not as the output. A program that overwrites a constant
    changes its own state from call to call, and is refused.
    """

    path: str | Path
    input: str
    constants: dict[str, Tensor]
    rows: int | None = None  # the number of examples that the file was written for, where that is fixed
    beneath: bool = False  # whether operations are meant that PyTorch runs beneath its own
    steps: list[GraphStep] = field(default_factory=list)
    _memory: dict[str, int] = field(default_factory=dict)
    _spent: set[int] = field(default_factory=set)
    _state: set[int] = field(default_factory=set)  # the memory of the file's constants
    _now: dict[str, str] = field(default_factory=dict)  # what a name stands for that was overwritten
    _lengths: set[str] = field(default_factory=set)
    _places: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self._known = {self.input, *self.constants}

    def constant(self, name: str) -> None:
        """A constant that was read after the beginning."""
        self._known.add(name)

    def add(self, operation: str, /, *arguments: Any, output: str | None = None, **options: Any) -> GraphValue:
        """The value of one more step; ATen's name, its arguments in ATen's order or by ATen's names."""
        full = len(self.steps) < LARGEST_GRAPH
        require(full, f"{self.path}: has more than {LARGEST_GRAPH} operations, which is the most that is read")
        name, signature = self._meant(operation)
        bound = self._bound(operation, signature, self._current(arguments), self._current(options))
        name, bound = self._row_wise(name, bound)
        step = GraphStep(name, bound, f"{len(self.steps)}:{name}" if output is None else output)
        self._check_types(step)
        fresh = step.output not in self._known
        require(fresh, f"{self.path}: the value '{step.output[:100]}' is computed twice")
        self._remember(operation, step)
        self._known.add(step.output)
        if name == "size":
            self._lengths.add(step.output)
        if name in VIEWS and all(each in self.constants for each in step.inputs()):
            self.constants[step.output] = self._viewed(step)
        else:
            self.steps.append(step)
        return GraphValue(step.output)

    def is_length(self, value: GraphValue) -> bool:
        """Whether it is the length of an axis, and so a whole number."""
        return value.name in self._lengths

    def finished(self, output: str, shape: tuple[int, ...] = ()) -> Graph:
        output = self._latest(output)
        known = output in self._known
        require(known, f"{self.path}: the graph does not end in the output '{output[:100]}'")
        spent = self._memory.get(output, -1) in self._spent
        require(not spent, f"{self.path}: returns what was overwritten in place under another name; {WAY_OUT}")
        steps = _needed(self.steps, output)
        self._check_squeezed(steps)
        used = {name for step in steps for name in step.inputs()}
        constants = {name: value for name, value in self.constants.items() if name in used}
        return Graph(self.input, constants, steps, output, shape)

    def _check_squeezed(self, steps: list[GraphStep]) -> None:
        """Squeezing every axis also takes that of a single example: only functions of each number alone may follow."""
        squeezed: set[str] = set()
        for step in steps:
            inputs = list(step.inputs())
            follows = not squeezed.isdisjoint(inputs)
            alone = step.operation in NUMBERWISE and len(inputs) == 1
            words = f"{self.path}: '{step.operation}' follows a squeeze of every axis, that of a single example too"
            require(alone or not follows, f"{words}; name the axis that is squeezed")
            if follows or (step.operation == "squeeze" and step.arguments.get("dim") is None):
                squeezed.add(step.output)

    def _meant(self, operation: str) -> tuple[str, inspect.Signature]:
        """The operation of the vocabulary, and the arguments that it has under this name."""
        plain = operation.removesuffix("_")
        if self.beneath and plain in BENEATH:
            return BENEATH[plain][0], BENEATH_SIGNATURES[plain]
        name = ALIASES.get(plain, plain)
        if name not in OPERATIONS:
            raise UnknownOperation(f"{self.path}: uses the operation '{operation[:100]}', which is not read; {WAY_OUT}")
        return name, SIGNATURES[name]

    def _bound(self, name: str, signature: inspect.Signature, arguments: Any, options: Any) -> dict[str, Any]:
        """The arguments that are read, by name; anything else that would change the function is refused."""
        try:
            bound = signature.bind(*arguments, **options).arguments
        except TypeError as error:
            raise InputError(f"{self.path}: the operation '{name}' has other arguments here ({error})") from None
        if isinstance(bound.get("end"), int) and bound["end"] >= ENDLESS:
            bound["end"] = None
        if name == "dropout" and bound.get("train") is True and bound.get("p") != 0:
            note(f"{self.path}: applies dropout in evaluation too, which is left out: its outputs are by chance")
        read = {}
        for key, value in bound.items():
            kind = signature.parameters[key].annotation
            mark = getattr(kind, "__metadata__", (None,))[0]
            if not isinstance(mark, Unread):
                read[key] = value
                for each in value if isinstance(value, list | tuple) else [value]:
                    self._check(name, each)
            fits = mark.accepts(value) if isinstance(mark, Unread) else self._is(value, kind)
            require(fits, f"{self.path}: '{name}' has {key}={str(value)[:60]} here, which is not read; {WAY_OUT}")
        return read

    def _is(self, value: Any, kind: Any) -> bool:
        """Whether a value is what the annotation of an argument says."""
        if get_origin(kind) is Annotated:
            return self._is(value, kind.__metadata__[0])
        if get_origin(kind) in (UnionType, Union):
            return any(self._is(value, each) for each in get_args(kind))
        if get_origin(kind) is Sequence:
            return isinstance(value, list | tuple) and all(self._is(each, *get_args(kind)) for each in value)
        if isinstance(value, GraphValue):
            return kind is Tensor or (kind is int and self.is_length(value))
        if kind is int:
            return isinstance(value, int) and not isinstance(value, bool)
        plain = {float: bool | int | float, bool: bool, str: str, NoneType: NoneType}
        return isinstance(value, plain.get(kind, ()))

    def _check_types(self, step: GraphStep) -> None:
        """What is made of constants alone is computed in float32 or float64, without the rounding of shorter floats."""
        given = [self.constants.get(name) for name in step.inputs()]
        alone = step.operation not in VIEWS and all(each is not None for each in given)
        half = next((each.dtype for each in given if each is not None and each.dtype in HALF), None)
        words = f"{self.path}: '{step.operation}' computes with constants in {half}, whose rounding is not followed"
        require(not alone or half is None, f"{words}; {WAY_OUT}")

    def _check(self, operation: str, argument: Any) -> None:
        if isinstance(argument, GraphValue):
            known = argument.name in self._known
            require(known, f"{self.path}: '{operation}' takes '{argument.name[:100]}', which is not computed before it")
            spent = self._memory.get(argument.name, -1) in self._spent
            require(not spent, f"{self.path}: '{operation}' takes what was overwritten in place; {WAY_OUT}")
            return
        plain = argument is None or isinstance(argument, bool | float | str)
        whole = isinstance(argument, int) and abs(argument) < ENDLESS
        require(plain or whole, f"{self.path}: '{operation}' has an argument that is neither a number nor a value")

    def _viewed(self, step: GraphStep) -> Tensor:
        """Another view of a constant, such as the transpose of a weight, is a constant."""
        (name,) = step.inputs()
        options = {key: each for key, each in step.arguments.items() if not isinstance(each, GraphValue)}
        (key,) = (key for key, each in step.arguments.items() if isinstance(each, GraphValue))
        view: Tensor = compute_step(self.path, step, {**options, key: self.constants[name]})
        return view

    def _row_wise(self, name: str, bound: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """A reshape that keeps the examples apart, whatever their number in the file was."""
        lengths = bound.get("shape", bound.get("size"))
        if name not in ("reshape", "view") or not isinstance(lengths, list | tuple) or not lengths:
            return name, bound
        fixed = lengths[0] in (-1, self.rows) and all(isinstance(each, int) for each in lengths)
        return ("reshape_rows", {"self": bound["self"], "shape": list(lengths[1:])}) if fixed else (name, bound)

    def _current(self, argument: Any) -> Any:
        """Arguments with what their names stand for by now."""
        if isinstance(argument, dict):
            return {name: self._current(each) for name, each in argument.items()}
        if isinstance(argument, list | tuple):
            return [self._current(each) for each in argument]
        return GraphValue(self._latest(argument.name)) if isinstance(argument, GraphValue) else argument

    def _latest(self, name: str) -> str:
        """What a name stands for by now, however often it was overwritten."""
        latest = name
        while latest in self._now:
            latest = self._now[latest]
        while name != latest:  # the next one finds it in one step
            following = self._now[name]
            self._now[name] = latest
            name = following
        return latest

    def _remember(self, operation: str, step: GraphStep) -> None:
        """Views share the memory of what they look at."""
        first = next(step.inputs(), "")
        mine = self._memory.setdefault(first, next(self._places))
        if first in self.constants:
            self._state.add(mine)
        if operation.endswith("_"):
            own = mine in self._state
            require(not own, f"{self.path}: '{operation}' overwrites one of its own constants in place; {WAY_OUT}")
            self._spent.add(mine)
            self._now[first] = step.output
        shared = step.operation in VIEWS and not operation.endswith("_")
        self._memory[step.output] = mine if shared else next(self._places)


def compute_step(path: str | Path, step: GraphStep, arguments: dict[str, Any]) -> Any:
    """The result of one step; whatever PyTorch has against it is said in one line."""
    try:
        return OPERATIONS[step.operation](**arguments)
    except InputError as error:
        raise InputError(f"{path}: the operation '{step.operation}' cannot be read: {error}") from None
    except (RuntimeError, TypeError, ValueError, IndexError, OverflowError, AttributeError, ZeroDivisionError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise InputError(f"{path}: the operation '{step.operation}' cannot be done ({reason})") from None


def shadow(value: Tensor) -> Tensor:
    """The shape of a constant, without its numbers."""
    empty = value.to("meta")
    return empty.float() if value.is_floating_point() else empty


def keeps_rows(step: GraphStep, arguments: dict[str, Any], value: Any) -> bool:
    """Whether a step on ROWS examples gives something for each of them, and would for more of them."""
    apart = not isinstance(value, Tensor) or value.shape[:1] == (ROWS,)
    if step.operation != "slice" or arguments.get("dim", 0) % arguments["self"].ndim:
        return apart
    return apart and not arguments.get("start") and arguments.get("end") is None


NUMBERWISE = (  # functions of every number alone, where their other arguments are no values
    "identity", "dropout", "contiguous", "squeeze", "relu", "leaky_relu", "elu", "gelu", "hardtanh", "softplus", "pow",
    "sigmoid", "tanh", "abs", "neg", "exp", "log", "sqrt", "erf", "relu6", "silu", "hardsigmoid", "hardswish",
    "clamp", "clamp_min", "clamp_max", "add", "sub", "rsub", "mul", "div",
)  # fmt: skip


def _needed(steps: list[GraphStep], output: str) -> list[GraphStep]:
    """Those that the output depends on."""
    wanted, kept = {output}, []
    for step in reversed(steps):
        if step.output in wanted:
            wanted.update(step.inputs())
            kept.append(step)
    return kept[::-1]


class Interpreter(nn.Module):
    """Runs a graph; each value is let go after its last use.

    `row_bytes` is the memory that one example takes; it is tried on so many `trials` of every size, 0 for the usual.
    """

    def __init__(self, graph: Graph, row_bytes: int = 0, trials: int = 0) -> None:
        super().__init__()
        self.graph, self.row_bytes, self.trials = graph, row_bytes, trials
        self._places = {name: f"value_{place}" for place, name in enumerate(graph.constants)}
        trained = set(_trained(graph))
        for name, value in graph.constants.items():
            if name in trained and value.is_floating_point():
                self.register_parameter(self._places[name], nn.Parameter(value))
            else:
                self.register_buffer(self._places[name], value)
        self._last = last_uses(graph)

    def forward(self, X: Tensor) -> Tensor:
        values: dict[str, Any] = {self.graph.input: X}
        for place, step in enumerate(self.graph.steps):
            values[step.output] = OPERATIONS[step.operation](**fill_arguments(step.arguments, values, self._constant))
            for name in self._last.get(place, ()):
                values.pop(name, None)
        output: Tensor = values[self.graph.output]
        return output

    def trained(self) -> Graph:
        """The graph with the numbers that the module has now."""
        return replace(self.graph, constants={name: self._constant(name).detach().clone() for name in self._places})

    def _constant(self, name: str) -> Tensor:
        constant: Tensor = getattr(self, self._places[name])
        return constant


def fill_arguments(
    arguments: dict[str, Any], values: dict[str, Any], constant: Callable[[str], Tensor]
) -> dict[str, Any]:
    """The arguments of a step with its values in their places."""

    def fill(argument: Any) -> Any:
        if isinstance(argument, list | tuple):
            return [fill(each) for each in argument]
        if not isinstance(argument, GraphValue):
            return argument
        return values[argument.name] if argument.name in values else constant(argument.name)

    return {name: fill(argument) for name, argument in arguments.items()}


def last_uses(graph: Graph) -> dict[int, list[str]]:
    """After which step which values are needed no more."""
    last = {name: place for place, step in enumerate(graph.steps) for name in (*step.inputs(), step.output)}
    ends: dict[int, list[str]] = {}
    for name, place in last.items():
        if name != graph.output:
            ends.setdefault(place, []).append(name)
    return ends


def _trained(graph: Graph) -> Iterator[str]:
    """Weights and biases are parameters; means, scales and the like are not."""
    for step in graph.steps:
        for name in ("weight", "bias"):
            value = step.arguments.get(name)
            if isinstance(value, GraphValue):
                yield value.name


def of_one_type(graph: Graph) -> Graph:
    """Floats of one type: float64 where any constant is, otherwise float32."""
    double = any(value.dtype == torch.float64 for value in graph.constants.values())
    return of_type(graph, torch.float64 if double else torch.float32)


def of_type(graph: Graph, dtype: torch.dtype) -> Graph:
    floats = {name: value.to(dtype) for name, value in graph.constants.items() if value.is_floating_point()}
    return replace(graph, constants=graph.constants | floats)
