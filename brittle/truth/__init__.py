"""Instances whose exact radii are known and proved: what attacks and verifiers are measured against."""

from brittle.truth.checked import Count, checked
from brittle.truth.made import Problem, chosen, load_problem, made, problems_in, save_problem
from brittle.truth.problems import RECIPES, Recipe
from brittle.truth.scored import AttackScore, BoundScore, attack_scores, attacked, bound_scores, bounded, stated
from brittle.truth.vnnlib import query, write_queries

__all__ = [
    "RECIPES",
    "AttackScore",
    "BoundScore",
    "Count",
    "Problem",
    "Recipe",
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
