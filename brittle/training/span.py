"""Training in the span of the data: weights off it never get a gradient, so they need not be carried along."""

from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from brittle.networks.layered import Layered

Kind = TypeVar("Kind", bound=Layered)


@dataclass(frozen=True, eq=False)
class Span:
    """An orthonormal basis (d, r) of the span of the examples, and their coordinates (n, r) in it."""

    basis: Tensor
    coordinates: Tensor

    @classmethod
    def of(cls, X: Tensor) -> "Span":
        """From the singular value decomposition, which also reveals the rank."""
        U, s, Vt = torch.linalg.svd(X, full_matrices=False)
        rank = int((s > s[0] * max(X.shape) * torch.finfo(X.dtype).eps).sum())
        basis = Vt[:rank].T.clone()
        basis[(X == 0).all(0)] = 0  # a feature that is always zero is off the span exactly, not to rounding
        return cls(basis, U[:, :rank] * s[:rank])

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
