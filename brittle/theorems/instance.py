"""What a theorem is checked on: data, a network, and what only their maker can know."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from brittle.common.errors import required
from brittle.margin import KKTResidual, residual
from brittle.networks import Network, TwoLayer, as_two_layer
from brittle.settings import Data
from brittle.theorems.multipliers import Multipliers, multipliers


class Facts:
    """What only the maker of an instance can know, such as how its network was trained.

    A theorem that needs facts declares a frozen dataclass of this class and asks for it with `Instance.known`.
    """


Kind = TypeVar("Kind", bound=Facts)


@dataclass(frozen=True, eq=False)
class Instance:
    """`data` and a `network` to check a theorem on, both as given; `facts` where the maker has any to tell."""

    data: Data
    network: Network | None = None
    facts: Facts | None = None

    def known(self, kind: type[Kind]) -> Kind | None:
        """The facts, where they are of this kind."""
        return self.facts if isinstance(self.facts, kind) else None

    @property
    def two_layer(self) -> TwoLayer:
        """The network, for theorems about two layers."""
        about = "this theorem is about a two-layer ReLU network with one output"
        return as_two_layer(required(self.network, f"{about}: give one beside the data"), "this theorem")

    @cached_property
    def smallest_margin(self) -> float:
        """min q over the training examples."""
        return float(self.two_layer.margins(self.data.X, self.data.y).min())

    @cached_property
    def conditions(self) -> KKTResidual:
        """How far the network is from a KKT point, its biases being parameters; it must classify every example."""
        return residual(self.two_layer, self.data)

    @cached_property
    def kkt(self) -> Multipliers:
        """The network at margin 1 with the multipliers that explain it best."""
        return multipliers(self.two_layer, self.data, self.conditions)

    @property
    def kkt_distance(self) -> float:
        """ε of the best multipliers; infinite where an example is misclassified, for no multipliers are asked then."""
        return self.kkt.stationarity if self.smallest_margin > 0 else math.inf
