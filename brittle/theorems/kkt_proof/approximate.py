"""What the shared proof leaves of its conclusion at a network that is only near a KKT point.

Derived in docs/approximate-kkt.md. The network is scaled to min q = 1 and explained by multipliers λ and slopes σ' up
to ε and δ; wherever the proof writes a neuron as a sum over the examples, that sum is off by r_j with Σ‖r_j‖² ≤ ε²‖θ‖².
"""

import math
from dataclasses import dataclass

import torch

from brittle.margin import residual
from brittle.networks import TwoLayer
from brittle.settings import Data
from brittle.theorems.kkt_proof.constants import ProofConstants

KINKS = (1e-6, 1e-4, 1e-3, 1e-2)  # near a kink any slope may be taken: how near is best is tried


@dataclass(frozen=True)
class Approximation:
    """How a network is explained by its examples.

    `stationarity` is ε, `complementarity` δ, `kink` κ: at inputs up to κ‖w̃_j‖‖x̃_i‖ the slope is free. `norm` is ‖θ‖ and
    `outer` ‖v‖ at margin 1, `total` Σλ_i, and `reach` the largest ‖x̃‖ = √(‖x‖² + 1).
    """

    stationarity: float
    complementarity: float
    kink: float
    norm: float
    outer: float
    total: float
    reach: float

    @property
    def misfit(self) -> float:
        """E = ε‖θ‖‖v‖s ≥ Σ_j |v_j|‖r_j‖‖x̃‖: by how much an output may differ from what the examples make of it."""
        return self.stationarity * self.norm * self.outer * self.reach

    @property
    def kinks(self) -> float:
        """K = κs‖θ‖²/2 ≥ Σ_j |v_j| κ‖w̃_j‖‖x̃‖."""
        return self.kink * self.reach * self.norm**2 / 2

    @property
    def slack(self) -> float:
        """δ Σλ ‖v‖²: over q - 1 it bounds Σ_j v_j² λ_i σ'_ij of an example of margin q."""
        return self.complementarity * self.total * self.outer**2

    def largest_sum(self, numbers: ProofConstants) -> float:
        """α: the most that Σ v_j² λ_i σ'_ij can be over a group and the neurons of one sign (C.1, A.10)."""
        own = numbers.within * (1 - 2 * numbers.share)
        here = 1 + self.misfit
        on_its_side = (here + math.sqrt(here**2 + 4 * own * self.slack)) / (2 * own)
        on_the_other = (self.misfit + self.kinks) / (numbers.within * (1 - numbers.share))
        return max(on_its_side, on_the_other)

    def beyond_margin(self, numbers: ProofConstants) -> float:
        """The most that a margin can exceed 1 where every group is one example (C.1)."""
        spare = 1 - numbers.share * numbers.within * self.largest_sum(numbers) - self.misfit
        return (math.sqrt(spare**2 + 4 * numbers.within * self.slack) - spare) / 2


def approximations(network: TwoLayer, data: Data, reach: float) -> list[Approximation]:
    """The network with the multipliers that explain it best, for several widths of the kinks."""
    network = network.to(torch.float64)
    scaled = network.scaled(float(network.margins(data.X, data.y).min()) ** -0.5)
    norm, outer = math.sqrt(float(scaled.squared_norm)), float(scaled.v.norm())
    found = []
    for kink in KINKS:
        measured = residual(scaled, data, margin_tolerance=math.inf, kink_tolerance=kink)
        errors = (measured.stationarity, measured.complementarity, kink)
        found.append(Approximation(*errors, norm, outer, float(measured.multipliers.sum()), reach))
    return found
