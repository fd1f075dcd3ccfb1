"""How a network breaks."""

from brittle.attacks.base import Attack, AttackResult, AttackTarget, Attempt
from brittle.attacks.flips import first_flip, flip_intervals, sooner_flip, step_past
from brittle.attacks.minimum_norm import MinimumNorm, MinimumNormResult, shorten_perturbations
from brittle.attacks.peers import Foolbox, as_foolbox, from_foolbox
from brittle.attacks.pgd import PGD, PGDResult
from brittle.attacks.pieces import FlipIntervals
from brittle.attacks.ray import GradientStep, GradientStepResult, Ray
from brittle.attacks.restriction import FREE, Restriction, pixels, restriction_for
from brittle.attacks.universal import (
    DIRECTIONS,
    Universal,
    UniversalResult,
    sum_falling_gradients,
    sum_off_subspace_weights,
    sum_signed_examples,
    sum_signed_gradients,
    sum_signed_means,
    transfer,
)
from brittle.common.parts import by_name

PARTS = by_name((MinimumNorm, Universal, GradientStep, PGD, Ray, Foolbox))

__all__ = [
    "DIRECTIONS",
    "FREE",
    "PARTS",
    "PGD",
    "Attack",
    "AttackResult",
    "AttackTarget",
    "Attempt",
    "FlipIntervals",
    "Foolbox",
    "GradientStep",
    "GradientStepResult",
    "MinimumNorm",
    "MinimumNormResult",
    "PGDResult",
    "Ray",
    "Restriction",
    "Universal",
    "UniversalResult",
    "as_foolbox",
    "first_flip",
    "flip_intervals",
    "from_foolbox",
    "pixels",
    "restriction_for",
    "shorten_perturbations",
    "sooner_flip",
    "step_past",
    "sum_falling_gradients",
    "sum_off_subspace_weights",
    "sum_signed_examples",
    "sum_signed_gradients",
    "sum_signed_means",
    "transfer",
]
