"""ReLU networks of any depth: z_l = W_l φ(z_{l-1}) + b_l, with z_1 = W_1 x + b_1."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from brittle.common.errors import require
from brittle.networks.base import Network, in_chunks
from brittle.networks.two_layer import TwoLayer

LARGEST_CLASSES = 4096  # of a linear classifier, whose form as a ReLU network grows with their square


@dataclass(frozen=True, eq=False)
class Deep(Network):
    """weights[l] (width_l, width_{l-1}), biases[l] (width_l,), at least two layers; the last width is 1 or C."""

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    start: "Deep | None" = None

    def __post_init__(self) -> None:
        layers = len(self.weights)
        require(layers >= 2, f"there are {layers} layers; a deep network needs at least 2")
        require(len(self.biases) == layers, f"there are {len(self.biases)} biases for {layers} layers")
        for layer, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            self._check_layer(layer, W, b)
        if self.start is not None:
            require(self.start.shape == self.shape, f"the start has widths {self.start.shape}, not {self.shape}")
            if self.start.dtype != self.dtype:
                object.__setattr__(self, "start", self.start.to(self.dtype))

    def _check_layer(self, layer: int, W: Tensor, b: Tensor) -> None:
        name, shape = f"weights[{layer}]", tuple(W.shape)
        require(W.ndim == 2 and W.numel() > 0, f"{name} has shape {shape}; (outputs, inputs) is needed")
        require(W.is_floating_point(), f"{name} has type {W.dtype}; a float type is needed")
        require(W.dtype == self.dtype, f"{name} has type {W.dtype} and weights[0] has {self.dtype}")
        fits = tuple(b.shape) == shape[:1] and b.dtype == W.dtype
        require(fits, f"biases[{layer}] has shape {tuple(b.shape)} and type {b.dtype}; {name} has {shape}, {W.dtype}")
        if layer > 0:
            before = self.weights[layer - 1].shape[0]
            require(shape[1] == before, f"{name} takes {shape[1]} inputs and the layer before it gives {before}")

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of features and then the width of every layer."""
        return (self.dim, *(len(W) for W in self.weights))

    @property
    def depth(self) -> int:
        return len(self.weights)

    @property
    def dim(self) -> int:
        return self.weights[0].shape[1]

    @property
    def classes(self) -> int:
        return self.weights[-1].shape[0]

    @property
    def dtype(self) -> torch.dtype:
        return self.weights[0].dtype

    @property
    def squared_norm(self) -> Tensor:
        """‖θ‖² of all parameters."""
        return torch.stack([each.square().sum() for each in (*self.weights, *self.biases)]).sum()

    def preactivations(self, X: Tensor) -> list[Tensor]:
        """z_l of every layer, the logits last: (n, width_l) each."""
        values = [torch.addmm(self.biases[0], X.to(self.dtype), self.weights[0].T)]
        for W, b in zip(self.weights[1:], self.biases[1:], strict=True):
            values.append(torch.addmm(b, values[-1].relu(), W.T))
        return values

    def logits(self, X: Tensor) -> Tensor:
        return in_chunks(self._logits, self._row_bytes, X)

    def logit_gradients(self, X: Tensor, weights: Tensor) -> Tensor:
        return in_chunks(self._logit_gradients, self._row_bytes, X, weights)

    def _logits(self, X: Tensor) -> Tensor:
        values = self.preactivations(X)[-1]
        return values[:, 0] if self.classes == 1 else values

    def _logit_gradients(self, X: Tensor, weights: Tensor) -> Tensor:
        back = weights.to(self.dtype).reshape(len(X), self.classes) @ self.weights[-1]
        hidden = self.preactivations(X)[:-1]
        for W, z in zip(reversed(self.weights[:-1]), reversed(hidden), strict=True):
            back = (back * (z > 0)) @ W
        return back

    @property
    def _row_bytes(self) -> int:
        return 2 * sum(self.shape[1:]) * self.weights[0].element_size()

    def to(self, dtype: torch.dtype) -> "Deep":
        start = None if self.start is None else self.start.to(dtype)
        return Deep(tuple(W.to(dtype) for W in self.weights), tuple(b.to(dtype) for b in self.biases), start)

    def trained(self, weights: tuple[Tensor, ...], biases: tuple[Tensor, ...]) -> "Deep":
        """The network with new parameters that remembers where it started."""
        start = self.start if self.start is not None else replace(self, start=None)
        return Deep(weights, biases, start)

    def pair(self, first: int, second: int) -> "Deep":
        if self.classes == 1:
            super().pair(first, second)
        last = self.classes - 1
        fits = first != second and 0 <= first <= last and 0 <= second <= last
        require(fits, f"the pair is ({first}, {second}); two different classes from 0 to {last} are needed")
        W, b = self.weights[-1], self.biases[-1]
        start = None if self.start is None else self.start.pair(first, second)
        difference = W[first : first + 1] - W[second : second + 1], b[first : first + 1] - b[second : second + 1]
        return Deep((*self.weights[:-1], difference[0]), (*self.biases[:-1], difference[1]), start)

    def as_two_layer(self) -> TwoLayer:
        """The same function as a TwoLayer, where there are two layers and one logit."""
        require(self.depth == 2, f"the network has {self.depth} layers; only one of 2 layers is a TwoLayer")
        require(self.classes == 1, f"the network has {self.classes} outputs; choose a pair of classes first")
        start = None if self.start is None else self.start.as_two_layer()
        return TwoLayer(self.weights[0], self.biases[0], self.weights[1][0], self.biases[1][0], start)

    def module(self) -> nn.Module:
        return DeepModule(self)

    def loaded(self, module: nn.Module) -> "Deep":
        assert isinstance(module, DeepModule)
        linear = module.linear_layers()
        weights = tuple(layer.weight.detach().clone() for layer in linear)
        return self.trained(weights, tuple(layer.bias.detach().clone() for layer in linear))


class DeepModule(nn.Sequential):
    """The trainable form of a deep network: Linear, ReLU, Linear, ..."""

    def __init__(self, network: Deep) -> None:
        layers: list[nn.Module] = []
        for W, b in zip(network.weights, network.biases, strict=True):
            linear = nn.utils.skip_init(nn.Linear, W.shape[1], W.shape[0], dtype=W.dtype)
            linear.weight = nn.Parameter(W.clone())
            linear.bias = nn.Parameter(b.clone())
            layers += [linear, nn.ReLU()]
        super().__init__(*layers[:-1])

    def linear_layers(self) -> list[nn.Linear]:
        return [layer for layer in self if isinstance(layer, nn.Linear)]

    def forward(self, X: Tensor) -> Tensor:
        values = super().forward(X)
        return values[:, 0] if values.shape[1] == 1 else values


def of_layers(weights: list[Tensor], biases: list[Tensor]) -> TwoLayer | Deep:
    """Linear layers with ReLUs between them, as the simplest network that is the same function."""
    if len(weights) == 1:  # W x = φ(W x) - φ(-W x)
        W = weights[0]
        few = len(W) <= LARGEST_CLASSES
        require(few, f"a linear map with {len(W)} outputs is no classifier; {LARGEST_CLASSES} are the most")
        one = torch.eye(len(W), dtype=W.dtype)
        weights, biases = (
            [torch.cat([W, -W]), torch.cat([one, -one], 1)],
            [torch.zeros_like(W[:, 0]).repeat(2), *biases],
        )
    network = Deep(tuple(weights), tuple(biases))
    return network.as_two_layer() if network.depth == 2 and network.classes == 1 else network
