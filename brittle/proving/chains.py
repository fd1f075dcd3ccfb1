"""Proofs for any depth by one dual point without intervals: the multipliers of `certificates.deep_dual`.

All curvatures are those of the network, or of one rival where that is not enough and the network is small.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle.certificates.deep_dual.chain import Chain, Margins
from brittle.certificates.deep_dual.curvatures import of_network
from brittle.certificates.deep_dual.definite import Curvatures
from brittle.certificates.deep_dual.lagrangian import Multipliers
from brittle.certificates.deep_dual.refine import DenseLayers, refined
from brittle.certificates.deep_dual.solver import ascend, first_multipliers, first_order_flips
from brittle.certificates.scales import Array, near_one
from brittle.networks import Layered
from brittle.proving.program import short
from proofcheck.lagrangian import FREE, Step

STEPS = (50, 350)  # of the solver, and then as many more
SMALL = 800  # neurons of a network whose curvatures are refined for each rival


@dataclass(frozen=True, eq=False)
class Chained:
    """A network with its curvatures."""

    chain: Chain
    curvatures: Curvatures
    dense: DenseLayers | None

    @classmethod
    def of(cls, network: Layered) -> "Chained":
        chain = Chain.of(network)
        return cls(chain, of_network(chain), DenseLayers.of(chain) if sum(chain.widths) <= SMALL else None)

    def around(self, x: Tensor, radius: float, y: Tensor, box: tuple[float, float] | None) -> "Rivals":
        """The margins over all rivals in the ball, and the start of their multipliers."""
        margins = self.chain.around(x, radius, y, box)
        flips, mu = first_order_flips(margins)
        found = ascend(margins, first_multipliers(margins, self.curvatures.values, flips, mu), flips, STEPS[0])[0]
        W, by, b, b_by = self.chain.last.differences(y)
        units = near_one(W, by, b, b_by - self.chain.units[-1] - margins.exponent)[2]
        return Rivals(self, margins, found, flips.delta.norm(dim=1).numpy(), units)


@dataclass(frozen=True, eq=False)
class Rivals:
    """One row of multipliers for every rival, with the length of its first-order flip, and the unit of its margin."""

    chained: Chained
    margins: Margins
    multipliers: Multipliers
    distances: Array
    units: np.ndarray

    def first(self, rival: int) -> Step:
        return self._step(rival, self.multipliers.of(torch.tensor([rival])))

    def better(self, rival: int) -> Step:
        """With more steps of the solver, and curvatures of its own."""
        row = torch.tensor([rival])
        margins, start = self.margins.of(row), self.multipliers.of(row)
        flip, _ = first_order_flips(margins)
        found = ascend(margins, start, flip, STEPS[1])[0]
        if self.chained.dense is not None:
            found = refined(self.chained.dense, margins, found)[0]
        return self._step(rival, found)

    def _step(self, rival: int, found: Multipliers) -> Step:
        """In the network's units: h_k = 2^(units_k + e)·h, δ = 2^e·δ, f = 2^(unit + units_K + e)·f."""
        e, chain = self.margins.exponent, self.chained.chain
        by = [np.full(width, unit) for width, unit in zip(chain.widths, chain.units, strict=True)]
        units = np.concatenate(by)
        lam = [np.broadcast_to(each.numpy(), len(unit)) for each, unit in zip(found.curvatures, by, strict=True)]
        alpha, beta = (np.concatenate([each[0].numpy() for each in part]) for part in (found.signs, found.lines))
        mu = np.ldexp(float(found.margin[0]), int(e - self.units[rival] - chain.units[-1]))
        walls = np.zeros(len(self.margins.x)) if found.walls is None else np.ldexp(found.walls[0].numpy(), e)
        nothing = np.zeros(len(units))
        kinds = np.full(len(units), FREE, dtype=np.int8)
        alpha, beta = np.ldexp(alpha, e - units), np.ldexp(beta, e - units)
        curved = np.ldexp(np.concatenate(lam), -2 * units)
        return short(Step(kinds, alpha, beta, curved, nothing, nothing, nothing, walls, float(mu)))
