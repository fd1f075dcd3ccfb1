"""A KKT point as the proofs see it: the network at margin 1, its multipliers λ_i and its slopes σ'_ij."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.margin import KKTResidual
from brittle.networks import TwoLayer
from brittle.settings import Data


@dataclass(frozen=True, eq=False)
class Multipliers:
    """The `network` scaled to min q = 1, and the multipliers that explain it best.

    `lam` (n,) holds λ_i, `slopes` (n, width) σ'_ij in [0, 1], `on_margin` (n,) which examples may carry a multiplier;
    `stationarity` is ε, what they leave unexplained.
    """

    network: TwoLayer
    lam: Tensor
    slopes: Tensor
    on_margin: Tensor
    stationarity: float

    @property
    def loads(self) -> Tensor:
        """Σ_i |v_j| λ_i σ'_ij, (width,): by how much neuron j is made of examples."""
        return self.network.v.abs() * (self.lam @ self.slopes)

    @property
    def alive(self) -> Tensor:
        """Neurons that are made of examples; the others are zero at a KKT point."""
        loads = self.loads
        return loads > 1e-9 * loads.max()

    def smallest_ratio(self, values: Tensor) -> float:
        """min over rows and living neurons of values (any, width) over `loads`."""
        return float((values[:, self.alive] / self.loads[self.alive]).min())

    def sums(self, sign: int) -> Tensor:
        """Σ_j v_j² λ_i σ'_ij over the neurons with v_j of this sign, (n,)."""
        side = (sign * self.network.v > 0).to(self.network.dtype)
        return self.lam * (self.slopes @ (side * self.network.v.square()))


def multipliers(network: TwoLayer, data: Data, conditions: KKTResidual) -> Multipliers:
    """The multipliers and slopes of these `conditions`, which were measured on the network and the data."""
    network = network.to(torch.float64)
    network = network.scaled(float(network.margins(data.X, data.y).min()) ** -0.5)
    slopes = network.preactivations(data.X).gt(0).to(network.dtype)
    slopes[conditions.kinks[:, 0], conditions.kinks[:, 1]] = conditions.slopes
    return Multipliers(network, conditions.multipliers, slopes, conditions.on_margin, conditions.stationarity)
