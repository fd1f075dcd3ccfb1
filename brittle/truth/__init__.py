"""Instances whose exact radii are known and proved: what attacks and verifiers are measured against."""

from brittle.truth.made import TruthProblem, chosen, load_problem, made, problems_in, save_problem
from brittle.truth.problems import RECIPES, ProblemRecipe
from brittle.truth.scored import (
    AttackScore,
    BoundScore,
    Count,
    attack_scores,
    attacked,
    bound_scores,
    bounded,
    checked,
    query,
    stated,
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
    "attacked",
    "bound_scores",
    "bounded",
    "checked",
    "chosen",
    "load_problem",
    "made",
    "problems_in",
    "query",
    "save_problem",
    "stated",
    "write_queries",
]
