"""How a network gets its weights."""

from brittle.common.ending import Status
from brittle.common.parts import by_name
from brittle.training.adversarial import Adversarial
from brittle.training.base import Trainer, TrainingResult
from brittle.training.descent import GradientDescent
from brittle.training.flow import Flow
from brittle.training.lazy import LazyTraining
from brittle.training.limited_pgd import LimitedPGD
from brittle.training.lipschitz_margin import LipschitzMargin
from brittle.training.losses import Exponential, Logistic, LossFunction
from brittle.training.maximum_radius import MaximumRadius
from brittle.training.recipe import SgdSchedule
from brittle.training.run import PathPoint, Snapshot
from brittle.training.stops import (
    KKT,
    Accuracy,
    LogLoss,
    Loss,
    Margin,
    MarginStalls,
    Steps,
    Stop,
    Time,
    parse_stop,
    parse_stops,
)

PARTS = by_name(
    (Flow, SgdSchedule, GradientDescent, LazyTraining, Adversarial, MaximumRadius, LimitedPGD, LipschitzMargin)
)

__all__ = [
    "KKT",
    "PARTS",
    "Accuracy",
    "Adversarial",
    "Exponential",
    "Flow",
    "GradientDescent",
    "LazyTraining",
    "LimitedPGD",
    "LipschitzMargin",
    "LogLoss",
    "Logistic",
    "Loss",
    "LossFunction",
    "Margin",
    "MarginStalls",
    "MaximumRadius",
    "PathPoint",
    "SgdSchedule",
    "Snapshot",
    "Status",
    "Steps",
    "Stop",
    "Time",
    "Trainer",
    "TrainingResult",
    "parse_stop",
    "parse_stops",
]
