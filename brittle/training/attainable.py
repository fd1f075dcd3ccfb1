"""What the data allow every example: half the distance to the nearest example of another class."""

from torch import Tensor

from brittle.common.errors import InputError
from brittle.geometry import nearest_rivals

LOWEST, HIGHEST = 0.5, 2.0  # ρ in medians
TOGETHER = 1e-6  # of the size of an example: closer ones are the same in single precision
SHOWN = 5  # pairs that a message names


def attainable(X: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """ρ of every example, within bounds so that no example counts for nothing or for all, and its nearest rival."""
    distances, rivals = nearest_rivals(X, y)
    require_apart(distances, rivals, float(X.square().sum(1).mean().sqrt()))
    middle = float(distances.median())
    return 0.5 * distances.clamp(LOWEST * middle, HIGHEST * middle), rivals


def require_apart(distances: Tensor, rivals: Tensor, size: float) -> None:
    """Raise where examples of a typical length `size` coincide with their nearest rivals."""
    same = (distances <= TOGETHER * size).nonzero()[:, 0].tolist()
    if same:
        pairs = sorted({tuple(sorted((row, int(rivals[row])))) for row in same})
        shown = ", ".join(f"{first} and {second}" for first, second in pairs[:SHOWN])
        more = f" and {len(pairs) - SHOWN} more pairs" if len(pairs) > SHOWN else ""
        raise InputError(f"rows {shown}{more} are the same example with two labels: keep one of each")
