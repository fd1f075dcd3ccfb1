"""What every training regime does before and after its steps."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, overload

from torch import Generator, nn

from brittle.attacks.subject import Holder, Model, subject
from brittle.common.ending import Ending
from brittle.common.errors import require
from brittle.common.kinds import kinds_checked
from brittle.common.parts import check_fields
from brittle.common.progress import Watch, silent
from brittle.common.result import Result
from brittle.common.threads import one_torch_thread
from brittle.networks.base import Network
from brittle.networks.estimators import Estimator
from brittle.settings.base import Data
from brittle.training.checkpoint import Checkpoint, fingerprint
from brittle.training.run import Outcome, PathPoint, Record, Run, Saver, drive, few_threads
from brittle.training.stops import UNTIL, LogLoss, Stop
from brittle.training.way import Waypoint

Kind = TypeVar("Kind", bound=Network, covariant=True)
Given = TypeVar("Given", bound=Network)
SHOWN = 3  # names of parameters in a sentence


def frozen(model: Model) -> str:
    """Why a module is not to be trained as a whole, in a sentence: parameters are frozen; empty where none is."""
    named = list(model.named_parameters()) if isinstance(model, nn.Module) else []
    names = [name for name, parameter in named if not parameter.requires_grad]
    if not names:
        return ""
    if len(names) == len(named):
        return "every parameter of the module is frozen: call its requires_grad_(True) if it may be trained"
    shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
    return (
        f"{len(names)} of {len(named)} parameters of the module are frozen ({shown}), and training would move all: "
        "call requires_grad_(True) on them if they may be trained"
    )


@dataclass(frozen=True, eq=False)
class Training(Result, Generic[Kind]):
    """A trained `network` and how it came about.

    `status` is reached, budget (a number of steps or seconds ended it first), stalled, diverged or interrupted, and
    knows its advice; `stopped_by` names the stop or the signal, `message` says it in a sentence. `steps`,
    `gradient_evaluations` and `seconds` are what the run took, `path` its recorded moments. At its end: `log_loss`,
    the smallest `margin`, `normalised_margin` min q/‖θ‖^degree with degree 2 for two layers, `accuracy`, the
    `share_on_margin` of the examples, and the `norm` of all parameters. `robust_accuracy` is known to adversarial
    training only, the `way`, networks met while more and more was asked for, to guarded training.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> start = bt.networks.PyTorch().draw(6, width=10, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.Flow(until=bt.training.LogLoss(-3)).train(start, data)
        >>> trained.reached, trained.accuracy, type(trained.network).__name__
        (True, 1.0, 'TwoLayer')
    """

    network: Kind
    status: Ending
    stopped_by: str
    message: str
    steps: int
    gradient_evaluations: int
    seconds: float
    log_loss: float
    margin: float
    normalised_margin: float
    accuracy: float
    robust_accuracy: float | None
    share_on_margin: float
    norm: float
    path: tuple[PathPoint, ...]
    way: tuple[Waypoint, ...]

    @property
    def reached(self) -> bool:
        return self.status is Ending.REACHED

    def content(self) -> dict[str, Any]:
        """Everything but the weights, which belong in a network file."""
        return {name: value for name, value in super().content().items() if name != "network"}


@dataclass(frozen=True)
class Regime(ABC):
    """A way to train. Its fields are its parameters, `until` among them; `train` is its verb.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> regime = bt.training.Descent(until=(bt.training.Loss(0.1), bt.training.Steps(5)))  # whichever comes first
        >>> isinstance(regime, bt.training.Regime)
        True
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> start = bt.networks.PyTorch().draw(6, width=10, rng=torch.Generator().manual_seed(0))
        >>> regime.train(start, data).steps
        5
    """

    name: ClassVar[str]  # what the command line calls it

    until: Stop | tuple[Stop, ...] = field(default_factory=lambda: LogLoss(-70), metadata=UNTIL)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def stops(self) -> tuple[Stop, ...]:
        return (self.until,) if isinstance(self.until, Stop) else tuple(self.until)

    @overload
    def train(
        self,
        network: Given,
        data: Holder,
        rng: Generator | None = None,
        *,
        watch: Watch = silent,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> Training[Given]: ...

    @overload
    def train(
        self,
        network: nn.Module | Estimator,
        data: Holder,
        rng: Generator | None = None,
        *,
        watch: Watch = silent,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> Training[Network]: ...

    @kinds_checked
    def train(
        self,
        network: Model,
        data: Holder,
        rng: Generator | None = None,
        *,
        watch: Watch = silent,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> Training[Network]:
        """Train the network on the data until a stop is reached; the result is a network of the same kind.

        With `checkpoint`, Ctrl-C and a failed step leave the run there, as does every minute of work, or less where
        that costs little; with `resume` it goes on from there to the network that it would have become.
        """
        reason = frozen(network)
        require(not reason, reason)
        network, data = subject(network, data)
        self._check(network, data)
        with one_torch_thread():  # sums round differently with more, and a small run is to end in the same network
            run = self.begin(network, data, rng)
        settings = {"regime": type(self).__name__} | {
            item.name: getattr(self, item.name) for item in fields(self) if item.name != "until"
        }
        saver, record = Saver(), Record()
        if checkpoint is not None:
            saver = Checkpoint(checkpoint, fingerprint(settings, data.X, data.y, run.objective.start))
        if resume:
            require(isinstance(saver, Checkpoint), "resume needs the path of a checkpoint")
            assert isinstance(saver, Checkpoint)
            record = saver.load(run)
        with few_threads(run.objective.operations):
            run.measure()
            outcome = drive(run, record, self.stops, watch, saver)
            return _finished(run, record, outcome)

    def _check(self, network: Network, data: Data) -> None:
        require(len(self.stops) > 0, "until is empty; name at least one stop, such as LogLoss(-70)")
        network.check(data.X, data.y)

    @abstractmethod
    def begin(self, network: Network, data: Data, rng: Generator | None) -> Run:
        """A run at its start; `train` drives it from stop to stop."""


def _finished(run: Run, record: Record, outcome: Outcome) -> Training[Network]:
    if not run.fresh:
        run.measure()
    look = run.look(recorded=True)
    if not record.points or record.points[-1].steps != run.steps:
        record.add(look)
    return Training(
        network=run.network(),
        status=outcome.status,
        stopped_by=outcome.stopped_by,
        message=outcome.message,
        steps=run.steps,
        gradient_evaluations=run.evaluations,
        seconds=run.seconds,
        log_loss=look.log_loss,
        margin=look.margin,
        normalised_margin=look.normalised_margin,
        accuracy=look.accuracy,
        robust_accuracy=run.robust_accuracy,
        share_on_margin=look.share_on_margin,
        norm=look.norm,
        path=tuple(record.points),
        way=run.way(),
    )
