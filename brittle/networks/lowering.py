"""What the operations of a graph are as affine maps and ReLUs; what only moves numbers about is asked where they go."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from brittle.common.errors import InputError
from brittle.networks.affine import Affine, Convolution
from brittle.networks.arithmetic import check_examples_apart, groups, matrix, number_places, numbers, per_axis
from brittle.networks.bends import Bends
from brittle.networks.circuit import Expression
from brittle.networks.graph import Graph, GraphStep, fill_arguments, last_uses
from brittle.networks.operations import OPERATIONS
from brittle.networks.terms import ALLOWANCE, CALL, Allowance, OpaqueError, require_entries

MOVES = (
    "flatten", "reshape", "view", "reshape_rows", "permute", "transpose", "t", "squeeze", "unsqueeze", "unflatten",
    "select", "slice",
)  # fmt: skip
SAME = ("identity", "dropout", "contiguous")
AVERAGES = ("avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d")


class Lowering(Bends):
    """Follows a graph; `parts` counts what it was made of."""

    def __init__(self, graph: Graph, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.graph, self.shape = graph, shape

    def output(self) -> Expression:
        values: dict[str, Any] = {self.graph.input: self.circuit.input(self.shape)}
        constants = self.graph.constants
        ends = last_uses(self.graph)
        for place, step in enumerate(self.graph.steps):
            value = self._value(step, fill_arguments(step.arguments, values, constants.__getitem__))
            values[step.output] = value
            if isinstance(value, Expression) and value.size == 0:
                raise OpaqueError(f"'{step.operation}' leaves nothing of an example")
            if isinstance(value, Expression):
                require_entries(0, work=4 * value.size + CALL * len(value.terms))
            for name in ends.get(place, ()):
                values.pop(name, None)
        result = values[self.graph.output]
        if not isinstance(result, Expression) or result.size == 0:
            raise OpaqueError("its output does not depend on the input")
        return result

    def layers(self) -> tuple[list[Affine], bool]:
        """The affine maps in float64, and whether all are layers of the graph as they were."""
        return self.circuit.layers(self.output())

    def _value(self, step: GraphStep, arguments: dict[str, Any]) -> Any:
        name = step.operation
        if not any(isinstance(each, Expression) for each in _flat(arguments.values())):
            return _computed(name, arguments)
        if name == "size":
            return (
                _BatchSize() if arguments["dim"] % (len(arguments["self"].shape) + 1) == 0 else _moved(name, arguments)
            )
        if name in SAME:
            return arguments.get("self", arguments.get("input"))
        if name in MOVES:
            return self._moved(name, arguments)
        if name not in LOWERED:
            raise OpaqueError(_reason(name))
        if any(isinstance(each, _BatchSize) for each in _flat(arguments.values())):
            raise OpaqueError(f"'{name}' depends on the number of examples")
        return LOWERED[name](self, **arguments)

    def _moved(self, name: str, arguments: dict[str, Any]) -> Expression:
        moved, shape = _moved(name, arguments)
        inner: Expression = arguments["self"]
        return inner.taken(moved, shape)

    def linear(self, input: Expression, weight: Any, bias: Any = None) -> Expression:
        W = matrix(weight)
        if input.shape[-1:] != W.shape[1:]:
            raise OpaqueError("a linear layer multiplies by what depends on the input")
        rest = input.shape[:-1]
        count = math.prod(rest)
        require_entries(count * W.size)
        outer = W if count == 1 else sparse.csr_array(sparse.kron(sparse.eye_array(count), W))
        offset = (input.offset.reshape(count, -1) @ W.T).reshape(-1)
        self.parts["linear layer{s}"] += 1
        result = input.mapped(outer, offset, (*rest, len(W)), plain=count == 1)
        return result if bias is None else self.add(result, bias)

    def addmm(self, self_: Any, mat1: Any, mat2: Any, beta: float = 1, alpha: float = 1) -> Expression:
        product = self.mul(self.matmul(mat1, mat2), alpha)
        return self.add(product, self_, alpha=beta)

    def matmul(self, first: Any, other: Any) -> Expression:
        if not isinstance(first, Expression) or isinstance(other, Expression) or other.ndim not in (1, 2):
            raise OpaqueError("it multiplies two values that depend on the input")
        result = self.linear(first, other.reshape(len(other), -1).T)
        return result.shaped(result.shape[: len(result.shape) + other.ndim - 2])

    def convolution(
        self, input: Expression, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Expression:  # fmt: skip
        """One axis is two with a height of 1."""
        kernel = torch.from_numpy(numbers(weight)).contiguous()
        axes = kernel.ndim - 2
        if axes not in (1, 2) or len(input.shape) != axes + 1:
            raise OpaqueError("a convolution has other axes than (channels, length) or (channels, height, width)")
        stride, dilation = per_axis(stride, axes, 1), per_axis(dilation, axes, 1)
        if isinstance(padding, str):
            input, padding = self._padded(input, padding, kernel.shape[2:], dilation[-axes:])
        channels, height, width = input.shape if axes == 2 else (input.shape[0], 1, input.shape[1])
        kernel = kernel if axes == 2 else kernel[:, :, None]
        options = (stride, per_axis(padding, axes, 0), dilation, groups)
        outer = Convolution(kernel, torch.zeros(len(kernel), dtype=torch.float64), (channels, height, width), *options)
        offset = outer.linear(torch.from_numpy(input.offset)[None])[0].numpy()
        self.parts["convolution{s}"] += 1
        shape = outer.result if axes == 2 else (outer.result[0], outer.result[2])
        result = input.mapped(outer, offset, shape, plain=True)
        return result if bias is None else result.shifted(np.repeat(numbers(bias), math.prod(shape[1:])))

    def _padded(
        self, input: Expression, words: str, sizes: Sequence[int], dilation: Sequence[int]
    ) -> tuple[Expression, Any]:
        """'same' pads more after than before where it must; 'valid' does not pad."""
        if words == "valid":
            return input, 0
        missing = [step * (size - 1) for step, size in zip(dilation, sizes, strict=True)]
        if all(each % 2 == 0 for each in missing):
            return input, [each // 2 for each in missing]
        pad = [side for each in reversed(missing) for side in (each // 2, each - each // 2)]
        return self.constant_pad_nd(input, pad), 0

    def aten_convolution(
        self, input: Expression, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
        output_padding: Any, groups: int,
    ) -> Expression:  # fmt: skip
        if transposed:
            raise OpaqueError("a transposed convolution is not read")
        return self.convolution(input, weight, bias, stride, padding, dilation, groups)

    def batch_norm(
        self, input: Expression, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool = False,
        eps: float = 1e-5,
    ) -> Expression:  # fmt: skip
        if training or running_mean is None or running_var is None:
            raise OpaqueError("it normalises by the batch")
        factors = 1 / np.sqrt(numbers(running_var) + eps)
        factors = factors if weight is None else factors * numbers(weight)
        shifts = (0.0 if bias is None else numbers(bias)) - numbers(running_mean) * factors
        self.parts["batch norm{s} folded"] += 1
        each = input.size // len(factors)
        return input.times(np.repeat(factors, each)).shifted(np.repeat(shifts, each))

    def average(self, name: str, inner: Expression, **options: Any) -> Expression:
        """Every channel is averaged in the same way, which is seen on unit vectors."""
        channels, *lengths = inner.shape
        count = math.prod(lengths)
        require_entries(count**2)
        units = torch.eye(count, dtype=torch.float64).reshape(count, 1, *lengths)
        pooled = OPERATIONS[name](units, **options)
        plane = sparse.csr_array(pooled.reshape(count, -1).T.numpy())
        outer = sparse.csr_array(sparse.kron(sparse.eye_array(channels), plane))
        self.parts["average{s}"] += 1
        return inner.mapped(outer, outer @ inner.offset, (channels, *pooled.shape[2:]))

    def mean(self, inner: Expression, dim: Any = None, keepdim: bool = False) -> Expression:
        result = self.sum(inner, dim, keepdim)
        return self.mul(result, result.size / inner.size)

    def mean_places(self, inner: Expression) -> Expression:
        return self.mean(inner, range(2, len(inner.shape) + 1), keepdim=True)

    def sum(self, inner: Expression, dim: Any = None, keepdim: bool = False) -> Expression:
        grouped, shape = groups(inner.shape, dim, keepdim)
        rows = np.repeat(np.arange(len(grouped)), grouped.shape[1])
        ones = np.ones(inner.size)
        outer = sparse.csr_array((ones, (rows, grouped.reshape(-1))), shape=(len(grouped), inner.size))
        return inner.mapped(outer, outer @ inner.offset, shape)

    def stack(self, tensors: Sequence[Any], dim: int = 0) -> Expression:
        return self._joined("stack", tensors, dim)

    def cat(self, tensors: Sequence[Any], dim: int = 0) -> Expression:
        return self._joined("cat", tensors, dim)

    def _joined(self, name: str, tensors: Sequence[Any], dim: int) -> Expression:
        whole = [each for each in tensors if not isinstance(each, Tensor) or each.numel() > 0]
        if not all(isinstance(each, Expression) for each in whole):
            raise OpaqueError("it joins constants to what depends on the input")
        starts = np.cumsum([0, *(each.size for each in whole)])
        places = [number_places(each.shape, start) for each, start in zip(whole, starts, strict=False)]
        moved, shape = check_examples_apart(OPERATIONS[name](places, dim))
        self.parts["concatenation{s}"] += 1
        return self.circuit.joined(whole).taken(moved, shape)

    def constant_pad_nd(self, inner: Expression, pad: Sequence[int], value: float = 0) -> Expression:
        """Nothing is taken where the padding lies."""
        if any(pad[2 * len(inner.shape) :]):
            raise OpaqueError("it mixes the examples of a batch")
        if not math.isfinite(value):
            raise OpaqueError("it pads with infinity")
        moved, shape = check_examples_apart(functional.pad(number_places(inner.shape), list(pad)))
        return inner.taken(moved, shape).shifted(np.where(moved < 0, float(value), 0.0))

    def pad(
        self, inner: Expression, pad: Sequence[int], mode: str = "constant", value: float | None = None
    ) -> Expression:
        if mode != "constant":
            raise OpaqueError(f"its padding is '{mode[:20]}', not constant")
        return self.constant_pad_nd(inner, pad, value or 0)


class _BatchSize(int):
    """The number of examples, which two stand for here."""

    def __new__(cls) -> "_BatchSize":
        return super().__new__(cls, 2)


def _flat(arguments: Any) -> list[Any]:
    return [each for argument in arguments for each in (argument if isinstance(argument, list | tuple) else [argument])]


def _computed(name: str, arguments: dict[str, Any]) -> Any:
    """A constant that is made of constants."""
    try:
        return OPERATIONS[name](**arguments)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise OpaqueError(f"'{name}' of constants cannot be computed") from error


def _moved(name: str, arguments: dict[str, Any]) -> Any:
    places = {
        key: number_places(each.shape) if isinstance(each, Expression) else each for key, each in arguments.items()
    }
    try:
        result = OPERATIONS[name](**places)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise OpaqueError(f"'{name}' cannot be done on single examples") from error
    return check_examples_apart(result) if isinstance(result, Tensor) else result


def _reason(name: str) -> str:
    kinds = ("gelu", "elu", "tanh", "sigmoid", "silu", "softplus", "hardswish", "erf", "exp", "log", "sqrt")
    return f"{name} is no ReLU" if name in kinds else f"{name} is no affine map"


def _named(method: Callable[..., Expression]) -> Callable[..., Expression]:
    """ATen calls the first argument `self`, which Python's methods have for themselves."""

    def call(lowering: Lowering, **arguments: Any) -> Expression:
        first = [arguments.pop("self")] if "self" in arguments else []
        return method(lowering, *first, **arguments)

    return call


def _averaged(name: str) -> Callable[..., Expression]:
    def call(lowering: Lowering, **arguments: Any) -> Expression:
        return lowering.average(name, arguments.pop("self"), **arguments)

    return call


LOWERED: dict[str, Callable[..., Expression]] = {
    name: _named(getattr(Lowering, name))
    for name in (
        "linear", "addmm", "matmul", "batch_norm", "add", "sub", "rsub", "mul", "div", "neg", "relu", "leaky_relu",
        "prelu", "prelu_spread",
        "clamp", "hardtanh", "relu6", "hardsigmoid", "abs", "maximum", "minimum", "mean", "mean_places", "sum",
        "amax", "cat", "stack", "constant_pad_nd", "pad",
    )
}  # fmt: skip
LOWERED |= {name: _named(Lowering.convolution) for name in ("conv1d", "conv2d")}
LOWERED |= {name: _named(Lowering.max_pool) for name in ("max_pool1d", "max_pool2d")}
LOWERED |= {name: _averaged(name) for name in AVERAGES}
LOWERED |= {
    "convolution": _named(Lowering.aten_convolution), "mm": _named(Lowering.matmul),
    "clamp_min": _named(Lowering.clamp), "clamp_max": _named(Lowering.clamp),
}  # fmt: skip


def lower_graph(graph: Graph, shape: tuple[int, ...]) -> tuple[list[Affine], bool, Counter[str]]:
    """The graph's affine maps in float64, whether they are its layers as they were, and what it was made of.

    Raises OpaqueError where it is anything else, or too large.
    """
    lowering = Lowering(graph, shape)
    counted = ALLOWANCE.set(Allowance())
    try:
        layers, plain = lowering.layers()
    except (InputError, MemoryError, TypeError, ValueError, IndexError, RuntimeError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise OpaqueError(f"it cannot be written as layers ({reason})") from error
    finally:
        ALLOWANCE.reset(counted)
    return layers, plain, lowering.parts
