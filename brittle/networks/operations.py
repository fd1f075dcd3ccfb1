"""The one vocabulary of foreign networks: every operation that a file may ask for, under its ATen name.

Readers of ONNX, TorchScript and exported programs translate into these names and arguments; nothing else is ever run.
The arguments have ATen's names and order, and their annotations say which values are read. What is marked `Unread` is
taken with the values that leave the function what it is; all other arguments and values are refused.
"""

import builtins
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor
from torch.nn import functional

from brittle.common.errors import require

Lengths = Annotated[Any, int | Sequence[int]]  # one whole number for all axes, or one for each
Number = Annotated[Any, Tensor | float]


@dataclass(frozen=True)
class Unread:
    """Marks an argument that is not read, because the function is the same for all `values` (all there are if None)."""

    values: tuple[Any, ...] | None = None

    def accepts(self, value: Any) -> bool:
        return self.values is None or any(value is each or value == each for each in self.values)


SCRIPT_TYPES = {6: torch.float32, 7: torch.float64}  # TorchScript's numbers for them
FloatType = Annotated[Any, Unread((None, torch.float32, torch.float64, *SCRIPT_TYPES))]
Layout = Annotated[Any, Unread()]  # where and how the numbers lie, and by which implementation they are found
Never = Annotated[bool, Unread((False,))]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return functional.linear(input, weight, bias)


def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    return torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Lengths, padding: Lengths, dilation: Lengths,
    transposed: bool, output_padding: Lengths, groups: int, benchmark: Layout = False, deterministic: Layout = False,
    cudnn_enabled: Layout = False, allow_tf32: Layout = False,
) -> Tensor:  # fmt: skip
    require(not transposed, "a transposed convolution is not read")
    return _convolve(weight.ndim - 2, input, weight, bias, stride, padding, dilation, groups)


def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Lengths = 1, padding: Lengths | str = 0,
    dilation: Lengths = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Lengths = 1, padding: Lengths | str = 0,
    dilation: Lengths = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


def _convolve(
    axes: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    require(axes in (1, 2) and weight.ndim == axes + 2, f"the kernel has the shape {tuple(weight.shape)}")
    require(input.ndim == weight.ndim, f"the kernel has {weight.ndim} axes and the input {input.ndim}")
    _positive(stride, dilation, groups)
    run = functional.conv1d if axes == 1 else functional.conv2d
    return run(input, weight, bias, stride, padding, dilation, groups)


def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool = False, momentum: Layout = 0.0, eps: float = 1e-5, cudnn_enabled: Layout = False,
) -> Tensor:  # fmt: skip
    require(not training, "it normalises by the batch; save the module in evaluation mode")
    return functional.batch_norm(input, running_mean, running_var, weight, bias, False, 0.0, eps)


def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5, cudnn_enable: Layout = True,
) -> Tensor:  # fmt: skip
    return functional.layer_norm(input, list(normalized_shape), weight, bias, eps)


def max_pool2d(
    self: Tensor, kernel_size: Lengths, stride: Lengths = (), padding: Lengths = 0, dilation: Lengths = 1,
    ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    _positive(kernel_size, stride, dilation)
    return functional.max_pool2d(self, kernel_size, stride or None, padding, dilation, ceil_mode)


def max_pool1d(
    self: Tensor, kernel_size: Lengths, stride: Lengths = (), padding: Lengths = 0, dilation: Lengths = 1,
    ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    _positive(kernel_size, stride, dilation)
    return functional.max_pool1d(self, kernel_size, stride or None, padding, dilation, ceil_mode)


def avg_pool1d(
    self: Tensor, kernel_size: Lengths, stride: Lengths = (), padding: Lengths = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    _positive(kernel_size, stride)
    return functional.avg_pool1d(self, kernel_size, stride or kernel_size, padding, ceil_mode, count_include_pad)


def adaptive_avg_pool1d(self: Tensor, output_size: Lengths) -> Tensor:
    _positive(output_size)
    return functional.adaptive_avg_pool1d(self, output_size)


def avg_pool2d(
    self: Tensor, kernel_size: Lengths, stride: Lengths = (), padding: Lengths = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    _positive(kernel_size, stride)
    options = (stride or None, padding, ceil_mode, count_include_pad, divisor_override)
    return functional.avg_pool2d(self, kernel_size, *options)


def adaptive_avg_pool2d(self: Tensor, output_size: Lengths) -> Tensor:
    _positive(output_size)
    return functional.adaptive_avg_pool2d(self, output_size)


def add(self: Number, other: Number, alpha: float = 1) -> Tensor:
    return torch.add(self, other, alpha=alpha)


def sub(self: Number, other: Number, alpha: float = 1) -> Tensor:
    return torch.sub(self, other, alpha=alpha)


def rsub(self: Tensor, other: Number, alpha: float = 1) -> Tensor:
    return torch.rsub(self, other, alpha=alpha)


def mul(self: Number, other: Number) -> Tensor:
    return torch.mul(self, other)


def div(self: Number, other: Number) -> Tensor:
    return torch.div(self, other)


def clamp(self: Tensor, min: Number | None = None, max: Number | None = None) -> Tensor:
    return torch.clamp(self, min, max)


def clamp_min(self: Tensor, min: Number) -> Tensor:
    return torch.clamp(self, min)


def clamp_max(self: Tensor, max: Number) -> Tensor:
    return torch.clamp(self, None, max)


def softmax(self: Tensor, dim: int, dtype: FloatType = None) -> Tensor:
    _within_rows(self, dim)
    return torch.softmax(self, dim)


def log_softmax(self: Tensor, dim: int, dtype: FloatType = None) -> Tensor:
    _within_rows(self, dim)
    return torch.log_softmax(self, dim)


def softmax_rows(self: Tensor) -> Tensor:
    """Not ATen's: over all numbers of every example."""
    return torch.softmax(self.flatten(1), 1).reshape(self.shape)


def log_softmax_rows(self: Tensor) -> Tensor:
    """Not ATen's: the logarithm of that."""
    return torch.log_softmax(self.flatten(1), 1).reshape(self.shape)


def mean(self: Tensor, dim: Lengths | None = None, keepdim: bool = False, dtype: FloatType = None) -> Tensor:
    return torch.mean(self, _axes(self, dim), keepdim)


def mean_places(self: Tensor) -> Tensor:
    """Not ATen's: of every channel, over all axes behind it, which stay."""
    return self.flatten(2).mean(2).reshape(*self.shape[:2], *[1] * (self.ndim - 2))


def sum(self: Tensor, dim: Lengths | None = None, keepdim: bool = False, dtype: FloatType = None) -> Tensor:
    return torch.sum(self, _axes(self, dim), keepdim)


def amax(self: Tensor, dim: Lengths | None = None, keepdim: bool = False) -> Tensor:
    return torch.amax(self, _axes(self, dim), keepdim)


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    require(len(tensors) > 0, "there is nothing to join")
    return torch.stack(list(tensors), dim)


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    require(len(tensors) > 0, "there is nothing to join")
    _within_rows(tensors[0], dim)
    return torch.cat(list(tensors), dim)


def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    return torch.flatten(self, start_dim, end_dim)


def reshape(self: Tensor, shape: Sequence[int]) -> Tensor:
    return torch.reshape(self, tuple(shape))


def view(self: Tensor, size: Sequence[int]) -> Tensor:
    return torch.reshape(self, tuple(size))


def reshape_rows(self: Tensor, shape: Sequence[int]) -> Tensor:
    """Not ATen's: every example to this shape, whatever their number."""
    return torch.reshape(self, (self.shape[0], *shape))


def permute(self: Tensor, dims: Sequence[int]) -> Tensor:
    return torch.permute(self, tuple(dims))


def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    return torch.transpose(self, dim0, dim1)


def t(self: Tensor) -> Tensor:
    return torch.t(self)


def squeeze(self: Tensor, dim: Lengths | None = None) -> Tensor:
    """Without axes all of length 1, but never that of the examples."""
    if dim is None:
        return torch.reshape(self, (self.shape[0], *(length for length in self.shape[1:] if length != 1)))
    _within_rows(self, *_axes(self, dim))
    return torch.squeeze(self, dim)


def unsqueeze(self: Tensor, dim: int) -> Tensor:
    return torch.unsqueeze(self, dim)


def unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    return torch.unflatten(self, dim, tuple(sizes))


def select(self: Tensor, dim: int, index: int) -> Tensor:
    return torch.select(self, dim, index)


def slice(self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    _positive(step)
    places = [builtins.slice(None)] * self.ndim
    places[dim] = builtins.slice(start, end, step)
    return self[tuple(places)]


def constant_pad_nd(self: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    require(not any(pad[2 * (self.ndim - 1) :]), "it mixes the examples of a batch")
    return functional.pad(self, list(pad), value=value)


def pad(self: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    require(mode == "constant", f"its padding is '{mode[:20]}', not constant")
    return constant_pad_nd(self, pad, value or 0)


def size(self: Tensor, dim: int) -> int:
    return self.shape[dim]


def identity(self: Tensor) -> Tensor:
    return self


def dropout(input: Tensor, p: Layout = 0.5, train: Layout = False) -> Tensor:
    """As in evaluation: whoever exports a network in training mode means the network."""
    return input


def contiguous(self: Tensor, memory_format: Layout = None) -> Tensor:
    return self


def relu(self: Tensor) -> Tensor:
    return torch.relu(self)


def leaky_relu(self: Tensor, negative_slope: float = 0.01) -> Tensor:
    return functional.leaky_relu(self, negative_slope)


def prelu(self: Tensor, weight: Tensor) -> Tensor:
    return functional.prelu(self, weight.reshape(-1))


def prelu_spread(self: Tensor, weight: Tensor) -> Tensor:
    """Not ATen's: the slopes lie beside the numbers as in arithmetic, from the last axis on."""
    return torch.where(self > 0, self, self * weight)


def elu(self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    require(scale == 1 and input_scale == 1, "an ELU with scales is not read")
    return functional.elu(self, alpha)


def gelu(self: Tensor, approximate: str = "none") -> Tensor:
    return functional.gelu(self, approximate=approximate)


def hardtanh(self: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    return torch.clamp(self, min_val, max_val)


def softplus(self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    return functional.softplus(self, beta, threshold)


def pow(self: Number, exponent: Number) -> Tensor:
    return torch.pow(self, exponent)


def _to_copy(
    self: Tensor, dtype: FloatType = None, layout: Layout = None, device: Layout = None, pin_memory: Layout = None,
    non_blocking: Layout = False, memory_format: Layout = None,
) -> Tensor:  # fmt: skip
    return self


def _softmax(self: Tensor, dim: int, half_to_float: Never) -> Tensor:
    return softmax(self, dim)


def _batch_norm_in_evaluation(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    momentum: Layout, eps: float,
) -> Tensor:  # fmt: skip
    return batch_norm(input, weight, bias, running_mean, running_var, eps=eps)


def _max_over_axis(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return amax(self, dim, keepdim)


def _plain(function: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def run(self: Tensor) -> Tensor:
        return function(self)

    return run


def _pair(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def run(self: Tensor, other: Tensor) -> Tensor:
        return function(self, other)

    return run


def _positive(*lengths: Lengths) -> None:
    for each in lengths:
        values = [each] if isinstance(each, int) else list(each)
        require(all(isinstance(value, int) and value > 0 for value in values), f"{each} must be positive")


def _axes(self: Tensor, dim: Lengths | None) -> list[int]:
    axes = [dim] if isinstance(dim, int) else list(dim or ())
    require(len(axes) > 0, "it mixes the examples of a batch")
    _within_rows(self, *axes)
    return axes


def _within_rows(self: Tensor, *dims: int) -> None:
    require(all(dim % self.ndim != 0 for dim in dims), "it mixes the examples of a batch")


Operation = Callable[..., Any]
OPERATIONS: dict[str, Operation] = {
    operation.__name__: operation
    for operation in (
        linear, addmm, convolution, conv1d, conv2d, batch_norm, layer_norm, max_pool2d, avg_pool2d, adaptive_avg_pool2d,
        max_pool1d, avg_pool1d, adaptive_avg_pool1d, add, sub, rsub, mul, div, clamp, clamp_min, clamp_max, softmax,
        log_softmax, softmax_rows, log_softmax_rows, mean, mean_places, sum, amax, stack, cat, flatten, reshape, view,
        reshape_rows, permute, transpose, t, squeeze, unsqueeze, unflatten, select, slice, constant_pad_nd, pad, size,
        identity, dropout, contiguous, relu, leaky_relu, prelu, prelu_spread, elu, gelu, hardtanh, softplus, pow,
    )
}  # fmt: skip
OPERATIONS |= {
    name: _plain(getattr(torch, name)) for name in ("sigmoid", "tanh", "abs", "neg", "exp", "log", "sqrt", "erf")
}
OPERATIONS |= {name: _plain(getattr(functional, name)) for name in ("relu6", "silu", "hardsigmoid", "hardswish")}
OPERATIONS |= {name: _pair(getattr(torch, name)) for name in ("matmul", "mm", "maximum", "minimum")}
ALIASES = {
    "_convolution": "convolution", "sym_size": "size", "clone": "contiguous", "detach": "identity", "alias": "identity",
    "feature_dropout": "dropout", "alpha_dropout": "dropout", "concat": "cat", "true_divide": "div",
    "_unsafe_view": "view", "_adaptive_avg_pool2d": "adaptive_avg_pool2d",
    "numpy_T": "t",
}  # fmt: skip
BENEATH: dict[str, tuple[str, Operation]] = {  # what PyTorch runs beneath; of several results the first is meant
    "native_batch_norm": ("batch_norm", batch_norm), "max_pool2d_with_indices": ("max_pool2d", max_pool2d),
    "_native_batch_norm_legit_no_training": ("batch_norm", _batch_norm_in_evaluation),
    "_softmax": ("softmax", _softmax), "_log_softmax": ("log_softmax", _softmax), "_prelu_kernel": ("prelu", prelu),
    "_to_copy": ("identity", _to_copy), "max": ("amax", _max_over_axis),
}  # fmt: skip
SIGNATURES = {name: inspect.signature(run) for name, run in OPERATIONS.items()}
BENEATH_SIGNATURES = {name: inspect.signature(run) for name, (_, run) in BENEATH.items()}
VIEWS = (
    "flatten", "reshape", "view", "reshape_rows", "permute", "transpose", "t", "squeeze", "unsqueeze", "unflatten",
    "identity", "dropout", "contiguous", "select", "slice",
)  # fmt: skip
