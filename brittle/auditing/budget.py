"""Work, counted in seconds of a nominal machine: what a budget buys depends on sizes alone, never on the clock."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from brittle.auditing.pieces import Crew, Outcome, Piece, alone
from brittle.common.errors import InputError, require_positive
from brittle.training import Steps
from brittle.training.stops import Limit, Look

LATEST = 2.0  # times the budget, in seconds of computing: here the clock ends what the count of work did not


class Unaffordable(InputError):
    """What the budget does not pay for; a larger one may."""


def afford(condition: bool, message: str) -> None:
    if not condition:
        raise Unaffordable(message)


@dataclass(frozen=True)
class Deadline(Limit):
    """Ends a training when this process has computed for so long, whatever other processes do meanwhile."""

    value: float  # of `time.process_time`

    def __str__(self) -> str:
        return "the hard stop"

    def spent(self, look: Look) -> float:
        return time.process_time()


@dataclass
class Budget:
    """`seconds` of work on the nominal machine of `costs`; what is spent of a grant is spent of the whole.

    `deadline` is the hard stop, on the clock of `time.process_time`; `spent` is the work that was charged so far, and
    `whole` the budget that this one was granted from, None for the whole itself. The `crew` does what comes in pieces.

    Examples:
        >>> import brittle as bt
        >>> whole = bt.auditing.Budget(10.0)
        >>> part = whole.grant(4.0)
        >>> part.charge(1.5)
        >>> whole.left, part.left
        (8.5, 2.5)
    """

    seconds: float
    deadline: float = math.nan
    spent: float = 0.0
    whole: "Budget | None" = field(default=None, repr=False)
    crew: Crew = field(default=alone, repr=False)

    def __post_init__(self) -> None:
        require_positive("budget", self.seconds)
        if math.isnan(self.deadline):
            self.deadline = time.process_time() + LATEST * self.seconds

    @property
    def left(self) -> float:
        """Work that may still be spent."""
        return max(0.0, self.seconds - self.spent)

    @property
    def late(self) -> bool:
        """The hard stop has passed: what was cut short depends on the machine."""
        return self.seconds_left <= 0

    @property
    def seconds_left(self) -> float:
        """Of computing, until the hard stop."""
        return self.deadline - time.process_time()

    @property
    def longest(self) -> float:
        """Seconds of computing from the beginning to the hard stop."""
        return LATEST * self.seconds if self.whole is None else self.whole.longest

    def grant(self, work: float) -> "Budget":
        """A part of it for one job; what the job leaves unspent stays here."""
        return Budget(max(min(work, self.left), 1e-9), self.deadline, whole=self, crew=self.crew)

    def in_time(self, pieces: Sequence[Piece]) -> Iterator[Outcome]:
        """What the crew finds, until the hard stop; there is always a first. Its work is not charged here."""
        for outcome in self.crew(pieces):
            yield outcome
            if self.late:
                break

    def charge(self, work: float) -> None:
        """So much work was done."""
        self.spent += work
        if self.whole is not None:
            self.whole.charge(work)

    def steps(self, work: float) -> int:
        """How many steps of this much work each are left."""
        return int(self.left / work)

    def stops(self, work: float) -> tuple[Steps, Deadline]:
        """What ends a training whose steps take this much work each: their number, or at last the clock."""
        count = self.steps(work)
        afford(count > 0, f"one step of training takes {work:.2g} s of work: give the audit a larger budget")
        return Steps(count), Deadline(self.deadline)
