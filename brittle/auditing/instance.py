"""The network on its data as the theorems see it, with one measurement of its distance from a KKT point."""

from dataclasses import dataclass
from functools import cached_property

from brittle.common.errors import require
from brittle.margin import KKTResidual, gap, residual
from brittle.theorems import Instance

KKT_RESIDUAL = 1e-3  # a network that is closer is at a KKT point
FEW = 200  # examples for which the share of the largest margin takes well under a second


@dataclass(frozen=True, eq=False)
class Audited(Instance):
    """An instance that measures the distance from a KKT point once, and only where the plan has room for it."""

    kkt_measured: bool = True  # whether there is room

    @cached_property
    def own_conditions(self) -> KKTResidual:
        """Among networks with the parameters of this one: biases that are all zero are none."""
        return residual(self.two_layer, self.data, biases=False) if self._without_biases else self.conditions

    @cached_property
    def conditions(self) -> KKTResidual:
        """Among networks with biases, which the theorems are about.

        A network without biases that is far from the KKT points without them is at least as far from these.
        """
        require(self.kkt_measured, "the distance from a KKT point is too dear to measure at this budget")
        if self._without_biases and self.two_layer.homogeneous and self.smallest_margin > 0:
            distance = self.own_conditions.stationarity
            require(distance <= KKT_RESIDUAL, f"the network is no KKT point: {distance:.3g} away in its own parameters")
        return residual(self.two_layer, self.data)

    @cached_property
    def share_of_largest_margin(self) -> float | None:
        """Proved: the network has at least this share of the largest margin; None where it would take too long.

        Networks of every width compete, with biases or without as this one.
        """
        if len(self.data) > FEW:
            return None
        return gap(self.two_layer, self.data, biases=not self._without_biases).share

    @property
    def _without_biases(self) -> bool:
        return not bool((self.two_layer.b != 0).any())
