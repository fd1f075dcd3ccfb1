"""How a network breaks."""

from brittle.attacks.base import Attack, AttackResult
from brittle.attacks.directions import (
    DIRECTIONS,
    falling_gradients,
    off_subspace_weights,
    signed_examples,
    signed_gradients,
    signed_means,
)
from brittle.attacks.flips import beyond, first_flip, flip_intervals
from brittle.attacks.gradient_step import GradientStep, GradientStepResult
from brittle.attacks.intervals import Intervals
from brittle.attacks.minimum_norm import MinimumNorm, MinimumNormResult
from brittle.attacks.pgd import PGD, PGDResult
from brittle.attacks.ray import Ray
from brittle.attacks.restriction import FREE, Restriction, of_data, pixels
from brittle.attacks.universal import Universal, UniversalResult, transfer

__all__ = [
    "DIRECTIONS",
    "FREE",
    "PGD",
    "Attack",
    "AttackResult",
    "GradientStep",
    "GradientStepResult",
    "Intervals",
    "MinimumNorm",
    "MinimumNormResult",
    "PGDResult",
    "Ray",
    "Restriction",
    "Universal",
    "UniversalResult",
    "beyond",
    "falling_gradients",
    "first_flip",
    "flip_intervals",
    "of_data",
    "off_subspace_weights",
    "pixels",
    "signed_examples",
    "signed_gradients",
    "signed_means",
    "transfer",
]
