"""A number of seconds, shared among the parts of an audit."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from torch import Tensor, arange

from brittle.common.errors import require_positive

FIRST_BATCH = 4
Part = TypeVar("Part")


@dataclass(frozen=True)
class Budget:
    """`seconds` counted from `begun`, the moment it is made; `share` gives a part of what is left to one job."""

    seconds: float
    begun: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        require_positive("budget", self.seconds)

    @property
    def left(self) -> float:
        return max(0.0, self.seconds - (time.perf_counter() - self.begun))

    @property
    def used(self) -> float:
        return time.perf_counter() - self.begun

    def share(self, part: float) -> "Budget":
        return Budget(max(self.left * part, 1e-3))


def in_batches(work: Callable[[Tensor], Part], count: int, budget: Budget) -> Iterator[tuple[Tensor, Part]]:
    """Work on rows 0..count-1 in growing batches, as many as fit; the first one is always done.

    A batch is as large as the time of those before it allows, so that the budget is kept without knowing the machine.
    """
    done, size = 0, FIRST_BATCH
    while done < count:
        rows = arange(done, min(count, done + size))
        begun = time.perf_counter()
        yield rows, work(rows)
        done += len(rows)
        per_row = (time.perf_counter() - begun) / len(rows)
        affordable = int(0.7 * budget.left / max(per_row, 1e-9))
        if affordable < 1:
            return
        size = min(4 * size, affordable)
