"""The examples as the solver sees them: each once, in units that make the Gram matrix of order one."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.common.errors import InputError
from brittle.margin.groups import first_of_each
from brittle.margin.neurons import Neurons


@dataclass(frozen=True, eq=False)
class Examples:
    """X (n, d) distinct rows x̃, y (n,), K (n, n) = X Xᵀ / unit, with `unit` the mean of ‖x̃_i‖² (0 if all are zero)."""

    X: Tensor
    y: Tensor
    K: Tensor
    unit: float

    def take(self, chosen: Tensor) -> "Examples":
        """Some of the examples, in the same units."""
        return Examples(self.X[chosen], self.y[chosen], self.K[chosen][:, chosen], self.unit)

    def margins(self, neurons: Neurons) -> Tensor:
        """q (n,) of these neurons."""
        return self.y * ((self.X @ neurons.U.T).relu_() @ neurons.signs)


def distinct(X: Tensor, y: Tensor) -> Tensor:
    """Where each labelled example first stands; an example with both labels is an error."""
    rows, group = torch.unique(X, dim=0, return_inverse=True)
    if len(rows) == len(X):
        return torch.arange(len(X))
    _require_one_label(len(rows), group, y)
    return first_of_each(group).sort().values


def gather(X: Tensor, y: Tensor) -> Examples:
    """Each labelled example once; an example with both labels is an error."""
    keep = distinct(X, y)
    X, y = X[keep], y[keep]
    K = X @ X.T
    unit = float(K.diagonal().mean())
    return Examples(X, y, K / unit if unit > 0 else K, unit)


def _require_one_label(count: int, group: Tensor, y: Tensor) -> None:
    """No group of equal examples carries both labels."""
    total = torch.zeros(count, dtype=y.dtype).index_add_(0, group, y)
    size = torch.zeros(count, dtype=y.dtype).index_add_(0, group, torch.ones_like(y))
    mixed = torch.nonzero(total.abs() != size)[:, 0]
    if len(mixed):
        rows = torch.nonzero(group == mixed[0])[:, 0]
        plus, minus = rows[y[rows] > 0][0], rows[y[rows] < 0][0]
        raise InputError(
            f"examples {int(plus)} and {int(minus)} are equal and carry the labels 1 and -1; "
            "no network separates them: drop one"
        )
