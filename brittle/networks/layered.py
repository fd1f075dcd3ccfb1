"""Networks of affine maps with ReLUs between them: z_1 = A_1 x + o_1, z_l = A_l φ(z_{l-1}) + o_l, logits = z_L."""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import torch
from torch import Tensor, nn

from brittle.common.errors import require
from brittle.networks.affine import Affine, Dense
from brittle.networks.base import Network, in_chunks


class Layered(Network):
    """What every room needs of such a network; `start` is where training began, where that is known.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> network = bt.networks.TorchLinearInit().draw(3, width=5, rng=torch.Generator().manual_seed(0))
        >>> isinstance(network, bt.networks.Layered), network.shape
        (True, (3, 5, 1))
        >>> [tuple(weight.shape) for weight in network.weights]
        [(5, 3), (1, 5)]
    """

    start: Self | None

    @property
    @abstractmethod
    def layers(self) -> tuple[Affine, ...]:
        """The affine maps, first to last; ReLUs lie between them."""

    @abstractmethod
    def with_layers(self, layers: Sequence[Affine], start: Self | None = None) -> Self:
        """This kind of network with other maps."""

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The matrix of every layer, (width_l, width_{l-1})."""
        return tuple(layer.matrix for layer in self.layers)

    @property
    def biases(self) -> tuple[Tensor, ...]:
        """The offset of every layer, (width_l,)."""
        return tuple(layer.offset for layer in self.layers)

    @property
    def depth(self) -> int:
        return len(self.layers)

    @property
    def arrays(self) -> dict[str, Tensor]:
        weights = {f"weights[{place}]": layer.parameters[0] for place, layer in enumerate(self.layers)}
        return weights | {f"biases[{place}]": layer.parameters[1] for place, layer in enumerate(self.layers)}

    @property
    def description(self) -> dict[str, Any]:
        words = {"kind": f"{self.depth}-layer ReLU network", "inputs": self.dim, "outputs": self.classes}
        return {**words, "widths": list(self.widths), "start": self.start is not None}

    @property
    def free_first_layer(self) -> bool:
        return self.layers[0].free

    @property
    def degree(self) -> int:
        return self.depth

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of features and then the width of every layer."""
        return (self.dim, *(layer.outputs for layer in self.layers))

    @property
    def widths(self) -> tuple[int, ...]:
        return self.shape[1:-1]

    @property
    def products(self) -> int:
        return sum(layer.products for layer in self.layers)

    @property
    def dim(self) -> int:
        return self.layers[0].inputs

    @property
    def classes(self) -> int:
        return self.layers[-1].outputs

    @property
    def dtype(self) -> torch.dtype:
        return self.layers[0].dtype

    @property
    def squared_norm(self) -> Tensor:
        """‖θ‖² of all parameters."""
        return torch.stack([each.square().sum() for layer in self.layers for each in layer.parameters]).sum()

    @property
    def homogeneous(self) -> bool:
        """Whether N(αθ) = α^depth N(θ): biases are in the first layer at most."""
        return not any(bool(layer.parameters[1].any()) for layer in self.layers[1:])

    def values(self, X: Tensor) -> list[Tensor]:
        """z_l of every layer, the logits last: (n, width_l) each."""
        values = [self.layers[0].apply(X.to(self.dtype))]
        for layer in self.layers[1:]:
            values.append(layer.apply(values[-1].relu()))
        return values

    def logits(self, X: Tensor) -> Tensor:
        return in_chunks(self._logits, self._row_bytes, X)

    def logit_gradients(self, X: Tensor, weights: Tensor) -> Tensor:
        return in_chunks(self._logit_gradients, self._row_bytes, X, weights)

    def neuron_gradients(self, X: Tensor, weights: Tensor) -> Tensor:
        """Gradient of Σ_k weights_k logit_k in z_1, (n, width_1): the gradient in x is A_1ᵀ times it."""
        back = weights.to(self.dtype).reshape(len(X), self.classes)
        hidden = self.values(X)[:-1]
        for layer, z in zip(reversed(self.layers[1:]), reversed(hidden), strict=True):
            back = layer.transpose(back) * (z > 0)
        return back

    def _logits(self, X: Tensor) -> Tensor:
        values = self.values(X)[-1]
        return values[:, 0] if self.classes == 1 else values

    def _logit_gradients(self, X: Tensor, weights: Tensor) -> Tensor:
        return self.layers[0].transpose(self.neuron_gradients(X, weights))

    def _magnitudes(self, X: Tensor) -> Tensor:
        positive = self.with_layers([layer.absolute() for layer in self.layers])
        return positive.logits(X.abs()).reshape(len(X), self.classes).amax(1)

    @property
    def _row_bytes(self) -> int:
        return 2 * sum(layer.working for layer in self.layers) * torch.finfo(self.dtype).bits // 8

    def to(self, dtype: torch.dtype) -> Self:
        if dtype == self.dtype:
            return self
        start = None if self.start is None else self.start.to(dtype)
        return self.with_layers([layer.to(dtype) for layer in self.layers], start)

    def moved(self, layers: Sequence[Affine]) -> Self:
        """The network with new maps that remembers where it started: training's result."""
        return self.with_layers(layers, self.start if self.start is not None else self.with_layers(self.layers))

    def with_first_layer(self, weight: Tensor, bias: Tensor | None = None) -> Self:
        """The network with another dense first layer, which may take another number of features; no start."""
        bias = self.layers[0].offset if bias is None else bias
        return self.with_layers([Dense(weight, bias), *self.layers[1:]])

    def module(self) -> nn.Module:
        return LayeredModule(self.layers)

    def loaded(self, module: nn.Module) -> Self:
        assert isinstance(module, LayeredModule)
        return self.moved(module.trained_layers())


class LayeredModule(nn.Sequential):
    """The trainable form of a layered network: map, ReLU, map, ..."""

    def __init__(self, layers: Sequence[Affine]) -> None:
        self.layers = tuple(layers)
        modules = [module for layer in layers for module in (layer.module(), nn.ReLU())]
        super().__init__(*modules[:-1])

    def forward(self, X: Tensor) -> Tensor:
        for module in self:
            X = module(X)
        return X[:, 0] if X.shape[1] == 1 else X

    def trained_layers(self) -> list[Affine]:
        """The maps with the numbers that the module has now."""
        parameters = [[each.detach().clone() for each in module.parameters()] for module in list(self)[::2]]
        return [layer.with_parameters(*numbers) for layer, numbers in zip(self.layers, parameters, strict=True)]


def check_chain(layers: Sequence[Affine]) -> None:
    """Raise unless every map takes what the one before it gives, in one float type."""
    for place, (before, after) in enumerate(pairwise(layers), start=1):
        joined = after.inputs == before.outputs
        require(joined, f"layer {place} takes {after.inputs} inputs and the layer before it gives {before.outputs}")
        require(after.dtype == before.dtype, f"layer {place} has type {after.dtype} and the one before {before.dtype}")
