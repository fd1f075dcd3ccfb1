"""Gradients in the numbers of one layer, kept as what they are products of.

In a dense layer a column is δ hᵀ: inner products need δ and h only, so that 90,000 weights are never written out for
each of a thousand columns. Kernels are small, and their gradients are written out.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from brittle.common.errors import InputError
from brittle.data import Data
from brittle.networks import Affine, Convolution, Dense, Layered


class Pairs(NamedTuple):
    """Examples against rivals, the margin being weights · logits.

    rows (N,): the example; weights (N, logits); rivals (N,): the other class, -1 where there is one logit.
    """

    rows: Tensor
    weights: Tensor
    rivals: Tensor

    def take(self, chosen: Tensor) -> "Pairs":
        return Pairs(*(each[chosen] for each in self))


def pairs_of(network: Layered, data: Data) -> Pairs:
    """Every example against every other class; with one logit, y N(x)."""
    n, classes = len(data), network.classes
    if classes == 1:
        return Pairs(torch.arange(n), data.y.to(torch.float64)[:, None], torch.full((n,), -1))
    rows = torch.arange(n).repeat_interleave(classes)
    rivals = torch.arange(classes).repeat(n)
    other = rivals != data.y[rows]
    rows, rivals = rows[other], rivals[other]
    one = torch.eye(classes, dtype=torch.float64)
    return Pairs(rows, one[data.y[rows]] - one[rivals], rivals)


class GradientColumns(NamedTuple):
    """Gradients that a multiplier may scale, as what arrives at every layer.

    rows (N,): the example of every column; deltas: δ_l (N, outputs of layer l), the part in A_l being δ_l h_{l-1}ᵀ.
    """

    rows: Tensor
    deltas: tuple[Tensor, ...]

    def followed_by(self, other: "GradientColumns") -> "GradientColumns":
        deltas = tuple(torch.cat(both) for both in zip(self.deltas, other.deltas, strict=True))
        return GradientColumns(torch.cat([self.rows, other.rows]), deltas)


@dataclass(frozen=True, eq=False)
class Backward:
    """Gradients of margins by the chain rule with slopes of our own: slopes[l] (N, outputs of hidden layer l)."""

    network: Layered

    def columns(self, pairs: Pairs, slopes: Sequence[Tensor]) -> GradientColumns:
        """The gradient of every pair's margin."""
        return GradientColumns(pairs.rows, self._back(pairs.weights, self.network.depth - 1, slopes))

    def through(self, pairs: Pairs, slopes: Sequence[Tensor], layer: int, kinks: Tensor) -> GradientColumns:
        """What slope 1 at every kink (pair, neuron) of a hidden layer adds to its pair's gradient."""
        which, neurons = kinks.T
        slopes, layers = [each[which] for each in slopes], self.network.layers
        above = self._back(pairs.weights[which], self.network.depth - 1, slopes)[layer + 1]
        arriving, place = layers[layer + 1].transpose(above), torch.arange(len(which))
        only = torch.zeros_like(arriving)
        only[place, neurons] = arriving[place, neurons]
        nothing = [torch.zeros(len(which), each.outputs, dtype=only.dtype) for each in layers[layer + 1 :]]
        return GradientColumns(pairs.rows[which], (*self._back(only, layer, slopes), *nothing))

    def _back(self, delta: Tensor, top: int, slopes: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """δ of the layers up to `top`, whose own is given."""
        deltas = [delta]
        for layer in range(top - 1, -1, -1):
            deltas.append(self.network.layers[layer + 1].transpose(deltas[-1]) * slopes[layer])
        return tuple(reversed(deltas))


class Numbers(NamedTuple):
    """Numbers in the shape of a layer's parameters; `bias` is zero where it is no parameter."""

    weight: Tensor
    bias: Tensor

    @property
    def square(self) -> float:
        return float(self.weight.square().sum() + self.bias.square().sum())


class LayerGradients(ABC):
    """Columns are (rows, δ): `rows` (N,) name examples, δ (N, outputs) is what arrives at the layer."""

    @abstractmethod
    def gram(self, rows: Tensor, delta: Tensor) -> Tensor:
        """Inner products of all columns, (N, N)."""

    @abstractmethod
    def combined(self, rows: Tensor, delta: Tensor, shares: Tensor) -> Numbers:
        """Σ shares_c column_c."""

    @abstractmethod
    def inner(self, rows: Tensor, delta: Tensor, numbers: Numbers) -> Tensor:
        """<numbers, column_c> of every column, (N,)."""


@dataclass(frozen=True, eq=False)
class DenseGradients(LayerGradients):
    """H (n, inputs): what enters the layer; `bias`: whether the offset is a parameter."""

    H: Tensor
    bias: bool

    def gram(self, rows: Tensor, delta: Tensor) -> Tensor:
        entering = self.H @ self.H.T + float(self.bias)
        return (delta @ delta.T) * entering[rows][:, rows]

    def combined(self, rows: Tensor, delta: Tensor, shares: Tensor) -> Numbers:
        weighted = delta * shares[:, None]
        gathered = torch.zeros(len(self.H), delta.shape[1], dtype=delta.dtype).index_add_(0, rows, weighted)
        return Numbers(gathered.T @ self.H, gathered.sum(0) * float(self.bias))

    def inner(self, rows: Tensor, delta: Tensor, numbers: Numbers) -> Tensor:
        along = self.H @ numbers.weight.T + float(self.bias) * numbers.bias
        return (along[rows] * delta).sum(1)


@dataclass(frozen=True, eq=False)
class ConvolutionGradients(LayerGradients):
    """`patches` (n, groups, entries of a kernel, places): what enters every place of the output."""

    layer: Convolution
    patches: Tensor
    bias: bool

    def gram(self, rows: Tensor, delta: Tensor) -> Tensor:
        written = self._written(rows, delta)
        return written @ written.T

    def combined(self, rows: Tensor, delta: Tensor, shares: Tensor) -> Numbers:
        total = self._written(rows, delta).T @ shares
        size = self.layer.kernel.numel()
        return Numbers(total[:size].view_as(self.layer.kernel), total[size:])

    def inner(self, rows: Tensor, delta: Tensor, numbers: Numbers) -> Tensor:
        return self._written(rows, delta) @ torch.cat([numbers.weight.flatten(), numbers.bias])

    def _written(self, rows: Tensor, delta: Tensor) -> Tensor:
        """Every column as a row of numbers: kernel, then bias."""
        groups, places = self.patches.shape[1], self.patches.shape[3]
        arriving = delta.view(len(delta), groups, -1, places)
        kernels = torch.einsum("ngop,ngkp->ngok", arriving, self.patches[rows]).flatten(1)
        return torch.cat([kernels, arriving.sum(3).flatten(1) * float(self.bias)], 1)


def layer_gradients(layer: Affine, H: Tensor, bias: bool, name: str) -> LayerGradients:
    """`H` (n, inputs) enters the layer; `bias`: whether its offset is a parameter."""
    if isinstance(layer, Dense):
        return DenseGradients(H, bias)
    if isinstance(layer, Convolution) and not layer.structured:
        images = H.reshape(len(H), *layer.image)
        size = (layer.kernel.shape[2], layer.kernel.shape[3])
        patches = functional.unfold(images, size, layer.dilation, layer.padding, layer.stride)
        return ConvolutionGradients(layer, patches.view(len(H), layer.groups, -1, patches.shape[2]), bias)
    raise InputError(
        f"{name} is a {type(layer).__name__} whose numbers are not trained one by one; a KKT point is about "
        "networks of dense and convolutional layers"
    )
