"""How a network gets its weights."""

from brittle.training.base import Regime, Training
from brittle.training.flow import Flow
from brittle.training.losses import Exponential, Logistic, LossFunction
from brittle.training.run import PathPoint
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

__all__ = [
    "KKT",
    "Accuracy",
    "Exponential",
    "Flow",
    "LogLoss",
    "Logistic",
    "Loss",
    "LossFunction",
    "Margin",
    "MarginStalls",
    "PathPoint",
    "Regime",
    "Steps",
    "Stop",
    "Time",
    "Training",
    "parse_stop",
    "parse_stops",
]
