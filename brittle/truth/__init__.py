"""Instances whose exact radii are known and proved: what attacks and verifiers are measured against."""

from brittle.truth.made import TruthProblem, chosen, load_problem, make_problem, problems_in, save_problem
from brittle.truth.problems import RECIPES, ProblemRecipe
from brittle.truth.scored import (
    AttackScore,
    BoundScore,
    Count,
    attack_scores,
    bound_scores,
    check_proofs,
    measure_attack,
    measure_certificate,
    query,
    read_stated_bounds,
    write_queries,
)

__all__ = [
    "RECIPES",
    "AttackScore",
    "BoundScore",
    "Count",
    "ProblemRecipe",
    "TruthProblem",
    "attack_scores",
    "bound_scores",
    "check_proofs",
    "chosen",
    "load_problem",
    "make_problem",
    "measure_attack",
    "measure_certificate",
    "problems_in",
    "query",
    "read_stated_bounds",
    "save_problem",
    "write_queries",
]
