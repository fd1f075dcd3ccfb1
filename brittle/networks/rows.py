"""A module that takes pictures as one that takes flat rows."""

from torch import Tensor, nn


class Rows(nn.Module):
    """From flat rows (n, dim) to (n,) or (n, C); `inner` takes (n, *shape)."""

    def __init__(self, inner: nn.Module, shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.inner, self.shape, self.classes = inner, shape, classes

    def forward(self, X: Tensor) -> Tensor:
        rows = X.shape[0]  # `len` would fix their number in an exported program
        values: Tensor = self.inner(X.reshape(rows, *self.shape))
        return values.reshape(rows) if self.classes == 1 else values
