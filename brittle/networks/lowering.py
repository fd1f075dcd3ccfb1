"""What the operations of a graph are as affine maps and ReLUs.

    leaky(x) = φ(x) - s φ(-x)      clamp(x, a, b) = a + φ(x - a) - φ(x - b)      max(a, b) = a + φ(b - a)

Whatever only moves numbers about is found by letting it move their places.
"""

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
from brittle.networks.circuit import Circuit, Expression
from brittle.networks.graph import Graph, Step, filled, last_uses
from brittle.networks.operations import OPERATIONS
from brittle.networks.terms import Array, OpaqueError, Places, joint, require_entries, windows

MOVES = (
    "flatten", "reshape", "view", "reshape_rows", "permute", "transpose", "t", "squeeze", "unsqueeze", "select",
    "slice",
)  # fmt: skip
SAME = ("identity", "dropout", "contiguous")
LARGEST_WORK = 2**28  # entries of all values on the way
AVERAGES = ("avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d")


class Lowering:
    """Follows a graph; `parts` counts what it was made of."""

    def __init__(self, graph: Graph, shape: tuple[int, ...]) -> None:
        self.graph, self.shape = graph, shape
        self.circuit, self.parts = Circuit(), Counter[str]()

    def output(self) -> Expression:
        values: dict[str, Any] = {self.graph.input: self.circuit.input(self.shape)}
        constants = self.graph.constants
        ends, work = last_uses(self.graph), 0
        for place, step in enumerate(self.graph.steps):
            value = self._value(step, filled(step.arguments, values, constants.__getitem__))
            values[step.output] = value
            work += value.entries if isinstance(value, Expression) else 0
            if work > LARGEST_WORK:
                raise OpaqueError(f"it would take more than {LARGEST_WORK} entries to put together")
            for name in ends.get(place, ()):
                values.pop(name, None)
        result = values[self.graph.output]
        if not isinstance(result, Expression) or result.size == 0:
            raise OpaqueError("its output does not depend on the input")
        return result

    def layers(self) -> tuple[list[Affine], bool]:
        """The affine maps in float64, and whether all are layers of the graph as they were."""
        return self.circuit.layers(self.output())

    def _value(self, step: Step, arguments: dict[str, Any]) -> Any:
        name = step.operation
        if not any(isinstance(each, Expression) for each in _flat(arguments.values())):
            return _computed(name, arguments)
        if name == "size":
            return _Rows() if arguments["dim"] % (len(arguments["self"].shape) + 1) == 0 else _moved(name, arguments)
        if name in SAME:
            return arguments.get("self", arguments.get("input"))
        if name in MOVES:
            return self._moved(name, arguments)
        if name not in LOWERED:
            raise OpaqueError(_reason(name))
        if any(isinstance(each, _Rows) for each in _flat(arguments.values())):
            raise OpaqueError(f"'{name}' depends on the number of examples")
        return LOWERED[name](self, **arguments)

    def _moved(self, name: str, arguments: dict[str, Any]) -> Expression:
        moved, shape = _moved(name, arguments)
        inner: Expression = arguments["self"]
        return inner.taken(moved, shape)

    def linear(self, input: Expression, weight: Any, bias: Any = None) -> Expression:
        W = _matrix(weight)
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
        kernel = torch.from_numpy(_numbers(weight)).contiguous()
        axes = kernel.ndim - 2
        if axes not in (1, 2) or len(input.shape) != axes + 1:
            raise OpaqueError("a convolution has other axes than (channels, length) or (channels, height, width)")
        stride, dilation = _lengths(stride, axes, 1), _lengths(dilation, axes, 1)
        if isinstance(padding, str):
            input, padding = self._padded(input, padding, kernel.shape[2:], dilation[-axes:])
        channels, height, width = input.shape if axes == 2 else (input.shape[0], 1, input.shape[1])
        kernel = kernel if axes == 2 else kernel[:, :, None]
        options = (stride, _lengths(padding, axes, 0), dilation, groups)
        outer = Convolution(kernel, torch.zeros(len(kernel), dtype=torch.float64), (channels, height, width), *options)
        offset = outer.linear(torch.from_numpy(input.offset)[None])[0].numpy()
        self.parts["convolution{s}"] += 1
        shape = outer.result if axes == 2 else (outer.result[0], outer.result[2])
        result = input.mapped(outer, offset, shape, plain=True)
        return result if bias is None else result.shifted(np.repeat(_numbers(bias), math.prod(shape[1:])))

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
        self, input: Expression, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
        momentum: float, eps: float, cudnn_enabled: bool = False,
    ) -> Expression:  # fmt: skip
        if training or running_mean is None or running_var is None:
            raise OpaqueError("it normalises by the batch")
        factors = 1 / np.sqrt(_numbers(running_var) + eps)
        factors = factors if weight is None else factors * _numbers(weight)
        shifts = (0.0 if bias is None else _numbers(bias)) - _numbers(running_mean) * factors
        self.parts["batch norm{s} folded"] += 1
        each = input.size // len(factors)
        return input.times(np.repeat(factors, each)).shifted(np.repeat(shifts, each))

    def add(self, first: Any, other: Any, alpha: float = 1) -> Expression:
        if not isinstance(other, Expression):
            return self._shifted(first, _numbers(other) * alpha)
        if not isinstance(first, Expression):
            return self._shifted(self.mul(other, alpha), _numbers(first))
        first, other = _alike(first, self.mul(other, alpha))
        self.parts["sum{s} of branches"] += 1
        return self.circuit.sum(first, other)

    def sub(self, first: Any, other: Any, alpha: float = 1) -> Expression:
        return self.add(first, other, -alpha)

    def rsub(self, first: Any, other: Any, alpha: float = 1) -> Expression:
        return self.sub(other, first, alpha)

    def mul(self, first: Any, other: Any) -> Expression:
        if isinstance(first, Expression) and isinstance(other, Expression):
            raise OpaqueError("it multiplies two values that depend on the input")
        inner, factor = (first, other) if isinstance(first, Expression) else (other, first)
        if not isinstance(factor, Tensor) and factor == 1:
            return inner
        inner, factors = _spread(inner, _numbers(factor))
        return inner.times(factors)

    def div(self, first: Any, other: Any) -> Expression:
        if isinstance(other, Expression):
            raise OpaqueError("it divides by what depends on the input")
        return self.mul(first, torch.from_numpy(np.asarray(1 / _numbers(other))))

    def neg(self, inner: Expression) -> Expression:
        return self.mul(inner, -1.0)

    def _shifted(self, inner: Expression, shift: Array) -> Expression:
        inner, shifts = _spread(inner, shift)
        return inner.shifted(shifts)

    def relu(self, inner: Expression) -> Expression:
        return self.circuit.relu(inner)

    def leaky_relu(self, inner: Expression, negative_slope: float = 0.01) -> Expression:
        return self._two_slopes(inner, np.full(inner.size, negative_slope))

    def prelu(self, inner: Expression, weight: Any) -> Expression:
        slopes = _numbers(weight).reshape(-1)
        return self._two_slopes(inner, np.repeat(slopes, inner.size // len(slopes)))

    def _two_slopes(self, inner: Expression, slopes: Array) -> Expression:
        self.parts["leaky activation{s} as two ReLUs each"] += 1
        below = self.relu(inner.times(np.full(inner.size, -1.0)))
        return self.circuit.sum(self.relu(inner), below.times(-slopes))

    def clamp(self, inner: Expression, min: Any = None, max: Any = None) -> Expression:
        """The limits may be arrays."""
        if min is None and max is None:
            return inner
        if min is None:
            return self.neg(self.clamp(self.neg(inner), min=-_numbers(max)))
        inner, low = _spread(inner, _numbers(min))
        above = self.relu(inner.shifted(-low))
        if max is None:
            return above.shifted(low)
        self.parts["clamp{s} as two ReLUs each"] += 1
        inner, high = _spread(inner, _numbers(max))
        beyond = self.relu(inner.shifted(-np.maximum(low, high)))
        return self.circuit.sum(above, self.neg(beyond)).shifted(np.minimum(low, high))

    def hardtanh(self, inner: Expression, min_val: float = -1, max_val: float = 1) -> Expression:
        return self.clamp(inner, min_val, max_val)

    def relu6(self, inner: Expression) -> Expression:
        return self.clamp(inner, 0.0, 6.0)

    def hardsigmoid(self, inner: Expression) -> Expression:
        return self.mul(self.clamp(self._shifted(inner, _numbers(3.0)), 0.0, 6.0), 1 / 6)

    def abs(self, inner: Expression) -> Expression:
        return self.circuit.sum(self.relu(inner), self.relu(self.neg(inner)))

    def maximum(self, first: Any, other: Any) -> Expression:
        if not isinstance(first, Expression) or not isinstance(other, Expression):
            inner, limit = (first, other) if isinstance(first, Expression) else (other, first)
            return self.clamp(inner, min=limit)
        return self._larger(*_alike(first, other))

    def minimum(self, first: Any, other: Any) -> Expression:
        return self.neg(self.maximum(*(self.neg(x) if isinstance(x, Expression) else -x for x in (first, other))))

    def _larger(self, first: Expression, other: Expression) -> Expression:
        difference = self.circuit.sum(other, self.neg(first))
        return self.circuit.sum(first, self.relu(difference))

    def max_pool(
        self, inner: Expression, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Expression:  # fmt: skip
        """A tree of pairs for every window."""
        axes = len(inner.shape) - 1
        channels, lengths = inner.shape[0], _lengths(inner.shape[1:], axes, 1)
        sizes, paddings = _lengths(kernel_size, axes, 1), _lengths(padding, axes, 0)
        dilations, strides = _lengths(dilation, axes, 1), _lengths(stride or kernel_size, axes, 1)
        probe = torch.empty(1, 1, *lengths, device="meta")
        counts = functional.max_pool2d(probe, sizes, strides, paddings, dilations, ceil_mode).shape[2:]
        require_entries(channels * math.prod(counts) * math.prod(sizes))
        seen = [windows(*axis) for axis in zip(lengths, counts, sizes, strides, paddings, dilations, strict=True)]
        plane = joint(seen[0], seen[1], lengths[1]).reshape(math.prod(counts), -1)
        plane = np.where(plane >= 0, plane, plane.max(1, keepdims=True))  # what lies outside is never the largest
        offsets = np.arange(channels)[:, None, None] * math.prod(lengths)
        neurons = self.circuit.neurons
        result = self._largest(inner, (plane + offsets).reshape(-1, plane.shape[1]))
        self.parts[f"max pooling{{s}} as {self.circuit.neurons - neurons} ReLUs"] += 1
        return result.shaped((channels, *counts[-axes:]))

    def _largest(self, inner: Expression, candidates: Places) -> Expression:
        """Of every row of places."""
        while candidates.shape[1] > 1:
            rows, pairs = len(candidates), candidates.shape[1] // 2
            first, other = (_at(inner, candidates[:, side : 2 * pairs : 2].reshape(-1)) for side in (0, 1))
            parts = [self._larger(first, other)]
            if candidates.shape[1] % 2:
                parts.append(_at(inner, candidates[:, -1]))
            inner = self.circuit.joined(parts)
            grid = np.arange(rows * pairs).reshape(rows, pairs)
            odd = np.arange(rows * pairs, inner.size).reshape(rows, -1)
            candidates = np.concatenate([grid, odd], 1)
        return _at(inner, candidates[:, 0])

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

    def mean(self, inner: Expression, dim: Any, keepdim: bool = False, dtype: None = None) -> Expression:
        result = self.sum(inner, dim, keepdim)
        return self.mul(result, result.size / inner.size)

    def sum(self, inner: Expression, dim: Any, keepdim: bool = False, dtype: None = None) -> Expression:
        axes = {each % (len(inner.shape) + 1) for each in ([dim] if isinstance(dim, int) else dim)}
        if 0 in axes:
            raise OpaqueError("it mixes the examples of a batch")
        places = np.arange(inner.size).reshape(1, *inner.shape)
        kept = [axis for axis in range(places.ndim) if axis not in axes]
        grouped = places.transpose(*kept, *sorted(axes)).reshape(-1, math.prod(places.shape[axis] for axis in axes))
        rows = np.repeat(np.arange(len(grouped)), grouped.shape[1])
        ones = np.ones(inner.size)
        outer = sparse.csr_array((ones, (rows, grouped.reshape(-1))), shape=(len(grouped), inner.size))
        shape = [
            1 if axis in axes else length for axis, length in enumerate(places.shape) if keepdim or axis not in axes
        ]
        return inner.mapped(outer, outer @ inner.offset, shape[1:])

    def cat(self, tensors: Sequence[Any], dim: int = 0) -> Expression:
        whole = [each for each in tensors if not isinstance(each, Tensor) or each.numel() > 0]
        if not all(isinstance(each, Expression) for each in whole):
            raise OpaqueError("it joins constants to what depends on the input")
        starts = np.cumsum([0, *(each.size for each in whole)])
        places = [_places(each.shape, start) for each, start in zip(whole, starts, strict=False)]
        moved, shape = _apart(OPERATIONS["cat"](places, dim))
        self.parts["concatenation{s}"] += 1
        return self.circuit.joined(whole).taken(moved, shape)

    def constant_pad_nd(self, inner: Expression, pad: Sequence[int], value: float = 0) -> Expression:
        """Nothing is taken where the padding lies."""
        moved, shape = _apart(functional.pad(_places(inner.shape), list(pad)))
        return inner.taken(moved, shape).shifted(np.where(moved < 0, float(value), 0.0))


class _Rows(int):
    """The number of examples, which two stand for here."""

    def __new__(cls) -> "_Rows":
        return super().__new__(cls, 2)


def _flat(arguments: Any) -> list[Any]:
    return [each for argument in arguments for each in (argument if isinstance(argument, list | tuple) else [argument])]


def _computed(name: str, arguments: dict[str, Any]) -> Any:
    """A constant that is made of constants."""
    try:
        return OPERATIONS[name](**arguments)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise OpaqueError(f"'{name}' of constants cannot be computed") from error


def _numbers(value: Any) -> Array:
    return value.detach().double().numpy() if isinstance(value, Tensor) else np.asarray(value, dtype=np.float64)


def _matrix(weight: Any) -> Array:
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise OpaqueError("a linear layer has weights that are no matrix")
    return _numbers(weight)


def _lengths(value: Any, axes: int, before: int) -> tuple[int, int]:
    """One number for all axes or one for each; with one axis there is another of no effect before it."""
    values = [value] * axes if isinstance(value, int) else list(value) * (axes // len(value))
    first, second = values if axes == 2 else (before, values[0])
    return first, second


def _places(shape: Sequence[int], start: int = 0) -> Tensor:
    """The places of two examples, those of the second negative; 0 is none."""
    count = math.prod(shape)
    one = torch.arange(start + 1, start + count + 1).reshape(1, *shape)
    return torch.cat([one, -one])


def _apart(places: Tensor) -> tuple[Places, tuple[int, ...]]:
    """Where the numbers of one example went, -1 where there are none; the examples must not be mixed."""
    apart = len(places) == 2 and bool((places[0] >= 0).all()) and torch.equal(places[1], -places[0])
    if not apart:
        raise OpaqueError("it mixes the examples of a batch")
    return places[0].reshape(-1).numpy() - 1, tuple(places.shape[1:])


def _moved(name: str, arguments: dict[str, Any]) -> Any:
    places = {key: _places(each.shape) if isinstance(each, Expression) else each for key, each in arguments.items()}
    try:
        result = OPERATIONS[name](**places)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise OpaqueError(f"'{name}' cannot be done on single examples") from error
    return _apart(result) if isinstance(result, Tensor) else result


def _at(inner: Expression, places: Places) -> Expression:
    return inner.taken(places, (len(places),))


def _alike(first: Expression, other: Expression) -> tuple[Expression, Expression]:
    """Both in the shape that they have together."""
    if len(first.shape) != len(other.shape):
        raise OpaqueError("it joins values whose examples do not line up")
    shape = _together(first.shape, other.shape)
    return _broadcast(first, shape), _broadcast(other, shape)


def _together(first: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(first, other)
    except ValueError:
        raise OpaqueError(f"it joins values of the shapes {first} and {other}") from None


def _broadcast(inner: Expression, shape: tuple[int, ...]) -> Expression:
    places = np.broadcast_to(np.arange(inner.size).reshape(inner.shape), shape)
    return inner.taken(places.reshape(-1), shape)


def _spread(inner: Expression, constant: Array) -> tuple[Expression, Array]:
    """A constant as one number for each of the expression's, in the shape that both have together."""
    shape = _together((1, *inner.shape), constant.shape)
    if len(shape) != len(inner.shape) + 1 or shape[0] != 1:
        raise OpaqueError("it adds constants that differ between examples")
    spread = np.ascontiguousarray(np.broadcast_to(constant, shape)).reshape(-1)
    return _broadcast(inner, shape[1:]), spread


def _reason(name: str) -> str:
    kinds = ("gelu", "elu", "tanh", "sigmoid", "silu", "softplus", "hardswish", "erf", "exp", "sqrt")
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
        "prelu", "clamp", "hardtanh", "relu6", "hardsigmoid", "abs", "maximum", "minimum", "mean", "sum", "cat",
        "constant_pad_nd",
    )
}  # fmt: skip
LOWERED |= {name: _named(Lowering.convolution) for name in ("conv1d", "conv2d")}
LOWERED |= {name: _named(Lowering.max_pool) for name in ("max_pool1d", "max_pool2d")}
LOWERED |= {name: _averaged(name) for name in AVERAGES}
LOWERED |= {
    "convolution": _named(Lowering.aten_convolution), "mm": _named(Lowering.matmul),
    "clamp_min": _named(Lowering.clamp), "clamp_max": _named(Lowering.clamp),
}  # fmt: skip


def lowered(graph: Graph, shape: tuple[int, ...]) -> tuple[list[Affine], bool, Counter[str]]:
    """The graph's affine maps in float64, whether they are its layers as they were, and what it was made of.

    Raises OpaqueError where it is anything else, or too large.
    """
    lowering = Lowering(graph, shape)
    try:
        layers, plain = lowering.layers()
    except (InputError, MemoryError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise OpaqueError(f"it cannot be written as layers ({reason})") from error
    return layers, plain, lowering.parts
