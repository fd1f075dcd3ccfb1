"""What a theorem is checked on: data, a network, and what only their maker can know."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TypeVar, get_type_hints

import torch
from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.data import Data
from brittle.kkt import KKTResidual, residual
from brittle.networks import Network, TwoLayer, as_two_layer


@dataclass(frozen=True, eq=False)
class KKTMultipliers:
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


def multipliers(network: TwoLayer, data: Data, conditions: KKTResidual) -> KKTMultipliers:
    """The multipliers and slopes of these `conditions`, which were measured on the network and the data."""
    network = network.to(torch.float64)
    network = network.scaled(float(network.margins(data.X, data.y).min()) ** -0.5)
    slopes = network.preactivations(data.X).gt(0).to(network.dtype)
    slopes[conditions.kinks[:, 0], conditions.kinks[:, 1]] = conditions.slopes
    return KKTMultipliers(network, conditions.multipliers, slopes, conditions.on_margin, conditions.stationarity)


class Facts:
    """What only the maker of an instance can know, such as how its network was trained.

    A theorem that needs facts declares a frozen dataclass of this class and asks for it with `Instance.known`.

    Examples:
        >>> from dataclasses import dataclass
        >>> from brittle.theorems import Facts
        >>> @dataclass(frozen=True)
        ... class Trained(Facts):
        ...     epochs: int
        >>> Trained(epochs=10)
        Trained(epochs=10)
    """


Kind = TypeVar("Kind", bound=Facts)
UNKNOWN = {int: 0, float: math.nan}  # no hypothesis holds for a fact that nobody told


class NetworkNeeded(InputError):
    """A theorem looked at the network, and the instance has none."""


@dataclass(frozen=True)
class KnownFacts(Facts):
    """Numbers by their names, not yet of any kind: a theorem that asks for facts gets those of its own kind.

    `given` are the numbers; `kinds` gathers what was asked for, so that facts which nobody needs are noticed.

    Examples:
        >>> from brittle.theorems import KnownFacts
        >>> KnownFacts({"rate": 0.1}).given["rate"]
        0.1
    """

    given: Mapping[str, float]
    kinds: set[type[Facts]] = field(default_factory=set)

    @property
    def missing(self) -> list[str]:
        """What was asked for and not told."""
        return [each.name for kind in self.kinds for each in fields(kind) if each.name not in self.given]  # type: ignore[arg-type]

    def of(self, kind: type[Kind]) -> Kind | None:
        """Facts of this kind, unknown where they were not told; None where the kind holds more than numbers."""
        hints = get_type_hints(kind)
        names = [each.name for each in fields(kind)]  # type: ignore[arg-type]
        if any(hints[name] not in UNKNOWN for name in names):
            return None
        self.kinds.add(kind)
        for name in self.given:
            require(name in names, f"there is no fact {name!r}; this theorem asks for {', '.join(names)}")
        return kind(**{name: self._number(name, hints[name]) for name in names})

    def _number(self, name: str, kind: type[int] | type[float]) -> float:
        value = self.given.get(name, UNKNOWN[kind])
        whole = kind is float or value == int(value)
        require(whole, f"the fact {name} is {value:g}; it must be a whole number")
        return kind(value)


@dataclass(frozen=True, eq=False)
class Instance:
    """`data` and a `network` to check a theorem on, both as given; `facts` where the maker has any to tell.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> instance = bt.theorems.Instance(data, bt.networks.orthogonal_kkt(data.X, data.y).network)
        >>> round(instance.smallest_margin, 6)
        1.0
    """

    data: Data
    network: Network | None = None
    facts: Facts | None = None

    def known(self, kind: type[Kind]) -> Kind | None:
        """The facts, where they are of this kind."""
        facts = self.facts.of(kind) if isinstance(self.facts, KnownFacts) else self.facts
        return facts if isinstance(facts, kind) else None

    @property
    def two_layer(self) -> TwoLayer:
        """The network, for theorems about two layers."""
        if self.network is None:
            raise NetworkNeeded("this theorem is about a two-layer ReLU network with one output: give one")
        return as_two_layer(self.network, "this theorem")

    @cached_property
    def smallest_margin(self) -> float:
        """min q over the training examples."""
        return float(self.two_layer.margins(self.data.X, self.data.y).min())

    @cached_property
    def conditions(self) -> KKTResidual:
        """How far the network is from a KKT point, its biases being parameters; it must classify every example."""
        return residual(self.two_layer, self.data)

    @cached_property
    def kkt(self) -> KKTMultipliers:
        """The network at margin 1 with the multipliers that explain it best."""
        return multipliers(self.two_layer, self.data, self.conditions)

    @property
    def kkt_distance(self) -> float:
        """ε of the best multipliers; infinite where an example is misclassified, for no multipliers are asked then."""
        return self.kkt.stationarity if self.smallest_margin > 0 else math.inf
