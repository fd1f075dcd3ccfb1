"""The networks that a guarded training meets while it asks for more and more."""

from dataclasses import dataclass
from typing import Any

from brittle.common.result import Result
from brittle.networks.base import Network


@dataclass(frozen=True, eq=False)
class Waypoint(Result):
    """The `network` when κ, the share of the attainable radius that was asked for, was `kappa`.

    `accuracy` is on the training examples, `held_out` on the others, None without. `share` is how much of what the data
    allow the examples of its last batch had, in the median. `kept` marks the one that the end was made from.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> rng, data = torch.Generator().manual_seed(0), bt.settings.Orthogonal(6).sample(6)
        >>> start = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> way = bt.training.MaximumRadius(until=bt.training.Steps(30)).train(start, data, rng).way
        >>> all(0 <= point.kappa <= 1 for point in way)
        True
    """

    kappa: float
    accuracy: float
    held_out: float | None
    share: float
    kept: bool
    network: Network

    def content(self) -> dict[str, Any]:
        """Everything but the weights."""
        return {name: value for name, value in super().content().items() if name != "network"}
