"""What the papers promise."""

from brittle.theorems.base import Comparison, Instance, Promise, Theorem, Witness
from brittle.theorems.check import Outcome, Trials, Verdict, check, check_default, check_many

__all__ = [
    "Comparison",
    "Instance",
    "Outcome",
    "Promise",
    "Theorem",
    "Trials",
    "Verdict",
    "Witness",
    "check",
    "check_default",
    "check_many",
]
