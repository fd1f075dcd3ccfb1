"""The dual bound for networks of any depth: from an example to a radius."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.certificates.deep_dual.chain import Chain, LayeredMultipliers, Margins
from brittle.certificates.deep_dual.definite import Curvatures, of_network
from brittle.certificates.deep_dual.judge import proven_quotients, proven_radii
from brittle.certificates.deep_dual.solver import (
    DenseLayers,
    ascend,
    first_multipliers,
    first_order_flips,
    minimiser,
    refine_multipliers,
)
from brittle.certificates.example import Example, RadiusInterval
from brittle.common.errors import require_value
from brittle.networks import Network, as_layered

STEPS = 50  # of the solver
BOXED = 2  # times as many with a box, which is slower to settle
REFINED = 4  # times as many where curvatures are refined
SMALL = 800  # neurons of a network whose curvatures are refined one by one
POLISH = 60  # steps of conjugate gradients, at most
ACCURATE = 1e-6  # of ‖δ‖: what is lost of the bound is about its square


@dataclass(frozen=True, eq=False)
class DeepDual:
    """What all examples share: the hidden layers in their units, and λ with the proof that H is definite.

    steps: of the solver; boxed: flips outside the example's box do not count; dense: the layers as matrices, where λ
    is refined for every neuron.
    """

    chain: Chain
    curvatures: Curvatures
    steps: int
    boxed: bool
    dense: DenseLayers | None

    @classmethod
    def of(cls, network: Network, method: str, refined: bool, boxed: bool) -> "DeepDual":
        chain = Chain.of(as_layered(network, f"method {method}"))
        steps = STEPS * (BOXED if boxed else 1) * (REFINED if refined else 1)
        dense = DenseLayers.of(chain) if refined and sum(chain.widths) <= SMALL else None
        return cls(chain, of_network(chain), steps, boxed, dense)

    def enclose(self, example: Example, enclosure: RadiusInterval) -> RadiusInterval:
        """With the proof that no flip of the ball is closer."""
        box = (
            require_value(example.box, "boxed is True without a box; pass bounds=(lowest, highest)")
            if self.boxed
            else None
        )
        margins = self.chain.around(example.x, enclosure.ball, example.y, box)
        ball = math.ldexp(enclosure.ball, -margins.exponent)
        radius, points = self._radius(margins, ball)
        enclosure = enclosure.proven(math.ldexp(min(radius, ball), margins.exponent))
        return example.attacked(enclosure, points) if len(points) else enclosure

    def _radius(self, margins: Margins, ball: float) -> tuple[float, Tensor]:
        """The nearest rival first: what it leaves open need not be closed for others. With all relaxed points."""
        radii = proven_quotients(margins)
        if not bool((radii < ball).any()):
            return ball, torch.zeros(0, 0, dtype=torch.float64)
        flips, _ = first_order_flips(margins)
        nearest = torch.where(radii < ball, flips.delta.norm(dim=1), torch.inf).argmin()[None]
        found, points = self.radii(margins.of(nearest), ball)
        radii[nearest] = torch.maximum(radii[nearest], found)
        ball = min(float(radii[nearest]), ball)
        rest = (radii < ball).nonzero()[:, 0]
        if len(rest):
            found, others = self.radii(margins.of(rest), ball)
            radii[rest], points = torch.maximum(radii[rest], found), torch.cat([points, others])
        return float(radii.min()), points

    def radii(self, margins: Margins, ball: float) -> tuple[Tensor, Tensor]:
        """Proved radii, one for each rival of the margins, in their lengths, and δ of the relaxed points."""
        flip, mu = first_order_flips(margins)
        start = first_multipliers(margins, self.curvatures.values, flip, mu)
        multipliers, point = ascend(margins, start, flip, self.steps)
        point = minimiser(margins, multipliers, point, POLISH, ACCURATE)
        radii = proven_radii(margins, multipliers, point, self.curvatures)
        if self.dense is not None:
            radii = self._refined(self.dense, margins, multipliers, radii, ball)
        return radii, point.delta

    def _refined(
        self, dense: DenseLayers, margins: Margins, multipliers: LayeredMultipliers, radii: Tensor, ball: float
    ) -> Tensor:
        for rival in (radii < ball).nonzero():
            finer = refine_multipliers(dense, margins.of(rival), multipliers.of(rival))
            radii[rival] = torch.maximum(radii[rival], proven_radii(margins.of(rival), *finer))
        return radii
