"""What every training regime does before and after its steps."""

import hashlib
import time
from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, overload

import numpy as np
import torch
from torch import Generator, Tensor, nn

from brittle.attacks.subject import Holder, Model, subject
from brittle.common import interrupts
from brittle.common.ending import Status
from brittle.common.errors import require, require_count, require_positive
from brittle.common.files import read_npz, require_writable, write_npz
from brittle.common.kinds import check_kinds
from brittle.common.parts import check_fields, option
from brittle.common.progress import Watch, silent
from brittle.common.result import Result
from brittle.common.threads import one_torch_thread
from brittle.data.base import Data
from brittle.networks.base import Network
from brittle.networks.estimators import Estimator
from brittle.training.run import (
    LEAST_BETWEEN_CHECKPOINTS,
    MOST_BETWEEN_CHECKPOINTS,
    PathPoint,
    PathRecorder,
    Run,
    RunOutcome,
    Saver,
    Snapshot,
    drive,
    few_threads,
)
from brittle.training.stops import UNTIL, LogLoss, Stop

RATE = option("Step size.", check=require_positive)
BATCH = option("Examples per step; all of them if there are no more.", check=require_count)
LAYERS = option("Those that are trained.")
TRAINED_BIASES = option(
    "Whether biases are trained; by default they are, save those of two layers that are all zero.",
    "--train-biases/--no-train-biases",
)
PRECISION = option("Of the weights.")
BALL = option(
    "C0: no hidden weight is to move farther than C0/√width from its start.", "--ball", check=require_positive
)


# A run on disk: plain arrays only, so that a resumed run ends in the same network bit for bit.


Arrays = dict[str, np.ndarray]
COUNTERS = ("steps", "evaluations", "seconds")
NAMES = ("theta", "counters", "scalars", "path", "marks", "fingerprint")


class Checkpoint(Saver):
    """Writes a run to `path` now and then, and when it is asked to."""

    wanted = True

    def __init__(self, path: str | Path, fingerprint: str) -> None:
        self.path, self.fingerprint = Path(path), fingerprint
        require_place(self.path)
        self.written, self.took = time.monotonic(), 0.0
        self.remembered: Arrays | None = None

    def if_due(self, run: Run, record: PathRecorder) -> None:
        """Often, but not so often that more than a hundredth of the time goes into it; every minute at the latest."""
        wait = min(MOST_BETWEEN_CHECKPOINTS, max(LEAST_BETWEEN_CHECKPOINTS, 100 * self.took))
        if time.monotonic() - self.written > wait:
            self.now(run, record)

    def now(self, run: Run, record: PathRecorder) -> None:
        began = time.monotonic()
        self.remember(run, record)
        self.last()
        self.took = self.written - began

    def last(self) -> None:
        with interrupts.hold_signals():
            if self.remembered is not None:
                write_npz(self.path, self.remembered)
            self.written, self.remembered = time.monotonic(), None

    def remember(self, run: Run, record: PathRecorder) -> None:
        arrays: Arrays = {
            "theta": run.snapshot().numpy(),
            "counters": np.array([float(getattr(run, name)) for name in COUNTERS]),
            "scalars": np.array(run.scalars(), dtype=float),
            "path": np.array([astuple(point) for point in record.points]).reshape(-1, len(fields(PathPoint))),
            "marks": np.array([record.next_steps, record.next_depth]),
            "fingerprint": np.frombuffer(bytes.fromhex(self.fingerprint), dtype=np.uint8),
        }
        if run.rng is not None:
            arrays["generator"] = run.rng.get_state().numpy()
        self.remembered = arrays | {f"run_{name}": value.numpy() for name, value in run.arrays().items()}

    def load(self, run: Run) -> PathRecorder:
        """Put the run where the checkpoint left it."""
        extra = [f"run_{name}" for name in run.arrays()]
        names = (*NAMES, "generator", *extra)
        arrays = _read(self.path, names)
        same = arrays["fingerprint"].tobytes().hex() == self.fingerprint
        require(same, f"{self.path}: belongs to other data, another network or another regime; resume with the same")
        run.theta = torch.from_numpy(arrays["theta"].copy())
        for name, value in zip(COUNTERS, arrays["counters"].tolist(), strict=True):
            setattr(run, name, float(value) if name == "seconds" else int(value))
        if run.rng is not None:
            run.rng.set_state(torch.from_numpy(arrays["generator"].copy()))
        run.restore(arrays["scalars"].tolist())
        run.restore_arrays({name.removeprefix("run_"): torch.from_numpy(arrays[name].copy()) for name in extra})
        return PathRecorder([_point(row) for row in arrays["path"].tolist()], *arrays["marks"].tolist())


def require_place(path: Path) -> None:
    """A checkpoint can be written there, and nothing but an older one is overwritten and removed."""
    require_writable(path)
    if path.exists():
        _read(path, NAMES)


def _read(path: Path, names: tuple[str, ...]) -> Arrays:
    arrays = read_npz(path, names)
    missing = [name for name in NAMES if name not in arrays]
    require(not missing, f"{path}: is not a checkpoint of brittle (it has no array '{(missing or ['?'])[0]}')")
    return arrays


def _point(row: list[float]) -> PathPoint:
    return PathPoint(int(row[0]), int(row[1]), *row[2:])


def fingerprint(settings: dict[str, Any], *tensors: Tensor) -> str:
    """What must agree between a checkpoint and the run that resumes it."""
    digest = hashlib.sha256(repr(sorted(settings.items())).encode())
    for tensor in tensors:
        digest.update(np.ascontiguousarray(tensor.detach().numpy()).tobytes())
    return digest.hexdigest()


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
class TrainingResult(Result, Generic[Kind]):
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
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=10, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.Flow(until=bt.training.LogLoss(-3)).train(start, data)
        >>> trained.reached, trained.accuracy, type(trained.network).__name__
        (True, 1.0, 'TwoLayer')
    """

    network: Kind
    status: Status
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
    way: tuple[Snapshot, ...]

    @property
    def reached(self) -> bool:
        return self.status is Status.REACHED

    def content(self) -> dict[str, Any]:
        """Everything but the weights, which belong in a network file."""
        return {name: value for name, value in super().content().items() if name != "network"}


@dataclass(frozen=True)
class Trainer(ABC):
    """A way to train. Its fields are its parameters, `until` among them; `train` is its verb.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> until = bt.training.Loss(0.1), bt.training.Steps(5)  # whichever comes first
        >>> regime = bt.training.GradientDescent(until=until)
        >>> isinstance(regime, bt.training.Trainer)
        True
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=10, rng=torch.Generator().manual_seed(0))
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
    ) -> TrainingResult[Given]: ...

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
    ) -> TrainingResult[Network]: ...

    @check_kinds
    def train(
        self,
        network: Model,
        data: Holder,
        rng: Generator | None = None,
        *,
        watch: Watch = silent,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> TrainingResult[Network]:
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
        saver, record = Saver(), PathRecorder()
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


def _finished(run: Run, record: PathRecorder, outcome: RunOutcome) -> TrainingResult[Network]:
    if not run.fresh:
        run.measure()
    look = run.look(recorded=True)
    if not record.points or record.points[-1].steps != run.steps:
        record.add(look)
    return TrainingResult(
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
