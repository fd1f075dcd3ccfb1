"""One training run: where it is, what it has recorded, and the loop that carries it from stop to stop."""

import math
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import Generator, Tensor

from brittle.common import interrupts
from brittle.common.ending import Status
from brittle.common.progress import Progress, Watch
from brittle.common.result import Result
from brittle.common.threads import one_torch_thread
from brittle.networks.base import Network
from brittle.training.objective import Objective
from brittle.training.stops import RunStatus, Stop


@dataclass(frozen=True, eq=False)
class Snapshot(Result):
    """The `network` when κ, the share of the attainable radius that was asked for, was `kappa`.

    `accuracy` is on the training examples, `held_out` on the others, None without. `share` is how much of what the data
    allow the examples of its last batch had, in the median. `kept` marks the one that the end was made from.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> rng, data = torch.Generator().manual_seed(0), bt.data.Orthogonal(6).sample(6)
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


PER_DECADE = 10  # recorded points per factor of ten, in steps and in log-loss
MOST_BETWEEN_CHECKPOINTS = 60.0  # seconds
LEAST_BETWEEN_CHECKPOINTS = 1.0
SECONDS_BETWEEN_REPORTS = 0.1
LONG_STEP = 0.25  # seconds
SIGNALS: dict[int, tuple[str, str]] = {
    signal.SIGINT: ("interrupt", "interrupted"),
    signal.SIGTERM: ("termination", "terminated"),
}
SMALL_STEP = 1e8  # operations: a few milliseconds of one core


@dataclass(frozen=True)
class PathPoint(Result):
    """The run at one recorded moment: after so many `steps` and `gradient_evaluations`.

    `log_loss` is ln L, `normalised_margin` min q/‖θ‖^degree, `smoothed_margin` -ln L_sum/‖θ‖^degree,
    `share_on_margin` that of the examples with q ≤ 1.1 min q, `norm` ‖θ‖.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=10, rng=torch.Generator().manual_seed(0))
        >>> path = bt.training.Flow(until=bt.training.LogLoss(-5)).train(start, data).path
        >>> path[-1].log_loss <= -5, path[0].steps
        (True, 0)
    """

    steps: int
    gradient_evaluations: int
    log_loss: float
    normalised_margin: float
    smoothed_margin: float
    share_on_margin: float
    norm: float


class RunEnded(Exception):
    """The run cannot or need not go on: `status`, one line that says why, and what it is called in `stopped_by`."""

    def __init__(self, status: Status, message: str, stopped_by: str | None = None) -> None:
        super().__init__(message)
        self.status, self.stopped_by = status, stopped_by or status.value


class Run(ABC):
    """θ with what was last measured there. `step` never writes into tensors that were handed out.

    `fresh` says whether the measurement belongs to the present θ; where it does not, only budgets are judged.
    """

    steps = 0
    evaluations = 0
    seconds = 0.0
    fresh = True
    rng: Generator | None = None
    robust_accuracy: float | None = None

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.theta: Tensor = objective.start
        self.margins = torch.empty(0)
        self.log_loss = self.log_loss_sum = math.nan

    def may_measure(self, goal: bool) -> bool:
        """Whether to measure θ here if it is not fresh: to judge a goal, or for the path alone."""
        return True

    @abstractmethod
    def measure(self) -> None:
        """Set the margins and the log-loss of the present θ."""

    @abstractmethod
    def step(self) -> None:
        """Go on by one step, or raise Ended and leave θ as it was."""

    def scalars(self) -> list[float]:
        """Numbers beyond θ that a resumed run needs."""
        return []

    def restore(self, scalars: list[float]) -> None:
        """Take back what `scalars` gave."""
        assert not scalars

    def arrays(self) -> dict[str, Tensor]:
        """Arrays beyond θ that a resumed run needs."""
        return {}

    def restore_arrays(self, arrays: dict[str, Tensor]) -> None:
        """Take back what `arrays` gave."""
        assert not arrays

    def snapshot(self) -> Tensor:
        """θ as it is now; no later step writes into it."""
        return self.theta

    def network(self) -> Network:
        return self.objective.network(self.theta)

    def way(self) -> tuple[Snapshot, ...]:
        """The networks on the way that can be chosen from."""
        return ()

    def look(self, recorded: bool) -> RunStatus:
        return RunStatus(
            steps=self.steps,
            evaluations=self.evaluations,
            seconds=self.seconds,
            log_loss=self.log_loss,
            log_loss_sum=self.log_loss_sum,
            margins=self.margins,
            theta_norm=lambda: self.objective.squared_norm(self.theta) ** 0.5,
            degree=self.objective.degree,
            recorded=recorded,
            network=self.network,
        )


@dataclass
class PathRecorder:
    """The points of the path, taken whenever steps or log-loss pass the next mark of a geometric grid."""

    points: list[PathPoint] = field(default_factory=list)
    next_steps: float = 0.0
    next_depth: float = 1.0

    def due(self, run: Run) -> bool:
        return run.fresh and (run.steps >= self.next_steps or -run.log_loss >= self.next_depth)

    def add(self, look: RunStatus) -> None:
        growth = 10 ** (1 / PER_DECADE)
        self.next_steps = max(look.steps * growth, look.steps + 1)
        self.next_depth = max(1.0, -look.log_loss * growth)
        self.points.append(
            PathPoint(
                look.steps,
                look.evaluations,
                look.log_loss,
                look.normalised_margin,
                look.smoothed_margin,
                look.share_on_margin,
                look.norm,
            )
        )


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended: `status`, what it was `stopped_by`, and a `message` of one line."""

    status: Status
    stopped_by: str
    message: str


def drive(run: Run, record: PathRecorder, stops: Sequence[Stop], watch: Watch, save: "Saver") -> RunOutcome:
    """Step until a stop is reached, the run ends itself, or Ctrl-C asks for a checkpoint."""
    with _interrupts(save.wanted) as received, interrupts.last_words(save.last):
        clock = time.perf_counter() - run.seconds
        reported = -math.inf
        first: RunStatus | None = None
        goal = any(not stop.budget for stop in stops)
        while True:
            if not run.fresh and (goal or run.steps >= record.next_steps) and run.may_measure(goal):
                run.measure()
                run.fresh = True
            stepped, run.seconds = run.seconds, time.perf_counter() - clock
            if run.seconds - stepped > LONG_STEP:
                save.remember(run, record)
            recorded = record.due(run)
            look = run.look(recorded)
            first = first or look
            if recorded:
                record.add(look)
            stop = _reached(run, stops, look, record.points)
            if stop is not None:
                outcome = _outcome(stop, stops)
                if outcome.status is not Status.REACHED:
                    save.now(run, record)
                return outcome
            if run.seconds - reported > SECONDS_BETWEEN_REPORTS:
                reported = run.seconds
                watch(Progress(max(s.done(first, look) for s in stops), _note(look)))
            save.if_due(run, record)
            if received:
                save.now(run, record)
                stopped_by, word = SIGNALS[received[0]]
                return RunOutcome(Status.INTERRUPTED, stopped_by, f"{word} at log-loss {run.log_loss:.6g}")
            try:
                run.step()
            except RunEnded as end:
                run.seconds = time.perf_counter() - clock
                if end.status is not Status.REACHED:
                    save.now(run, record)
                return RunOutcome(end.status, end.stopped_by, str(end))


@contextmanager
def few_threads(operations: float) -> Iterator[None]:
    """One thread for small steps: handing out the work would take longer than the work."""
    with one_torch_thread() if operations < SMALL_STEP else nullcontext():
        yield


def _note(look: RunStatus) -> str:
    return f"log-loss {look.log_loss:.5g}, step {look.steps}"


def _reached(run: Run, stops: Sequence[Stop], look: RunStatus, path: list[PathPoint]) -> Stop | None:
    judged = stops if run.fresh else [stop for stop in stops if stop.budget]
    return next((stop for stop in judged if stop.reached(look, path)), None)


def _outcome(stop: Stop, stops: Sequence[Stop]) -> RunOutcome:
    goals = [str(other) for other in stops if not other.budget]
    if stop.budget and goals:
        return RunOutcome(Status.BUDGET, str(stop), f"ended by {stop} before {' or '.join(goals)} was reached")
    return RunOutcome(Status.REACHED, str(stop), f"reached {stop}")


class Saver:
    """Where checkpoints go; the base class writes none."""

    wanted = False

    def now(self, run: Run, record: PathRecorder) -> None: ...

    def if_due(self, run: Run, record: PathRecorder) -> None: ...

    def remember(self, run: Run, record: PathRecorder) -> None:
        """The run as it is before a step that may take longer than an interrupted process lives."""

    def last(self) -> None:
        """Write what is remembered and not written yet: the process ends."""


@contextmanager
def _interrupts(wanted: bool) -> Iterator[list[int]]:
    """Notes the first signal, to be read between steps; the second one interrupts at once.

    A signal that would kill the process or do nothing keeps its meaning.
    """
    received: list[int] = []
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield received
    finally:
        restore()
