"""Training in the span of the data: weights off it never get a gradient, so they need not be carried along."""

from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from brittle.geometry import Basis
from brittle.networks.layered import Layered

Kind = TypeVar("Kind", bound=Layered)


@dataclass(frozen=True, eq=False)
class Span:
    """An orthonormal basis (d, r) of the span of the examples, and their coordinates (n, r) in it."""

    basis: Tensor
    coordinates: Tensor

    @classmethod
    def of(cls, X: Tensor) -> "Span":
        span = Basis.spanning(X)
        return cls(span.vectors, span.coordinates(X))

    def inside(self, network: Kind) -> Kind:
        """The network as the span sees it: its first layer takes r coordinates."""
        return network.with_first_layer(network.weights[0] @ self.basis.to(network.dtype))

    def frozen_squared_norm(self, network: Layered) -> float:
        """‖W‖² of the first layer off the span."""
        W, Q = network.weights[0], self.basis.to(network.dtype)
        return float((W - (W @ Q) @ Q.T).square().sum())

    def joined(self, network: Kind, before: Kind, after: Kind) -> Kind:
        """The network whose in-span weights moved from `before` to `after`; the rest is not touched."""
        moved = (after.weights[0] - before.weights[0]) @ self.basis.to(network.dtype).T
        return network.moved(after.with_first_layer(network.weights[0] + moved, after.biases[0]).layers)
