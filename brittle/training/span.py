"""Training in the span of the data: weights off it never get a gradient, so they need not be carried along."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.networks.two_layer import TwoLayer


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

    def inside(self, network: TwoLayer) -> TwoLayer:
        """The network as the span sees it: (width, r) weights."""
        return TwoLayer(network.W @ self.basis.to(network.dtype), network.b, network.v, network.c)

    def frozen_squared_norm(self, network: TwoLayer) -> float:
        """‖W‖² off the span."""
        Q = self.basis.to(network.dtype)
        return float((network.W - (network.W @ Q) @ Q.T).square().sum())

    def joined(self, network: TwoLayer, before: TwoLayer, after: TwoLayer) -> TwoLayer:
        """The network whose in-span weights moved from `before` to `after`; the rest is not touched."""
        moved = (after.W - before.W) @ self.basis.to(network.dtype).T
        return network.trained(network.W + moved, after.b, after.v, after.c)
