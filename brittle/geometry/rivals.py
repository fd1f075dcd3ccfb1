"""The nearest example of another class: half the way to it is as far as both can be from a boundary between them."""

import torch
from torch import Tensor

from brittle.common.errors import require

AT_ONCE = 2**24  # distances


def nearest_rivals(X: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """For every row of X (n, d) the distance to the nearest one with another label, and which that is, (n,) each."""
    require(bool((y != y[0]).any()), f"all {len(y)} examples have the label {y[0]:g}: there is no other class")
    squares = X.square().sum(1)
    index = torch.empty(len(X), dtype=torch.int64)
    for rows in torch.split(torch.arange(len(X)), max(1, AT_ONCE // len(X))):
        products = torch.addmm(squares, X[rows], X.T, alpha=-2)  # ‖x_j‖² - 2 x_i·x_j: the least is the nearest
        index[rows] = products.masked_fill_(y[rows, None] == y, torch.inf).argmin(1)
    return (X - X[index]).norm(dim=1), index  # from the difference: the products cancel where examples are close
