"""The nearest example of another class: half the way to it is as far as both can be from a boundary between them."""

import torch
from torch import Tensor

from brittle.common.errors import require

AT_ONCE = 2**24  # distances


def nearest_rivals(
    X: Tensor, y: Tensor, others: Tensor | None = None, labels: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """For every row of X (n, d) the distance to the nearest one with another label, and which that is, (n,) each.

    The rivals are looked for among X, or among `others` (m, d) with their `labels`.

    Examples:
        >>> import torch
        >>> from brittle.geometry import nearest_rivals
        >>> X, y = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([1.0, 1.0, -1.0])
        >>> nearest_rivals(X, y)
        (tensor([5., 4., 4.]), tensor([2, 2, 1]))
    """
    others, labels = (X, y) if others is None or labels is None else (others, labels)
    one = bool((labels == labels[0]).all()) and bool((y == labels[0]).any())
    require(not one, f"all {len(labels)} examples have the label {labels[0]:g}: there is no other class")
    squares = torch.cat([block.square().sum(1) for block in torch.split(others, max(1, AT_ONCE // others.shape[1]))])
    index, distances = torch.empty(len(X), dtype=torch.int64), torch.empty(len(X), dtype=X.dtype)
    for rows in torch.split(torch.arange(len(X)), max(1, AT_ONCE // len(others))):
        products = torch.addmm(squares, X[rows], others.T, alpha=-2)  # ‖x_j‖² - 2 x_i·x_j: the least is the nearest
        index[rows] = products.masked_fill_(y[rows, None] == labels, torch.inf).argmin(1)
        # From the difference: the products cancel where examples are close.
        distances[rows] = (X[rows] - others[index[rows]]).norm(dim=1)
    return distances, index
