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
from brittle.attacks.intervals import Intervals
from brittle.attacks.ray import Ray
from brittle.attacks.subspace import FREE, Subspace, of_data, pixels
from brittle.attacks.universal import Universal, UniversalResult, transfer

__all__ = [
    "DIRECTIONS",
    "FREE",
    "Attack",
    "AttackResult",
    "Intervals",
    "Ray",
    "Subspace",
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
