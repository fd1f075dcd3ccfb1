"""A module that takes pictures as one of flat rows, and one that gives probabilities as one that gives logits."""

import torch
from torch import Tensor, nn


class Rows(nn.Module):
    """From flat rows (n, dim) to logits (n,) or (n, C); `inner` takes (n, *shape), and may give `probabilities`."""

    def __init__(self, inner: nn.Module, shape: tuple[int, ...], classes: int, probabilities: bool = False) -> None:
        super().__init__()
        self.inner, self.shape, self.classes, self.probabilities = inner, shape, classes, probabilities

    def forward(self, X: Tensor) -> Tensor:
        rows = X.shape[0]  # `len` would fix their number in an exported program
        values: Tensor = self.inner(X.reshape(rows, *self.shape))
        values = logits_of(values) if self.probabilities else values
        return values.reshape(rows) if self.classes == 1 else values


def logits_of(probabilities: Tensor) -> Tensor:
    """Logits that decide as the probabilities do: of one the label changes at 1/2, of several the largest stays it.

    A probability that is rounded to 1 has no slope; in logits there is one up to where the float type ends.
    """
    least = torch.finfo(probabilities.dtype).tiny
    logarithms = torch.log(probabilities.clamp(min=least))
    if probabilities.ndim == 2 and probabilities.shape[1] > 1:
        return logarithms
    return logarithms - torch.log((1 - probabilities).clamp(min=least))


def are_probabilities(values: Tensor) -> bool:
    """Outputs (n,), (n, 1) or (n, C) that lie between 0 and 1 and, if there are several, add up to 1."""
    between = bool(((values >= 0) & (values <= 1)).all())
    several = values.ndim == 2 and values.shape[1] > 1
    return between and (not several or bool(((values.sum(1) - 1).abs() < 1e-2).all()))
