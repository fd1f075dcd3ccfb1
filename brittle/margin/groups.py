"""Rows in groups, as `torch.unique` numbers them."""

import torch
from torch import Tensor


def first_of_each(group: Tensor) -> Tensor:
    """Where each group first stands, for the number (n,) of every row's group."""
    count = int(group.max()) + 1 if len(group) else 0
    place = torch.full((count,), len(group), dtype=torch.long)
    return place.scatter_reduce(0, group, torch.arange(len(group)), "amin")
