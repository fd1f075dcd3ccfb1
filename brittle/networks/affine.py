"""The affine maps that layered networks are made of: x ↦ A x + offset on flat rows."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from brittle.common.errors import InputError, require
from brittle.common.time_limit import check_time

LARGEST_MATRIX = 2**27  # entries of one layer's matrix, 1 GB in float64


class Affine(ABC):
    """x ↦ A x + offset from `inputs` to `outputs` numbers; rows of X are points.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> layer = bt.networks.Dense(torch.tensor([[1.0, 2.0]]), torch.tensor([3.0]))
        >>> isinstance(layer, bt.networks.Affine), layer.apply(torch.tensor([[1.0, 1.0]])).tolist()
        (True, [[6.0]])
    """

    structured: ClassVar[bool] = False  # whether other numbers in `parameters` could make another kind of map

    @property
    @abstractmethod
    def inputs(self) -> int: ...

    @property
    @abstractmethod
    def outputs(self) -> int: ...

    @property
    @abstractmethod
    def parameters(self) -> tuple[Tensor, Tensor]:
        """The trainable numbers: those that make A, and those that make the offset."""

    @abstractmethod
    def with_parameters(self, weight: Tensor, bias: Tensor) -> Self:
        """The same kind of map with other numbers."""

    @abstractmethod
    def apply(self, X: Tensor) -> Tensor:
        """A x + offset for every row: (n, outputs). Autograd passes through."""

    @abstractmethod
    def linear(self, X: Tensor) -> Tensor:
        """A x for every row: (n, outputs)."""

    @abstractmethod
    def transpose(self, Z: Tensor) -> Tensor:
        """Aᵀ z for every row of Z (n, outputs): (n, inputs)."""

    @property
    @abstractmethod
    def products(self) -> int:
        """How many products A x adds up."""

    @property
    def working(self) -> int:
        """How many numbers `apply` holds for one row, about."""
        return self.outputs

    @property
    @abstractmethod
    def free(self) -> bool:
        """Whether every entry of A is a parameter of its own."""

    @property
    def matrix(self) -> Tensor:
        """A (outputs, inputs), which not every layer of a large network has room for."""
        small = self.outputs * self.inputs <= LARGEST_MATRIX
        require(small, f"a layer of {self.outputs} by {self.inputs} numbers is too large to be written as a matrix")
        return self._matrix

    @property
    @abstractmethod
    def _matrix(self) -> Tensor: ...

    @property
    @abstractmethod
    def offset(self) -> Tensor:
        """(outputs,)"""

    @abstractmethod
    def module(self) -> nn.Module:
        """A trainable copy from flat rows to flat rows."""

    @property
    def dtype(self) -> torch.dtype:
        return self.parameters[0].dtype

    def to(self, dtype: torch.dtype) -> Self:
        weight, bias = self.parameters
        return self.with_parameters(weight.to(dtype), bias.to(dtype))

    def absolute(self) -> Self:
        """The map with the absolute values of all numbers: the size of what is added up."""
        weight, bias = self.parameters
        return self.with_parameters(weight.abs(), bias.abs())


@dataclass(frozen=True, eq=False)
class Dense(Affine):
    """weight (outputs, inputs) and bias (outputs,) of one float type.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> layer = bt.networks.Dense(torch.tensor([[3.0, 4.0]]), torch.ones(1))
        >>> layer.apply(torch.eye(2)).tolist(), layer.transpose(torch.ones(1, 1)).tolist()
        ([[4.0], [5.0]], [[3.0, 4.0]])
    """

    weight: Tensor
    bias: Tensor

    def __post_init__(self) -> None:
        shape = tuple(self.weight.shape)
        require(len(shape) == 2 and 0 not in shape, f"weight has shape {shape}; (outputs, inputs) is needed")
        _check_numbers(self.weight, self.bias, shape[0])

    @property
    def inputs(self) -> int:
        return self.weight.shape[1]

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]

    @property
    def parameters(self) -> tuple[Tensor, Tensor]:
        return self.weight, self.bias

    def with_parameters(self, weight: Tensor, bias: Tensor) -> "Dense":
        return Dense(weight, bias)

    def apply(self, X: Tensor) -> Tensor:
        check_time()
        return torch.addmm(self.bias, X, self.weight.T)

    def linear(self, X: Tensor) -> Tensor:
        check_time()
        return X @ self.weight.T

    def transpose(self, Z: Tensor) -> Tensor:
        check_time()
        return Z @ self.weight

    @property
    def products(self) -> int:
        return self.inputs * self.outputs

    @property
    def free(self) -> bool:
        return True

    @property
    def matrix(self) -> Tensor:
        return self.weight

    @property
    def _matrix(self) -> Tensor:
        return self.weight

    @property
    def offset(self) -> Tensor:
        return self.bias

    def module(self) -> nn.Module:
        linear = nn.Linear(self.inputs, self.outputs, dtype=self.dtype, device="meta")  # draws no weights
        linear.weight, linear.bias = nn.Parameter(self.weight.clone()), nn.Parameter(self.bias.clone())
        return linear


@dataclass(frozen=True, eq=False)
class Convolution(Affine):
    """kernel (channels, channels of a group, height, width) and bias on images of `image` (C, H, W).

    `bias` has a number for every channel, or one for every output: a shift of the input that is folded into it ends
    where the padding begins. `stride`, `padding` (zeros), `dilation` and `groups` as in `torch.nn.Conv2d`; rows are
    images laid flat.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> edges = bt.networks.Convolution(torch.tensor([[[[-1.0, 1.0]]]]), torch.zeros(1), image=(1, 1, 3))
        >>> edges.apply(torch.tensor([[1.0, 4.0, 9.0]])).tolist()
        [[3.0, 5.0]]
        >>> edges.matrix.tolist()
        [[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]]
    """

    kernel: Tensor
    bias: Tensor
    image: tuple[int, int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    def __post_init__(self) -> None:
        shape = tuple(self.kernel.shape)
        require(len(shape) == 4 and 0 not in shape, f"kernel has shape {shape}; four positive lengths are needed")
        require(
            shape[1] * self.groups == self.image[0],
            f"the kernel takes {shape[1]} channels in each of {self.groups} groups and the image has {self.image[0]}",
        )
        require(min(self.result) > 0, f"a kernel of {shape[2:]} does not fit into the image {self.image}")
        _check_numbers(self.kernel, self.bias, self.outputs if self.structured else shape[0])

    @property
    def structured(self) -> bool:  # type: ignore[override]
        """Whether the bias depends on the place."""
        return len(self.bias) == self.outputs != len(self.kernel)

    @property
    def result(self) -> tuple[int, int, int]:
        """(C, H, W) of what comes out."""
        height, width = (
            (length + 2 * padding - dilation * (size - 1) - 1) // stride + 1
            for length, padding, dilation, size, stride in zip(
                self.image[1:], self.padding, self.dilation, self.kernel.shape[2:], self.stride, strict=True
            )
        )
        return self.kernel.shape[0], height, width

    @property
    def inputs(self) -> int:
        channels, height, width = self.image
        return channels * height * width

    @property
    def outputs(self) -> int:
        channels, height, width = self.result
        return channels * height * width

    @property
    def parameters(self) -> tuple[Tensor, Tensor]:
        return self.kernel, self.bias

    def with_parameters(self, weight: Tensor, bias: Tensor) -> "Convolution":
        return replace(self, kernel=weight, bias=bias)

    def apply(self, X: Tensor) -> Tensor:
        if self.structured:
            return self.linear(X) + self.bias
        return self._convolved(X, self.bias)

    def linear(self, X: Tensor) -> Tensor:
        return self._convolved(X, None)

    def _convolved(self, X: Tensor, bias: Tensor | None) -> Tensor:
        check_time()
        images = X.reshape(len(X), *self.image)
        options = (self.stride, self.padding, self.dilation, self.groups)
        return functional.conv2d(images, self.kernel, bias, *options).flatten(1)

    def transpose(self, Z: Tensor) -> Tensor:
        """The rows and columns that no stride reaches get zeros."""
        check_time()
        images = Z.reshape(len(Z), *self.result)
        reached = [
            (size - 1) * stride + dilation * (kernel - 1) + 1 - 2 * padding
            for size, stride, dilation, kernel, padding in zip(
                self.result[1:], self.stride, self.dilation, self.kernel.shape[2:], self.padding, strict=True
            )
        ]
        beyond = tuple(length - end for length, end in zip(self.image[1:], reached, strict=True))
        back = functional.conv_transpose2d(
            images, self.kernel, None, self.stride, self.padding, beyond, self.groups, self.dilation
        )
        return back.flatten(1)

    @property
    def products(self) -> int:
        return self.outputs * self.kernel[0].numel()

    @property
    def working(self) -> int:
        """The outputs, and a copy of what the kernel sees at every place: double precision is convolved by products."""
        return self.outputs + self.products * self.groups // len(self.kernel)

    @property
    def free(self) -> bool:
        return False

    @cached_property
    def _matrix(self) -> Tensor:
        return self.transpose(torch.eye(self.outputs, dtype=self.dtype))

    @property
    def offset(self) -> Tensor:
        _, height, width = self.result
        if self.structured:
            return self.bias
        return self.bias.repeat_interleave(height * width)

    def module(self) -> nn.Module:
        if self.structured:
            raise InputError(
                "a convolution's bias depends on the place, so that its numbers cannot be trained one by one"
            )
        return nn.Sequential(nn.Unflatten(1, self.image), self._convolution(), nn.Flatten())

    def _convolution(self) -> nn.Conv2d:
        channels, _, *size = self.kernel.shape
        layer = nn.Conv2d(
            self.image[0],
            channels,
            (size[0], size[1]),
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
            dtype=self.dtype,
            device="meta",  # draws no weights
        )
        layer.weight, layer.bias = nn.Parameter(self.kernel.clone()), nn.Parameter(self.bias.clone())
        return layer


def _check_numbers(weight: Tensor, bias: Tensor, outputs: int) -> None:
    require(weight.is_floating_point(), f"the weights have type {weight.dtype}; a float type is needed")
    fits = tuple(bias.shape) == (outputs,) and bias.dtype == weight.dtype
    shape, kind = tuple(bias.shape), bias.dtype
    require(fits, f"the bias has shape {shape} and type {kind}; ({outputs},) and {weight.dtype} are needed")
