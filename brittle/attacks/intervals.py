"""Where along its ray each example is flipped."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.common.result import Result


@dataclass(frozen=True, eq=False)
class Intervals(Result):
    """Open intervals of t, sorted by ray and then by start; a ray has any number of them.

    rays: how many rays there are; ray (k,) whose interval it is; start, stop (k,).

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> both = bt.attacks.Intervals(2, torch.tensor([0, 1]), torch.tensor([1.0, 2.0]), torch.tensor([4.0, 3.0]))
        >>> both.overlap(), both.share(torch.tensor([0.5, 1.5, 2.5])).tolist()
        ((2.0, 3.0), [0.0, 0.5, 1.0])
    """

    rays: int
    ray: Tensor
    start: Tensor
    stop: Tensor

    def first(self) -> Tensor:
        """The start of each ray's first interval, infinity where it has none: (rays,)."""
        first = torch.full((self.rays,), torch.inf, dtype=torch.float64)
        return first.scatter_reduce(0, self.ray, self.start, "amin")

    def share(self, sizes: Tensor) -> Tensor:
        """The share of rays that are flipped at each size, a size at the very start of an interval counted as in it."""
        begun = (self.start <= sizes[:, None]).sum(1)
        ended = (self.stop <= sizes[:, None]).sum(1)
        return (begun - ended).double() / max(self.rays, 1)

    def widest_overlap(self) -> tuple[int, float, float]:
        """The largest number of rays flipped at one size, and the first interval on which so many are."""
        if not len(self.start):
            return 0, torch.inf, torch.inf
        where = torch.cat([self.stop, self.start])
        change = torch.cat([-torch.ones_like(self.stop), torch.ones_like(self.start)]).long()
        where, order = where.sort(stable=True)  # the intervals are open: what ends at t ends before what begins there
        flipped = change[order].cumsum(0)
        # a count counts only where the next change comes later than this one
        lasting = torch.cat([where[1:] > where[:-1], torch.tensor([False])])
        flipped = torch.where(lasting & (change[order] > 0), flipped, 0)
        index = int(flipped.argmax())
        return int(flipped[index]), float(where[index]), float(where[min(index + 1, len(where) - 1)])

    def overlap(self) -> tuple[float, float]:
        """The first interval on which every ray is flipped; infinite where there is none."""
        most, start, stop = self.widest_overlap()
        return (start, stop) if most == self.rays else (torch.inf, torch.inf)
