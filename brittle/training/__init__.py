"""How a network gets its weights."""

from brittle.common.ending import Ending
from brittle.common.parts import by_name
from brittle.training.adversarial import Adversarial
from brittle.training.base import Regime, Training
from brittle.training.descent import Descent
from brittle.training.flow import Flow
from brittle.training.lazy import Lazy
from brittle.training.limited_pgd import LimitedPGD
from brittle.training.lipschitz_margin import LipschitzMargin
from brittle.training.losses import Exponential, Logistic, LossFunction
from brittle.training.maximum_radius import MaximumRadius
from brittle.training.recipe import Recipe
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
from brittle.training.way import Waypoint

PARTS = by_name((Flow, Recipe, Descent, Lazy, Adversarial, MaximumRadius, LimitedPGD, LipschitzMargin))

__all__ = [
    "KKT",
    "PARTS",
    "Accuracy",
    "Adversarial",
    "Descent",
    "Ending",
    "Exponential",
    "Flow",
    "Lazy",
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
    "Recipe",
    "Regime",
    "Steps",
    "Stop",
    "Time",
    "Training",
    "Waypoint",
    "parse_stop",
    "parse_stops",
]
