"""A module as a graph of the one vocabulary: it is run once, and what PyTorch is asked to do is written down.

What does not depend on the input is a constant. A module that looks at the numbers of its input to decide what to do
has no graph. It is run on two batches of different sizes and numbers, and has no graph where that makes a difference.
"""

from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from brittle.common.errors import InputError
from brittle.networks.graph import Builder, Graph, GraphValue, UnknownOperation
from brittle.networks.terms import OpaqueError

ROWS = (3, 5)
FLOATS = (torch.float32, torch.float64)
INPUT = "input"
LOOKS = ("numpy", "__array__", "tolist", "__dlpack__", "data_ptr", "untyped_storage", "storage", "apply_", "map_")
PRODUCTS = {"linear": "linear", "matmul": "matmul", "__matmul__": "matmul"}  # PyTorch lays their examples side by side


def trace_module(module: nn.Module, shape: tuple[int, ...], like: Tensor) -> Graph:
    """The graph of a module in evaluation mode; one input has this `shape`, and the type and device of `like`."""
    graph, other = (_traced(module, shape, like, rows) for rows in ROWS)
    if (graph.steps, graph.output) != (other.steps, other.output):
        raise OpaqueError(f"its steps differ between batches of {ROWS[0]} and {ROWS[1]} examples")
    if not all(_equal(value, other.constants[name]) for name, value in graph.constants.items()):
        raise OpaqueError("its constants differ from call to call")
    return graph


def _traced(module: nn.Module, shape: tuple[int, ...], like: Tensor, rows: int) -> Graph:
    rng = torch.Generator().manual_seed(rows)
    X = torch.randn(rows, *shape, generator=rng, dtype=torch.float64).to(like)
    tracer = _Tracer(module, X)
    try:
        with torch.no_grad(), tracer, _Calls(tracer):
            output = module(X)
        return tracer.builder.finished(tracer.named(output), shape)
    except OpaqueError:
        raise
    except Exception as error:  # a foreign module may raise anything
        raise OpaqueError(f"it cannot be traced ({str(error).partition(chr(10))[0][:200]})") from error


def _equal(value: Tensor, other: Tensor) -> bool:
    """NaN is equal to itself here."""
    same = value.dtype == other.dtype and value.shape == other.shape
    return same and bool(((value == other) | ((value != value) & (other != other))).all())


class _Calls(TorchFunctionMode):
    """Notes products as they are called, and refuses what would take numbers out of PyTorch's sight."""

    def __init__(self, tracer: "_Tracer") -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in LOOKS:
            raise OpaqueError(f"it looks at numbers with '{name}', which may depend on the input")
        if name in PRODUCTS:
            return self.tracer.whole(PRODUCTS[name], func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


class _Tracer(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down every operation on the input, or on what was made of it; `names` are by the identity of tensors."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch would import its compiler at the first call, which takes seconds."""
        return False

    def __init__(self, module: nn.Module, X: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.builder = Builder(type(module).__name__, INPUT, {}, rows=len(X), beneath=True)
        self.names: dict[int, str] = {}
        self._lost: dict[int, str] = {}  # what depends on the input and has no name, and why
        self._sharing: dict[Any, list[Tensor]] = {}  # what depends on the input, by its memory
        self._writes: Counter[Any] = Counter()  # into what does not depend on it, by its memory
        self._stored = {id(value): name for name, value in (*module.named_parameters(), *module.named_buffers())}
        self._transposed: dict[int, Tensor] = {}
        self._kept: list[Any] = []  # an identity is only one as long as its tensor lives
        self._paused = False
        self._name(X, INPUT)

    def named(self, output: Any) -> str:
        if not isinstance(output, Tensor) or not self._derived(output):
            raise OpaqueError("its output does not depend on the input")
        self._require_named(output)
        return self.names[id(output)]

    def whole(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        """A call as one step, whatever PyTorch makes of it."""
        self._paused = True
        try:
            result = func(*args, **kwargs)
        finally:
            self._paused = False
        self._kept += [args, kwargs, result]
        if self._derived((args, kwargs)):
            self._note(name, args, kwargs, result)
        return result

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self._paused:
            return result
        self._kept += [args, kwargs, result]
        space, _, name = func._schema.name.partition("::")
        written = _written(func._schema, args, kwargs)
        if not self._derived((args, kwargs)):
            if name == "t":
                self._transposed[id(result)] = args[0]
            self._writes.update(map(_memory, written))
            return result
        if name == "_local_scalar_dense":
            raise OpaqueError("it decides by the numbers of its input")
        in_place = name.endswith("_") and len(written) == 1 and written[0] is args[0]
        if written and not in_place:
            raise OpaqueError(f"'{name}' writes its result into another value")
        if in_place and not self._derived(args[0]):
            raise OpaqueError(f"'{name}' writes into a constant what depends on the input")
        if not _tensors(result):
            raise OpaqueError(f"the operation '{name}' is not known")
        if space == "aten":
            self._note(*self._product(name, args, kwargs), kwargs, result)
        else:
            self._lose(result, f"the operation '{func._schema.name}' is not known")
        if in_place:
            self._overwrite(args[0])
        return result

    def _note(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        """What cannot be written down is lost, and so is all that is made of it."""
        try:
            self._add(name, args, kwargs, result)
        except UnknownOperation:
            self._lose(result, f"the operation '{name}' is not known")
        except (OpaqueError, InputError) as reason:
            self._lose(result, str(reason).removeprefix(f"{self.builder.path}: ").partition(";")[0])

    def _add(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        options = {key: self._argument(value) for key, value in kwargs.items()}
        value = self.builder.add(name, *map(self._argument, args), **options)
        first, *others = _tensors(result)
        if first.dtype not in FLOATS:
            raise OpaqueError(f"it changes its numbers to {first.dtype}")
        self._name(first, value.name)
        self._lose(others, f"the operation '{name}' has a second result")

    def _name(self, value: Tensor, name: str) -> None:
        self._kept.append(value)
        self.names[id(value)] = name
        self._sharing.setdefault(_memory(value), []).append(value)

    def _overwrite(self, value: Tensor) -> None:
        """All other names of its memory are lost."""
        memory = _memory(value)
        others = [each for each in self._sharing[memory] if each is not value]
        self._lose(others, "it takes what was overwritten in place")
        self._sharing[memory] = [value]

    def _lose(self, values: Any, reason: str) -> None:
        for each in _tensors(values):
            self._lost[id(each)] = reason
            self._sharing.setdefault(_memory(each), [])

    def _derived(self, arguments: Any) -> bool:
        """Whether they depend on the input."""
        known = (id(each) in self.names or _memory(each) in self._sharing for each in _tensors(arguments))
        return any(known) or any(id(each) in self._lost for each in _tensors(arguments))

    def _require_named(self, value: Tensor) -> None:
        if id(value) in self._lost:
            raise OpaqueError(self._lost[id(value)])
        if id(value) not in self.names:
            raise OpaqueError("it takes numbers of its input out of PyTorch's sight")

    def _product(self, name: str, args: Any, kwargs: Any) -> tuple[str, Any]:
        """A linear layer under its own name, so that its weights keep theirs."""
        weight = self._transposed.get(id(args[-1])) if name in ("addmm", "mm") and not kwargs else None
        if weight is None or id(args[-2]) not in self.names or (id(args[0]) in self.names and name == "addmm"):
            return name, args
        return "linear", (args[-2], weight, *args[:-2])

    def _argument(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._argument(each) for each in value]
        if not isinstance(value, Tensor):
            return _small(value)
        if self._derived(value):
            self._require_named(value)
            return GraphValue(self.names[id(value)])
        return GraphValue(self._constant(value))

    def _constant(self, value: Tensor) -> str:
        """As it is now: what is written into it later makes it another one."""
        writes = self._writes[_memory(value)]
        name = self._stored.setdefault(id(value), f"constant {len(self._stored)}")
        name = f"{name} after {writes} changes" if writes else name
        if name not in self.builder.constants:
            self.builder.constants[name] = value.detach().cpu().clone()
            self.builder.constant(name)
        return name


def _memory(value: Tensor) -> Any:
    """What views of one tensor have in common."""
    try:
        return value.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # of a kind that has no storage
        return f"tensor {id(value)}"


def _written(schema: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """The arguments that an operation writes into."""
    places = enumerate(schema.arguments)
    marked = [(place, each.name) for place, each in places if each.alias_info is not None and each.alias_info.is_write]
    given = [args[place] if place < len(args) else kwargs.get(name) for place, name in marked]
    return [each for each in given if isinstance(each, Tensor)]


def _tensors(thing: Any) -> list[Tensor]:
    if isinstance(thing, Tensor):
        return [thing]
    if isinstance(thing, dict):
        return _tensors(list(thing.values()))
    return [each for part in thing for each in _tensors(part)] if isinstance(thing, list | tuple) else []


def _small(value: Any) -> Any:
    """An end beyond all lengths is none."""
    return None if isinstance(value, int) and not isinstance(value, bool) and value >= 2**31 else value
