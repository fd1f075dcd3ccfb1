"""A limit on computing time and on the clock, which the loops inside a piece of work look at themselves.

`limit_time(limit)` sets it for everything that is called inside; the loops call `check_time()` between two steps, which
raises `TimeLimitReached` once it has passed. Whoever holds a partial result catches that and returns what is there.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace

Clock = Callable[[], float]


class TimeLimitReached(Exception):
    """The time limit has passed in the middle of a computation."""


@dataclass(frozen=True)
class TimeLimit:
    """The moments at which to end: on the clock of this process's `computing`, and on that of the `wall`."""

    computing: float = math.inf
    wall: float = math.inf
    clocks: tuple[Clock, Clock] = (time.process_time, time.perf_counter)

    @classmethod
    def after(
        cls, computing: float, wall: float, clocks: tuple[Clock, Clock] = (time.process_time, time.perf_counter)
    ) -> "TimeLimit":
        """So many seconds from now."""
        return cls(clocks[0]() + computing, clocks[1]() + wall, clocks)

    @property
    def passed(self) -> bool:
        return self.clocks[0]() >= self.computing or self.clocks[1]() >= self.wall

    def share(self, part: float) -> "TimeLimit":
        """A limit that leaves this part of the time until this one."""
        ends = (self.computing, self.wall)
        now = [clock() for clock in self.clocks]
        computing, wall = (at + part * (end - at) for at, end in zip(now, ends, strict=True))
        return replace(self, computing=computing, wall=wall)

    def or_sooner(self, other: "TimeLimit") -> "TimeLimit":
        """Whichever comes first, on either clock; both limits are on the same clocks."""
        return replace(self, computing=min(self.computing, other.computing), wall=min(self.wall, other.wall))


_limit: ContextVar[TimeLimit | None] = ContextVar("limit", default=None)


@contextmanager
def limit_time(limit: TimeLimit | None) -> Iterator[None]:
    """Loops inside end at this limit, or at that around it where that is nearer; with None they end by themselves."""
    around = _limit.get()
    token = _limit.set(limit if limit is None or around is None else limit.or_sooner(around))
    try:
        yield
    finally:
        _limit.reset(token)


@contextmanager
def limit_time_to_share(part: float) -> Iterator[None]:
    """Loops inside have this part of the time that is left, where there is a limit."""
    limit = _limit.get()
    with nullcontext() if limit is None else limit_time(limit.share(part)):
        yield


def time_is_up() -> bool:
    """Whether the limit that is set here has passed; False without one."""
    limit = _limit.get()
    return limit is not None and limit.passed


def check_time() -> None:
    """Raise where the limit that is set here has passed."""
    if time_is_up():
        raise TimeLimitReached
