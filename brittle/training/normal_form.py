"""A network and its data in the coordinates in which it is trained on.

Those of a layered network are such that all of its parameters have sizes that compare: x = unit · B x' with B an
orthonormal basis of the data's span, turned at random: no coordinate is a principal direction, on the small ones of
which Adam would overfit, and weights off the span, which no example sees, are gone. The layers have one Frobenius norm,
and outputs are divided by the `gain`, so that the median slope of a margin is 1.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Generator, Tensor

from brittle.common.errors import require
from brittle.data.base import Data
from brittle.geometry import Basis
from brittle.networks.affine import Affine, Dense
from brittle.networks.base import Network
from brittle.networks.deep import Deep, as_layered
from brittle.networks.folded import Folded
from brittle.networks.layered import Layered

PRECISION = torch.float32


@dataclass(frozen=True, eq=False)
class TrainingForm(ABC):
    """The `original`, and the `network` and examples `X` (n, r) as they are trained; `slope` is the median ‖∇ₓm‖."""

    original: Network
    network: Network
    X: Tensor
    slope: float

    @abstractmethod
    def back(self, trained: Network) -> Network:
        """The trained network in the old coordinates."""


@dataclass(frozen=True, eq=False)
class OwnForm(TrainingForm):
    """The network as it is: a module of its own, or one that was folded and is trained as it came."""

    @classmethod
    def of(cls, network: Network, data: Data) -> "OwnForm":
        return cls(network, network, data.X.to(network.dtype), median_slope(network.margin_gradients(data.X, data.y)))

    def back(self, trained: Network) -> Network:
        return trained


@dataclass(frozen=True, eq=False)
class NormalForm(TrainingForm):
    """`basis` (columns, r) is None where inputs keep their places, as those of a first layer that is not dense do."""

    original: Layered
    network: Deep
    basis: Tensor | None
    unit: float
    gain: float

    @classmethod
    def of(cls, network: Layered, data: Data, rng: Generator, span: bool = True) -> "NormalForm":
        X, basis = data.X, None
        if span and network.free_first_layer:
            basis = _turned(Basis.spanning(X), rng)
            X = X @ basis
        unit = float(X.square().sum(1).mean().sqrt())
        require(unit > 0, "every example is zero: no direction can be told from another")
        X = X / unit
        first, *others = (layer.to(torch.float64) for layer in network.layers)
        inner = Deep((_taking(first, basis, unit), *others))
        gain = median_slope(inner.margin_gradients(X, data.y))
        layers = balance_layers([*inner.layers[:-1], scale_layer(inner.layers[-1], 1 / gain, 1 / gain)])
        return cls(network, Deep(tuple(layers)).to(PRECISION), X.to(PRECISION), 1.0, basis, unit, gain)

    def back(self, trained: Network) -> Layered:
        given = as_layered(trained, "this training").layers
        first, *others, last = (layer.to(torch.float64) for layer in given)
        first = scale_layer(first, 1 / self.unit, 1.0)
        if self.basis is not None:
            first = Dense(first.matrix @ self.basis.T, first.offset)
        layers = [first, *others, scale_layer(last, self.gain, self.gain)]
        return self.original.moved([layer.to(self.original.dtype) for layer in layers])


def form_of(network: Network, data: Data, rng: Generator, span: bool = True) -> TrainingForm:
    """The normal form where there is one, in the coordinates of the data's span or all."""
    return NormalForm.of(network, data, rng, span) if has_normal_form(network) else OwnForm.of(network, data)


def has_normal_form(network: Network) -> TypeGuard[Layered]:
    """Whether it is made of layers each of which has its own numbers."""
    return isinstance(network, Layered) and not isinstance(network, Folded)


def median_slope(gradients: Tensor) -> float:
    """The median length of the margins' gradients (n, r)."""
    median = float(gradients.norm(dim=1).median())
    require(median > 0, "the network's margin does not change near half of the examples: train it first")
    return median


def _turned(span: Basis, rng: Generator) -> Tensor:
    square = torch.randn(span.dim, span.dim, generator=rng, dtype=torch.float64)
    turned: Tensor = span.vectors @ torch.linalg.qr(square).Q
    return turned


def _taking(first: Affine, basis: Tensor | None, unit: float) -> Affine:
    """The first layer on the new coordinates."""
    inner = scale_layer(first, unit, 1.0)
    return inner if basis is None else Dense(inner.matrix @ basis, inner.offset)


def scale_layer(layer: Affine, weight: float, bias: float) -> Affine:
    """The layer with its weights and its biases times these."""
    W, b = layer.parameters
    return layer.with_parameters(W * weight, b * bias)


def balance_layers(layers: Sequence[Affine]) -> list[Affine]:
    """The same function by layers of one Frobenius norm: φ(f z) = f φ(z) for f > 0."""
    norms = [float(layer.parameters[0].norm()) for layer in layers]
    if min(norms) == 0:
        return list(layers)
    mean = math.exp(sum(math.log(norm) for norm in norms) / len(norms))
    result, carried = [], 1.0
    for layer, norm in zip(layers, norms, strict=True):
        factor = mean / norm
        carried *= factor
        result.append(scale_layer(layer, factor, carried))
    return result
