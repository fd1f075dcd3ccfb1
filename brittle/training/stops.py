"""When training ends. The first stop that is reached ends it, and the result names it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from brittle.common.errors import InputError, require, require_between, require_count, require_finite, require_positive
from brittle.common.kinds import check_kinds
from brittle.common.parts import option
from brittle.networks.base import Network


@dataclass(frozen=True, eq=False)
class RunStatus:
    """A run at one moment: what a stop may judge by. `recorded` holds at the log-spaced points of the path."""

    steps: int
    evaluations: int
    seconds: float
    log_loss: float
    log_loss_sum: float
    margins: Tensor
    theta_norm: Callable[[], float]
    degree: int
    recorded: bool
    network: Callable[[], Network]

    @cached_property
    def norm(self) -> float:
        return self.theta_norm()

    @cached_property
    def margin(self) -> float:
        return float(self.margins.min())

    @property
    def normalised_margin(self) -> float:
        return self.margin / self.norm**self.degree if self.norm > 0 else math.nan

    @property
    def smoothed_margin(self) -> float:
        """γ̃ = -ln L_sum/‖θ‖^degree: it never falls along gradient flow once it is positive."""
        return -self.log_loss_sum / self.norm**self.degree if self.norm > 0 else math.nan

    @cached_property
    def accuracy(self) -> float:
        return float((self.margins > 0).double().mean())

    @cached_property
    def share_on_margin(self) -> float:
        """Examples with q_i ≤ 1.1 min q (vardi2022 6); 0 while an example is misclassified."""
        return float((self.margins <= 1.1 * self.margin).double().mean()) if self.margin > 0 else 0.0


class Stop(ABC):
    """A condition on a run. Budgets end a run that has not reached its goal.

    Examples:
        >>> import brittle as bt
        >>> isinstance(bt.training.LogLoss(-5), bt.training.Stop)
        True
    """

    budget = False

    @abstractmethod
    def reached(self, look: RunStatus, path: Sequence[Any]) -> bool: ...

    @property
    def target_log_loss(self) -> float | None:
        """Where an integrator should land, if the stop is a loss."""
        return None

    def done(self, first: RunStatus, look: RunStatus) -> float:
        """The share of the way from the first look to the stop, in [0, 1]."""
        return 0.0


def _share(start: float, now: float, end: float) -> float:
    return min(max((now - start) / (end - start), 0.0), 1.0) if end != start else 1.0


@dataclass(frozen=True)
class LogLoss(Stop):
    """ln L ≤ value.

    Examples:
        >>> import brittle as bt
        >>> str(bt.training.LogLoss(-1e6))  # a loss far below the smallest float
        'log_loss=-1e+06'
    """

    value: float

    def __post_init__(self) -> None:
        require_finite("log_loss", self.value)

    def __str__(self) -> str:
        return f"log_loss={self.value:g}"

    @property
    def target_log_loss(self) -> float | None:
        return self.value

    def reached(self, look: RunStatus, path: Sequence[Any]) -> bool:
        return look.log_loss <= self.value

    def done(self, first: RunStatus, look: RunStatus) -> float:
        return _share(first.log_loss, look.log_loss, self.value)


@dataclass(frozen=True)
class Loss(Stop):
    """L < value.

    Examples:
        >>> import brittle as bt
        >>> str(bt.training.Loss(1e-3))
        'loss=0.001'
    """

    value: float

    def __post_init__(self) -> None:
        require_positive("loss", self.value)

    def __str__(self) -> str:
        return f"loss={self.value:g}"

    @property
    def target_log_loss(self) -> float | None:
        return math.log(self.value)

    def reached(self, look: RunStatus, path: Sequence[Any]) -> bool:
        return look.log_loss < math.log(self.value)

    def done(self, first: RunStatus, look: RunStatus) -> float:
        return _share(first.log_loss, look.log_loss, math.log(self.value))


@dataclass(frozen=True)
class Margin(Stop):
    """Every example has a margin greater than value.

    Examples:
        >>> import brittle as bt
        >>> str(bt.training.Margin(0.3))
        'margin=0.3'
    """

    value: float

    def __post_init__(self) -> None:
        require_finite("margin", self.value)

    def __str__(self) -> str:
        return f"margin={self.value:g}"

    def reached(self, look: RunStatus, path: Sequence[Any]) -> bool:
        return look.margin > self.value

    def done(self, first: RunStatus, look: RunStatus) -> float:
        return _share(first.margin, look.margin, self.value)


@dataclass(frozen=True)
class Accuracy(Stop):
    """At least this share of the training examples is classified correctly.

    Examples:
        >>> import brittle as bt
        >>> str(bt.training.Accuracy(1.0))
        'accuracy=1'
    """

    value: float  # between 0 and 1

    def __post_init__(self) -> None:
        require_between("accuracy", self.value, 0, 1)

    def __str__(self) -> str:
        return f"accuracy={self.value:g}"

    def reached(self, look: RunStatus, path: Sequence[Any]) -> bool:
        return look.accuracy >= self.value

    def done(self, first: RunStatus, look: RunStatus) -> float:
        return _share(first.accuracy, look.accuracy, self.value)


@dataclass(frozen=True)
class MarginStalls(Stop):
    """The normalised margin rose by less than this share while the log-loss doubled.

    Examples:
        >>> import brittle as bt
        >>> str(bt.training.MarginStalls(1e-3))
        'margin_stalls=0.001'
    """

    value: float = 1e-3  # the share

    def __post_init__(self) -> None:
        require_positive("margin_stalls", self.value)

    def __str__(self) -> str:
        return f"margin_stalls={self.value:g}"

    def reached(self, look: RunStatus, path: Sequence[Any]) -> bool:
        before = [point for point in path if -1 > point.log_loss >= look.log_loss / 2 and point.normalised_margin > 0]
        return bool(before) and look.normalised_margin < before[-1].normalised_margin * (1 + self.value)


@dataclass(frozen=True)
class KKT(Stop):
    """`measure(network)` is at most value; measured at the recorded points of the path only, for it may be dear.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> stop = bt.training.KKT(lambda network: bt.kkt.residual(network, data).stationarity, 0.01)
        >>> str(stop)
        'kkt=0.01'
    """

    measure: Callable[[Network], float]
    value: float = 1e-3

    def __post_init__(self) -> None:
        require_positive("kkt", self.value)

    def __str__(self) -> str:
        return f"kkt={self.value:g}"

    def reached(self, look: RunStatus, path: Sequence[Any]) -> bool:
        return look.recorded and look.margin > 0 and self.measure(look.network()) <= self.value


class RunLimit(Stop):
    """So much of what a run spends, whatever it has reached by then."""

    value: float
    budget = True

    @abstractmethod
    def spent(self, look: RunStatus) -> float:
        """Until this look."""

    def reached(self, look: RunStatus, path: Sequence[Any]) -> bool:
        return self.spent(look) >= self.value

    def done(self, first: RunStatus, look: RunStatus) -> float:
        return _share(0, self.spent(look), self.value)


@dataclass(frozen=True)
class Steps(RunLimit):
    """A number of steps.

    Examples:
        >>> import brittle as bt
        >>> str(bt.training.Steps(1000))
        'steps=1000'
    """

    value: int  # how many

    def __post_init__(self) -> None:
        require_count("steps", self.value)

    def __str__(self) -> str:
        return f"steps={self.value}"

    def spent(self, look: RunStatus) -> float:
        return look.steps


@dataclass(frozen=True)
class Time(RunLimit):
    """A number of seconds, checked after every step.

    Examples:
        >>> import brittle as bt
        >>> str(bt.training.Time(60))
        'seconds=60'
    """

    value: float  # seconds

    def __post_init__(self) -> None:
        require_positive("seconds", self.value)

    def __str__(self) -> str:
        return f"seconds={self.value:g}"

    def spent(self, look: RunStatus) -> float:
        return look.seconds


BY_NAME: dict[str, Callable[[float], Stop]] = {
    "loss": Loss,
    "log_loss": LogLoss,
    "margin": Margin,
    "accuracy": Accuracy,
    "margin_stalls": MarginStalls,
    "steps": lambda value: Steps(_whole("steps", value)),
    "seconds": Time,
}


@check_kinds
def parse_stop(text: str) -> Stop:
    """`loss=1e-30`, `log_loss=-1e4`, `margin=0.3`, `accuracy=1`, `margin_stalls=1e-3`, `steps=1000`, `seconds=60`.

    Examples:
        >>> import brittle as bt
        >>> bt.training.parse_stop("log_loss=-1e4")
        LogLoss(value=-10000.0)
    """
    name, equals, number = text.partition("=")
    name = name.strip().replace("-", "_")
    known = ", ".join(BY_NAME)
    require(bool(equals) and name in BY_NAME, f"until is {text!r}; it must be NAME=NUMBER with NAME one of {known}")
    try:
        return BY_NAME[name](float(number))
    except InputError as error:
        raise InputError(f"until is {text!r}: {error}") from None
    except ValueError:
        raise InputError(f"until is {text!r}; {number!r} is not a number") from None


def parse_stops(texts: str | Iterable[str]) -> tuple[Stop, ...]:
    """Stops from `loss=1e-30,steps=1000`, or from several such texts.

    Examples:
        >>> import brittle as bt
        >>> bt.training.parse_stops("loss=1e-3,steps=500")
        (Loss(value=0.001), Steps(value=500))
    """
    texts = [texts] if isinstance(texts, str) else list(texts)
    return tuple(parse_stop(part) for text in texts for part in text.split(",") if part.strip())


def _whole(name: str, value: float) -> int:
    require(value == int(value) if math.isfinite(value) else False, f"{name} is {value!r}; it must be a whole number")
    return int(value)


UNTIL = option(
    "loss=1e-30, log_loss=-1e4, margin=0.3, accuracy=1, margin_stalls=1e-3, steps=1000 or seconds=60; may be given "
    "several times, and the first that is reached ends the training.",
    kind=list[str],
    read=lambda texts, given: parse_stops(texts),
)
