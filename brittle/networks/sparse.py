"""Affine maps most of whose entries are 0: values that are carried past a ReLU, pooling, and what is made of them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from brittle.common.errors import InputError, require
from brittle.common.time_limit import check_time
from brittle.networks.affine import Affine


@dataclass(frozen=True, eq=False)
class Sparse(Affine):
    """`values` of the entries row by row, in these `columns`; those of row i are from starts[i] to starts[i + 1].

    `bias` is (outputs,), `features` the number of inputs. The entries are no parameters of their own (a carried value
    has weight 1, a kernel's numbers are repeated), so that the map cannot be trained.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> values, columns, starts = torch.tensor([2.0, 3.0]), torch.tensor([1, 0]), torch.tensor([0, 1, 2])
        >>> layer = bt.networks.Sparse(values, torch.zeros(2), columns, starts, features=2)
        >>> layer.matrix.tolist()
        [[0.0, 2.0], [3.0, 0.0]]
    """

    values: Tensor
    bias: Tensor
    columns: Tensor
    starts: Tensor
    features: int

    structured: ClassVar = True

    def __post_init__(self) -> None:
        count, rows = len(self.values), len(self.starts) - 1
        require(rows > 0 and self.features > 0, f"a sparse map of {rows} rows and {self.features} columns is empty")
        require(self.values.is_floating_point(), f"the values have type {self.values.dtype}; a float type is needed")
        fits = tuple(self.bias.shape) == (rows,) and self.bias.dtype == self.values.dtype
        require(fits, f"the bias has shape {tuple(self.bias.shape)} and type {self.bias.dtype}; ({rows},) is needed")
        ends = int(self.starts[0]) == 0 and int(self.starts[-1]) == count and bool((self.starts.diff() >= 0).all())
        require(ends, f"starts must rise from 0 to the number of values, {count}")
        inside = len(self.columns) == count and bool(((self.columns >= 0) & (self.columns < self.features)).all())
        require(inside, f"columns must be {count} numbers from 0 to {self.features - 1}")

    @classmethod
    def of(cls, matrix: Any, offset: NDArray[np.float64]) -> "Sparse":
        """From a matrix of scipy."""
        matrix = sparse.csr_array(matrix)
        matrix.sum_duplicates()
        values, bias = torch.from_numpy(matrix.data.astype(np.float64)), torch.from_numpy(offset.astype(np.float64))
        columns, starts = (torch.from_numpy(each.astype(np.int64)) for each in (matrix.indices, matrix.indptr))
        return cls(values, bias, columns, starts, matrix.shape[1])

    @property
    def inputs(self) -> int:
        return self.features

    @property
    def outputs(self) -> int:
        return len(self.bias)

    @property
    def products(self) -> int:
        return len(self.values)

    @property
    def parameters(self) -> tuple[Tensor, Tensor]:
        return self.values, self.bias

    def with_parameters(self, weight: Tensor, bias: Tensor) -> "Sparse":
        return replace(self, values=weight, bias=bias)

    @cached_property
    def _forward(self) -> Any:
        parts = (self.values.detach().numpy(), self.columns.numpy(), self.starts.numpy())
        return sparse.csr_array(parts, shape=(self.outputs, self.inputs))

    @cached_property
    def _backward(self) -> Any:
        return self._forward.T.tocsr()

    def linear(self, X: Tensor) -> Tensor:
        check_time()
        product: Tensor = _Product.apply(X, self._forward, self._backward)  # type: ignore[no-untyped-call]
        return product

    def apply(self, X: Tensor) -> Tensor:
        return self.linear(X) + self.bias

    def transpose(self, Z: Tensor) -> Tensor:
        check_time()
        product: Tensor = _Product.apply(Z, self._backward, self._forward)  # type: ignore[no-untyped-call]
        return product

    @property
    def free(self) -> bool:
        return False

    @cached_property
    def _matrix(self) -> Tensor:
        return torch.from_numpy(self._forward.toarray())

    @property
    def offset(self) -> Tensor:
        return self.bias

    def module(self) -> nn.Module:
        raise InputError("a layer carries values past its ReLUs, so that its numbers cannot be trained one by one")


class _Product(torch.autograd.Function):
    """X Aᵀ for scipy's A, which is several times as quick as PyTorch's; its gradient is a product with Aᵀ."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, A: Any, back: Any) -> Tensor:
        ctx.A, ctx.back = A, back
        columns = np.ascontiguousarray(X.detach().numpy().T)
        return torch.from_numpy(np.ascontiguousarray((A @ columns).T))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return _Product.apply(gradients[0], ctx.back, ctx.A), None, None  # type: ignore[no-untyped-call]
