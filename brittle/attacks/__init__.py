"""How a network breaks."""

from brittle.attacks.base import Attack, AttackResult, AttackTarget, Attempt
from brittle.attacks.flips import first_flip, flip_intervals, sooner_flip, step_past
from brittle.attacks.minimum_norm import MinimumNorm, MinimumNormResult, shortened
from brittle.attacks.peers import Foolbox, as_foolbox, from_foolbox
from brittle.attacks.pgd import PGD, PGDResult
from brittle.attacks.pieces import FlipIntervals
from brittle.attacks.ray import GradientStep, GradientStepResult, Ray
from brittle.attacks.restriction import FREE, Restriction, pixels, restriction_for
from brittle.attacks.universal import (
    DIRECTIONS,
    Universal,
    UniversalResult,
    falling_gradients,
    off_subspace_weights,
    signed_examples,
    signed_gradients,
    signed_means,
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
