"""What is made of a certificate's word: a flip below it is a contradiction, unless it is rounding in the attack."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from brittle.certificates.example import Enclosure, Example
from brittle.certificates.layers import Layers

SAME = 1e-9  # a lower bound above an upper one by less than this share is rounding in the attack, not a contradiction
SHORTEST = 2.0**-1000  # no smaller radius is claimed: below, floats lose digits
NOT_FINITE = "the margin is not finite in float64: rescale the network"
ROUNDED = "rounding or underflow exceeds the margin: its sign at the example itself is not proved"
UNPROVED = "the method proves no radius above 0 here: try exact or relaxation"


class Contradiction(RuntimeError):
    """A flip was measured below a certified radius: a bug in this package, never the user's fault.

    Examples:
        >>> from brittle.certificates import Contradiction
        >>> issubclass(Contradiction, RuntimeError)
        True
    """


def judged(example: Example, enclosure: Enclosure) -> Enclosure:
    """The enclosure with lower ≤ upper, without a flip that is only the rounding of the margin."""
    radius = enclosure.lower if enclosure.lower > SHORTEST else 0.0
    if radius > enclosure.upper * (1 + SAME):
        if _surely_flips(example, enclosure, min(radius, enclosure.cap)):
            raise Contradiction(f"example {example.row} flips at {enclosure.upper!r} and was certified to {radius!r}")
        enclosure = replace(enclosure, upper=math.inf, flip=torch.zeros_like(enclosure.flip))
    return replace(enclosure, lower=min(radius, enclosure.ball))


def reason(example: Example) -> str:
    """Why nothing was proved of a rightly classified example."""
    if not math.isfinite(example.margin):
        return NOT_FINITE
    if example.network.depth is None:
        return UNPROVED
    values, slips = _outputs(example, example.x)
    return UNPROVED if (values > slips).all() else ROUNDED


def _surely_flips(example: Example, enclosure: Enclosure, radius: float) -> bool:
    """Whether the ray through the measured flip has a margin below zero, rounding aside, before the radius."""
    if example.network.depth is None:
        return True
    for stretch in torch.linspace(1, radius / enclosure.upper, 17, dtype=torch.float64)[:-1]:
        values, slips = _outputs(example, example.x + stretch * enclosure.flip)
        if (values + slips < 0).any():
            return True
    return False


def _outputs(example: Example, point: Tensor) -> tuple[Tensor, Tensor]:
    """The margins over every rival at a point, each in a unit of its own, and how far they may be off."""
    margins = Layers.of(example.network, "").around(point, 0.0, example.y)
    return margins.outputs(margins.x)
