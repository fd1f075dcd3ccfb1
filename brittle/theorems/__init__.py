"""What the papers promise."""

from brittle.theorems.base import Comparison, Failures, Instance, Promise, Solution, Theorem, Witness
from brittle.theorems.check import Outcome, Trials, Verdict, check, check_default, check_instance, check_many
from brittle.theorems.registry import THEOREMS, find
from brittle.theorems.scaling import Scaling

__all__ = [
    "THEOREMS",
    "Comparison",
    "Failures",
    "Instance",
    "Outcome",
    "Promise",
    "Scaling",
    "Solution",
    "Theorem",
    "Trials",
    "Verdict",
    "Witness",
    "check",
    "check_default",
    "check_instance",
    "check_many",
    "find",
]
