"""How a network breaks."""

from brittle.attacks.base import Attack, AttackResult, Attempt, Target
from brittle.attacks.directions import (
    DIRECTIONS,
    falling_gradients,
    off_subspace_weights,
    signed_examples,
    signed_gradients,
    signed_means,
)
from brittle.attacks.flips import first_flip, flip_intervals, sooner_flip, step_past
from brittle.attacks.gradient_step import GradientStep, GradientStepResult
from brittle.attacks.intervals import Intervals
from brittle.attacks.minimum_norm import MinimumNorm, MinimumNormResult, shortened
from brittle.attacks.peers import Foolbox, as_foolbox, from_foolbox
from brittle.attacks.pgd import PGD, PGDResult
from brittle.attacks.ray import Ray
from brittle.attacks.restriction import FREE, Restriction, pixels, restriction_for
from brittle.attacks.universal import Universal, UniversalResult, transfer
from brittle.common.parts import by_name

PARTS = by_name((MinimumNorm, Universal, GradientStep, PGD, Ray, Foolbox))

__all__ = [
    "DIRECTIONS",
    "FREE",
    "PARTS",
    "PGD",
    "Attack",
    "AttackResult",
    "Attempt",
    "Foolbox",
    "GradientStep",
    "GradientStepResult",
    "Intervals",
    "MinimumNorm",
    "MinimumNormResult",
    "PGDResult",
    "Ray",
    "Restriction",
    "Target",
    "Universal",
    "UniversalResult",
    "as_foolbox",
    "falling_gradients",
    "first_flip",
    "flip_intervals",
    "from_foolbox",
    "off_subspace_weights",
    "pixels",
    "restriction_for",
    "shortened",
    "signed_examples",
    "signed_gradients",
    "signed_means",
    "sooner_flip",
    "step_past",
    "transfer",
]
