"""The convex problem behind the residual: which multipliers and slopes at kinks explain the weights best?

minimise ‖θ - Σ_i λ_i g_i‖² over λ ≥ 0 and, at kinks, 0 ≤ s_ij ≤ λ_i. On the examples that may carry a multiplier,
g_i stacks y_i v_j σ'_ij x̃_i (first layer, with s_ij = λ_i σ'_ij) and y_i φ(z_ij) (second layer).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.margin.arrow import Arrow, ArrowVector, Block
from brittle.margin.neurons import Weights

CHUNK = 5_000_000  # entries of the largest temporary (examples x neurons)


class Misfit(NamedTuple):
    """θ - Σ λ_i g_i: its norm, and its inner products with the columns of λ and of s."""

    norm: float
    inner: ArrowVector


@dataclass(frozen=True, eq=False)
class Stationarity:
    """X (N, d) rows x̃, y (N,), W (m, d) rows w̃, v (m,), Z (N, m) = X Wᵀ.

    active (N, m): where the slope is 1; kinks (K, 2): pairs (example, neuron) where it is free, arranged as by `order`.
    """

    X: Tensor
    y: Tensor
    W: Tensor
    v: Tensor
    Z: Tensor
    active: Tensor
    kinks: Tensor

    def order(self, kinks: Tensor) -> Tensor:
        """The order that groups kinks by neuron, neurons with equally many kinks side by side."""
        rows, neurons = kinks.T
        counts = torch.bincount(neurons, minlength=len(self.v))
        return torch.argsort((counts[neurons] * len(self.v) + neurons) * len(self.y) + rows)

    def chunks(self) -> list[slice]:
        """Runs of neurons whose matrices (N, run) are of bounded size."""
        step = max(1, CHUNK // max(1, len(self.y)))
        return [slice(j, j + step) for j in range(0, len(self.v), step)]

    def arrow(self) -> Arrow:
        """The quadratic form, K_ik = y_i y_k [Σ_j v_j² 1_ij 1_kj x̃_i·x̃_k + φ_i·φ_k] and its kinks."""
        gram = self.X @ self.X.T
        head = torch.zeros_like(gram)
        outer = torch.zeros_like(gram)
        for part in self.chunks():
            slopes = self.active[:, part] * self.v[part]
            head.addmm_(slopes, slopes.T)
            outputs = self.Z[:, part].relu()
            outer.addmm_(outputs, outputs.T)
        signs = self.y[:, None] * self.y
        gram *= signs
        return Arrow(head * gram + outer * signs, tuple(self._blocks(gram)))

    def _blocks(self, gram: Tensor) -> list[Block]:
        """`gram` carries the signs y_i y_k."""
        counts = torch.bincount(self.kinks[:, 1], minlength=len(self.v))[self.kinks[:, 1]]
        blocks = []
        for size in torch.unique(counts).tolist():
            pairs = self.kinks[counts == size].view(-1, size, 2)
            index, neuron = pairs[..., 0], pairs[:, 0, 1]
            weight = self.v[neuron].square()[:, None, None]
            own = weight * gram[index[..., None], index[:, None, :]]
            cross = weight * gram[index] * self.active[:, neuron].T[:, None, :]
            blocks.append(Block(index, own, cross))
        return blocks

    def rhs(self) -> ArrowVector:
        """<θ, g_i> and <θ, kink>: 2 q_i by Euler's identity, apart from what near-kinks withhold."""
        top = torch.zeros_like(self.y)
        for part in self.chunks():
            Z = self.Z[:, part]
            top += (self.active[:, part] * Z + Z.relu()) @ self.v[part]
        rows, neurons = self.kinks.T
        return ArrowVector(self.y * top, self.y[rows] * self.v[neurons] * self.Z[rows, neurons])

    def misfit(self, x: ArrowVector) -> Misfit:
        """What these multipliers leave of θ, computed from the weights and not from the quadratic form."""
        rows, neurons = self.kinks.T
        square, top, bottom = 0.0, torch.zeros_like(x.lam), torch.zeros_like(x.s)
        for part in self.chunks():
            v, active, outputs = self.v[part], self.active[:, part], self.Z[:, part].relu()
            load = active * x.lam[:, None]
            here = torch.nonzero((neurons >= part.start) & (neurons < part.stop))[:, 0]
            load[rows[here], neurons[here] - part.start] += x.s[here]
            first = self.W[part] - v[:, None] * ((load * self.y[:, None]).T @ self.X)
            second = v - outputs.T @ (x.lam * self.y)
            square += float(first.square().sum() + second.square().sum())
            inner = (self.X @ first.T) * v * self.y[:, None]
            top += (active * inner).sum(1) + self.y * (outputs @ second)
            bottom[here] = inner[rows[here], neurons[here] - part.start]
        return Misfit(square**0.5, ArrowVector(top, bottom))


def stationarity_problem(X: Tensor, y: Tensor, weights: Weights, kink_tolerance: float) -> Stationarity:
    """The problem of these examples; the slope is free where |z_ij| ≤ kink_tolerance ‖w̃_j‖ ‖x̃_i‖."""
    W, v = weights
    Z = X @ W.T
    close = Z.abs() <= kink_tolerance * X.norm(dim=1)[:, None] * W.norm(dim=1)
    close &= (v != 0) & (W != 0).any(1)  # the slopes of a neuron that is zero change nothing
    kinks = torch.nonzero(close)
    unordered = Stationarity(X, y, W, v, Z, (Z > 0) & ~close, kinks)
    return Stationarity(X, y, W, v, Z, unordered.active, kinks[unordered.order(kinks)])
