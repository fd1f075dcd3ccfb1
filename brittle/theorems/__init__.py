"""What the papers promise."""

from brittle.theorems.base import Failures, LikelyClaim, ScalingClaim, Solution, Theorem
from brittle.theorems.check import Verdict, check, check_data, check_default, check_instance
from brittle.theorems.cited import citation
from brittle.theorems.comparison import Comparison, Promise, Relation
from brittle.theorems.instance import Facts, Instance, Told
from brittle.theorems.judgement import Findings, Judgement, Outcome
from brittle.theorems.papers import PAPERS, Paper
from brittle.theorems.registry import THEOREMS, find
from brittle.theorems.scaling import Scaling
from brittle.theorems.sweeps import Case, sweep
from brittle.theorems.trials import Trials, check_many
from brittle.theorems.witness import Witness

__all__ = [
    "PAPERS",
    "THEOREMS",
    "Case",
    "Comparison",
    "Facts",
    "Failures",
    "Findings",
    "Instance",
    "Judgement",
    "LikelyClaim",
    "Outcome",
    "Paper",
    "Promise",
    "Relation",
    "Scaling",
    "ScalingClaim",
    "Solution",
    "Theorem",
    "Told",
    "Trials",
    "Verdict",
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
