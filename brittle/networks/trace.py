"""A module as a graph of the one vocabulary: it is run once, and what PyTorch is asked to do is written down.

What does not depend on the input is a constant. A module that looks at the numbers of its input to decide what to do
has no graph.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from brittle.common.errors import InputError
from brittle.networks.graph import Builder, Graph, Value
from brittle.networks.operations import ALIASES, OPERATIONS
from brittle.networks.terms import OpaqueError

ROWS = 3
INPUT = "input"
LOOKS = ("numpy", "__array__", "tolist", "__dlpack__", "data_ptr", "untyped_storage", "storage", "apply_", "map_")
PRODUCTS = {"linear": "linear", "matmul": "matmul", "__matmul__": "matmul"}  # PyTorch lays their examples side by side
FIRST_OF = {  # what PyTorch runs beneath, and how many of its arguments have a meaning
    "native_batch_norm": ("batch_norm", 8), "max_pool2d_with_indices": ("max_pool2d", 6), "_softmax": ("softmax", 2),
    "_log_softmax": ("log_softmax", 2), "_prelu_kernel": ("prelu", 2), "_to_copy": ("identity", 1),
    "max": ("amax", 3),
}  # fmt: skip


def traced(module: nn.Module, shape: tuple[int, ...], like: Tensor) -> Graph:
    """The graph of a module in evaluation mode; one input has this `shape`, and the type and device of `like`."""
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(ROWS, *shape, generator=rng, dtype=torch.float64).to(like)
    tracer = _Tracer(module, X)
    try:
        with torch.no_grad(), tracer, _Calls(tracer):
            output = module(X)
    except OpaqueError:
        raise
    except InputError as error:
        raise OpaqueError(str(error).removeprefix(f"{tracer.builder.path}: ").partition(";")[0]) from None
    except Exception as error:  # a foreign module may raise anything
        raise OpaqueError(f"it cannot be traced ({str(error).partition(chr(10))[0][:200]})") from error
    name = tracer.names.get(id(output)) if isinstance(output, Tensor) else None
    if name is None:
        raise OpaqueError("its output does not depend on the input")
    return tracer.builder.finished(name, shape)


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
        self.builder = Builder(type(module).__name__, INPUT, {}, rows=ROWS)
        self.names: dict[int, str] = {id(X): INPUT}
        self._stored = {id(value): name for name, value in (*module.named_parameters(), *module.named_buffers())}
        self._transposed: dict[int, Tensor] = {}
        self._kept: list[Any] = [X]  # an identity is only one as long as its tensor lives
        self._paused = False

    def whole(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        """A call as one step, whatever PyTorch makes of it."""
        self._paused = True
        try:
            result = func(*args, **kwargs)
        finally:
            self._paused = False
        self._kept += [args, kwargs, result]
        if self._derived((args, kwargs)):
            self._add(name, args, kwargs, result)
        return result

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self._paused:
            return result
        self._kept += [args, kwargs, result]
        name = func._schema.name.partition("::")[2]
        if not self._derived((args, kwargs)):
            if name == "t":
                self._transposed[id(result)] = args[0]
            return result
        self._note(name, func, args, kwargs, result)
        return result

    def _note(self, name: str, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if name == "_local_scalar_dense":
            raise OpaqueError("it decides by the numbers of its input")
        name, count = FIRST_OF.get(name, (name, len(args)))
        plain = name.removesuffix("_")
        if ALIASES.get(plain, plain) not in OPERATIONS:
            raise OpaqueError(f"the operation '{name}' is not known")
        if name != plain and id(args[0]) not in self.names:
            raise OpaqueError(f"'{name}' writes into a constant what depends on the input")
        name, given = self._product(name, args[:count], kwargs)
        options = {} if func._schema.name.startswith("aten::_") else _meaningful(kwargs)
        self._add(name, given, options, result)

    def _add(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        options = {key: self._argument(value) for key, value in kwargs.items()}
        value = self.builder.add(name, *map(self._argument, args), **options)
        self.names[id(result[0] if isinstance(result, tuple) else result)] = value.name

    def _derived(self, arguments: Any) -> bool:
        """Whether they depend on the input."""
        return any(id(each) in self.names for each in _tensors(arguments))

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
            return (
                None
                if isinstance(value, torch.dtype | torch.device | torch.layout | torch.memory_format)
                else _small(value)
            )
        if id(value) in self.names:
            return Value(self.names[id(value)])
        name = self._stored.setdefault(id(value), f"constant {len(self._stored)}")
        if name not in self.builder.constants:
            self.builder.constants[name] = value.detach().cpu().clone()
            self.builder.constant(name)
        return Value(name)


def _tensors(thing: Any) -> list[Tensor]:
    if isinstance(thing, Tensor):
        return [thing]
    if isinstance(thing, dict):
        return _tensors(list(thing.values()))
    return [each for part in thing for each in _tensors(part)] if isinstance(thing, list | tuple) else []


def _meaningful(options: dict[str, Any]) -> dict[str, Any]:
    """Without those that only choose where and how."""
    return {
        name: value for name, value in options.items() if name not in ("memory_format", "dtype", "layout", "device")
    }


def _small(value: Any) -> Any:
    """An end beyond all lengths is none."""
    return None if isinstance(value, int) and not isinstance(value, bool) and value >= 2**31 else value
