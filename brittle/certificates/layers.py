"""A ReLU network as a list of affine layers, with what rounding can do to its margins and norms."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.certificates.local import gamma
from brittle.common.errors import InputError
from brittle.networks import Deep, Network, TwoLayer

UNDERFLOW = 1e-250  # of an output: more than all layers can lose below the smallest normal float


@dataclass(frozen=True, eq=False)
class Layers:
    """z_l = weights[l] φ(z_{l-1}) + biases[l] in float64; the last layer's rows are logits, or margins."""

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]

    @classmethod
    def of(cls, network: Network, method: str) -> "Layers":
        if isinstance(network, TwoLayer):
            return cls((network.W, network.v[None]), (network.b, network.c[None]))._scaled()
        if isinstance(network, Deep):
            return cls(network.weights, network.biases)._scaled()
        raise InputError(f"the network is a {type(network).__name__}; method {method} needs linear layers with ReLUs")

    def _scaled(self) -> "Layers":
        """Every layer brought near 1 by a power of two: outputs keep their signs, and no norm underflows."""
        weights, biases, total = [], [], 0
        for W, b in zip(self.weights, self.biases, strict=True):
            exponent = int(torch.frexp(W.abs().max()).exponent) if W.any() else 0
            total += exponent
            weights.append(_shift(W, -exponent))
            biases.append(_shift(b, -total))
        return Layers(tuple(weights), tuple(biases))

    def margins(self, y: Tensor) -> "Layers":
        """The network whose outputs are the margins over every rival; each weight is rounded once at most."""
        W, b = self.weights[-1], self.biases[-1]
        if len(W) == 1:
            W, b = y * W, y * b
        else:
            rivals = torch.arange(len(W)) != int(y)
            W, b = W[int(y)] - W[rivals], b[int(y)] - b[rivals]
        return Layers((*self.weights[:-1], W), (*self.biases[:-1], b))

    def outputs(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs at x, and how far they may be from those in real arithmetic."""
        value, slip = x, torch.zeros_like(x)
        for layer, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            if layer:
                value = value.clamp(min=0)
            size = value.abs() + slip
            slip = W.abs() @ slip * (1 + gamma(len(size) + 2)) + gamma(len(size) + 4) * (W.abs() @ size + b.abs())
            value = W @ value + b
        return value, slip * (1 + gamma(4)) + UNDERFLOW


def _shift(values: Tensor, exponent: int) -> Tensor:
    """values·2^exponent, exact where it is a float; in three factors, none of which overflows by itself."""
    third = exponent // 3
    for part in (third, third, exponent - 2 * third):
        values = values * 2.0 ** max(min(part, 1000), -1000)
    return values


def spectral_norm(W: Tensor) -> float:
    """A ceiling over ‖W‖: WWᵀ or WᵀW, the smaller one, is below s²I if a Cholesky factor of the difference exists."""
    rows = W if W.shape[0] <= W.shape[1] else W.T
    frobenius = float(W.norm()) * (1 + gamma(W.numel()))
    if frobenius == 0:
        return 0.0
    scaled, count = rows / frobenius, max(rows.shape)
    s = min(float(torch.linalg.matrix_norm(scaled, 2)) * (1 + 1e-9), 1.0)
    gram = scaled @ scaled.T
    shift = 4 * (gamma(count + 6) + gamma(len(gram) + 2)) * (len(gram) * s**2 + 1)
    _, info = torch.linalg.cholesky_ex((s**2 - shift) * torch.eye(len(gram), dtype=W.dtype) - gram)
    return s * frobenius * (1 + gamma(4)) if int(info) == 0 else frobenius
