"""What the papers promise."""

from brittle.theorems.base import Failures, LikelyClaim, ParameterRange, ScalingClaim, Theorem
from brittle.theorems.check import CheckResult, check, check_data, check_default, check_instance
from brittle.theorems.comparison import Comparison, Promise, Relation, Scaling, Witness
from brittle.theorems.instance import Facts, Instance, KnownFacts
from brittle.theorems.judgement import CheckOutcome, Findings, Judgement
from brittle.theorems.registry import PAPERS, THEOREMS, Paper, citation, find
from brittle.theorems.trials import SweepCase, Trials, check_many, sweep

__all__ = [
    "PAPERS",
    "THEOREMS",
    "CheckOutcome",
    "CheckResult",
    "Comparison",
    "Facts",
    "Failures",
    "Findings",
    "Instance",
    "Judgement",
    "KnownFacts",
    "LikelyClaim",
    "Paper",
    "ParameterRange",
    "Promise",
    "Relation",
    "Scaling",
    "ScalingClaim",
    "SweepCase",
    "Theorem",
    "Trials",
    "Witness",
    "check",
    "check_data",
    "check_default",
    "check_instance",
    "check_many",
    "citation",
    "find",
    "sweep",
]
