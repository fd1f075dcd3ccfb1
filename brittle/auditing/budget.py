"""Work, counted in seconds of a nominal machine: a budget buys the same whatever the clock says, up to its limit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from brittle.auditing.pieces import Crew, Outcome, Piece, run_serially
from brittle.common.errors import InputError, require_positive, require_value
from brittle.common.time_limit import TimeLimit, TimeLimitReached, time_is_up
from brittle.training import Steps
from brittle.training.stops import RunLimit, RunStatus

COMPUTING, WALL = 1.4, 1.8  # times the budget, in seconds: here the clocks end what the count of work did not


class Unaffordable(InputError):
    """What the budget does not pay for; a larger one may."""


def afford(condition: bool, message: str) -> None:
    if not condition:
        raise Unaffordable(message)


@dataclass(frozen=True)
class Deadline(RunLimit):
    """Ends a training at a limit on time."""

    limit: TimeLimit
    value: float = 1.0  # of `spent`

    def __str__(self) -> str:
        return "the time limit"

    def spent(self, look: RunStatus) -> float:
        return float(self.limit.passed)


@dataclass
class WorkBudget:
    """`seconds` of work on the nominal machine of `costs`; what is spent of a grant is spent of the whole.

    `limit` is the hard stop on the clocks; `spent` is the work that was charged so far, and `whole` the budget that
    this one was granted from, None for the whole itself. The `crew` does what comes in pieces.

    Examples:
        >>> import brittle as bt
        >>> whole = bt.auditing.WorkBudget(10.0)
        >>> part = whole.grant(4.0)
        >>> part.charge(1.5)
        >>> whole.left, part.left
        (8.5, 2.5)
    """

    seconds: float
    limit: TimeLimit | None = None
    spent: float = 0.0
    whole: "WorkBudget | None" = field(default=None, repr=False)
    crew: Crew = field(default=run_serially, repr=False)

    def __post_init__(self) -> None:
        require_positive("budget", self.seconds)
        if self.limit is None:
            self.limit = TimeLimit.after(COMPUTING * self.seconds, WALL * self.seconds)

    @property
    def left(self) -> float:
        """Work that may still be spent."""
        return max(0.0, self.seconds - self.spent)

    @property
    def late(self) -> bool:
        """The hard stop has passed, or a nearer limit that is set here: what was cut short depends on the machine."""
        return self.until.passed or time_is_up()

    @property
    def until(self) -> TimeLimit:
        """The hard stop."""
        return require_value(self.limit, "a budget has a limit once it is made")

    @property
    def longest(self) -> float:
        """Seconds of computing from the beginning to the hard stop."""
        return COMPUTING * self.seconds if self.whole is None else self.whole.longest

    def grant(self, work: float) -> "WorkBudget":
        """A part of it for one job; what the job leaves unspent stays here."""
        return WorkBudget(max(min(work, self.left), 1e-9), self.limit, whole=self, crew=self.crew)

    def in_time(self, pieces: Sequence[Piece]) -> Iterator[Outcome]:
        """What the crew finds, until the hard stop. Its work is not charged here."""
        outcomes = iter(self.crew(pieces))
        while True:
            try:
                outcome = next(outcomes)
            except (StopIteration, TimeLimitReached):
                break
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
        return Steps(count), Deadline(self.until)
