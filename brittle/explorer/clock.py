"""No request works for ever: whoever reports progress is stopped here."""

import time
from dataclasses import dataclass, field

from brittle.common.errors import InputError
from brittle.common.progress import Progress

LONGEST = 20.0  # seconds of computing for one request


@dataclass(frozen=True)
class Clock:
    """A watch that ends the work after so many `seconds` of computing, however busy the machine; they began at `begun`.

    It counts what its own thread does.
    """

    seconds: float = LONGEST
    begun: float = field(default_factory=time.thread_time)

    def __call__(self, progress: Progress) -> None:
        if self.left <= 0:
            raise InputError(f"this takes longer than {self.seconds:g} s: take fewer points or a smaller network")

    @property
    def left(self) -> float:
        """Seconds; negative when time is up."""
        return self.begun + self.seconds - time.thread_time()
