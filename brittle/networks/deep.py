"""Layered networks of any depth, dense or convolutional, with any number of logits."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.common.kinds import check_kinds
from brittle.networks.affine import Affine, Dense
from brittle.networks.base import Network
from brittle.networks.layered import Layered, check_chain
from brittle.networks.two_layer import TwoLayer

LARGEST_CLASSES = 4096  # of a linear classifier, whose form as a ReLU network grows with their square


@dataclass(frozen=True, eq=False)
class Deep(Layered):
    """`maps`: at least two affine maps, the last with 1 or C outputs; `start` is where training began.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> network = bt.networks.TorchLinearInit().draw_deep(3, (5, 4), torch.Generator().manual_seed(0))
        >>> network.shape, network.depth
        ((3, 5, 4, 1), 3)
    """

    maps: tuple[Affine, ...]
    start: "Deep | None" = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "maps", tuple(self.maps))
        require(len(self.maps) >= 2, f"there are {len(self.maps)} layers; a deep network needs at least 2")
        check_chain(self.maps)
        if self.start is not None:
            require(self.start.shape == self.shape, f"the start has widths {self.start.shape}, not {self.shape}")
            object.__setattr__(self, "start", self.start.to(self.dtype))

    @classmethod
    def dense(cls, weights: Sequence[Tensor], biases: Sequence[Tensor], start: "Deep | None" = None) -> "Deep":
        """weights[l] (width_l, width_{l-1}) and biases[l] (width_l,)."""
        layers = len(weights)
        require(layers >= 2, f"there are {layers} layers; a deep network needs at least 2")
        require(len(biases) == layers, f"there are {len(biases)} biases for {layers} layers")
        _check_dense(weights, biases)
        return cls(tuple(Dense(W, b) for W, b in zip(weights, biases, strict=True)), start)

    @property
    def layers(self) -> tuple[Affine, ...]:
        return self.maps

    def with_layers(self, layers: Sequence[Affine], start: "Deep | None" = None) -> "Deep":
        return Deep(tuple(layers), start)

    def pair(self, first: int, second: int) -> "Deep":
        if self.classes == 1:
            super().pair(first, second)
        last = self.classes - 1
        fits = first != second and 0 <= first <= last and 0 <= second <= last
        require(fits, f"the pair is ({first}, {second}); two different classes from 0 to {last} are needed")
        start = None if self.start is None else self.start.pair(first, second)
        W, b = self.weights[-1], self.biases[-1]
        difference = Dense(W[first : first + 1] - W[second : second + 1], b[first : first + 1] - b[second : second + 1])
        return Deep((*self.maps[:-1], difference), start)

    def as_two_layer(self) -> TwoLayer:
        """The same function as a TwoLayer, where there are two layers and one logit."""
        require(self.depth == 2, f"the network has {self.depth} layers; only one of 2 layers is a TwoLayer")
        require(self.classes == 1, f"the network has {self.classes} outputs; choose a pair of classes first")
        start = None if self.start is None else self.start.as_two_layer()
        return TwoLayer(self.weights[0], self.biases[0], self.weights[1][0], self.biases[1][0], start)


def _check_dense(weights: Sequence[Tensor], biases: Sequence[Tensor]) -> None:
    """What is wrong is said of the array that it is wrong with."""
    for layer, (W, b) in enumerate(zip(weights, biases, strict=True)):
        name, shape = f"weights[{layer}]", tuple(W.shape)
        require(W.ndim == 2 and W.numel() > 0, f"{name} has shape {shape}; (outputs, inputs) is needed")
        require(W.is_floating_point(), f"{name} has type {W.dtype}; a float type is needed")
        require(W.dtype == weights[0].dtype, f"{name} has type {W.dtype} and weights[0] has {weights[0].dtype}")
        fits = tuple(b.shape) == shape[:1] and b.dtype == W.dtype
        require(fits, f"biases[{layer}] has shape {tuple(b.shape)} and type {b.dtype}; {name} has {shape}, {W.dtype}")
        before = shape[1] if layer == 0 else weights[layer - 1].shape[0]
        require(shape[1] == before, f"{name} takes {shape[1]} inputs and the layer before it gives {before}")


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
    return simplest(Deep.dense(weights, biases))


def simplest(network: Deep) -> TwoLayer | Deep:
    """As a TwoLayer where it is one."""
    return network.as_two_layer() if network.depth == 2 and network.classes == 1 else network


def get_layered(network: Network) -> Layered | None:
    """The network itself where its layers are known.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> smooth = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        >>> bt.networks.get_layered(bt.networks.as_network(smooth)) is None
        True
    """
    return network if isinstance(network, Layered) else None


@check_kinds
def as_layered(network: Network, about: str) -> Layered:
    """The network itself; `about` is what needs layers, and is said where there are none.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> module = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        >>> bt.networks.as_layered(bt.networks.as_network(module), "a certificate")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        brittle.common.errors.InputError: a certificate needs a network of affine layers and ReLUs...
    """
    if isinstance(network, Layered):
        return network
    kind = type(network).__name__
    raise InputError(f"{about} needs a network of affine layers and ReLUs, and this is a {kind}")


@check_kinds
def as_two_layer(network: Network, about: str) -> TwoLayer:
    """The network as a TwoLayer; `about` is what needs one, and is said where it is none.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> deep = bt.networks.TorchLinearInit().draw_deep(3, (5, 4), torch.Generator().manual_seed(0))
        >>> bt.networks.as_two_layer(deep, "a KKT point")
        Traceback (most recent call last):
            ...
        brittle.common.errors.InputError: a KKT point needs a two-layer network with one output; it has 3 layers
    """
    if isinstance(network, Deep):
        network = simplest(network)
    if isinstance(network, TwoLayer):
        return network
    kind = f"it has {network.depth} layers" if isinstance(network, Layered) else f"this is a {type(network).__name__}"
    outputs = f" and {network.classes} outputs" if network.classes > 1 else ""
    raise InputError(f"{about} needs a two-layer network with one output; {kind}{outputs}")


# The largest of several logits, as layers of ReLUs: max(a, b) = φ(a - b) + φ(b) - φ(-b).


@check_kinds
def best_of(network: Layered, groups: Sequence[Sequence[int]], one_logit: bool = False) -> Deep:
    """The network whose logits are the largest of every group of the given one's logits.

    With `one_logit` it has one, of two groups the second one's less the first one's: that of the labels -1 and 1.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> clusters = bt.networks.TorchLinearInit().draw_deep(2, (5,), torch.Generator().manual_seed(0), outputs=4)
        >>> classes = bt.networks.best_of(clusters, [[0, 1], [2, 3]])  # two clusters make a class
        >>> X = torch.eye(2).double()
        >>> torch.allclose(classes.logits(X)[:, 0].double(), clusters.logits(X)[:, :2].amax(1).double())
        True
    """
    sizes = [len(group) for group in groups]
    require(
        len(groups) > 1 and min(sizes) > 0, f"the groups have {sizes} logits; two or more that are not empty are needed"
    )
    *layers, last = network.layers
    W, b = last.matrix, last.offset
    places = [list(group) for group in groups]
    while max(map(len, places)) > 1:
        into, out, places = _halved(places, W.shape[0], W.dtype)
        layers.append(Dense(into @ W, into @ b))
        W, b = out, torch.zeros(len(out), dtype=W.dtype)
    order = torch.tensor([group[0] for group in places])
    W, b = W[order], b[order]
    if one_logit:
        require(len(groups) == 2, f"there are {len(groups)} groups; one logit tells two apart")
        W, b = W[1:] - W[:1], b[1:] - b[:1]
    return Deep((*layers, Dense(W, b)))


def _halved(places: list[list[int]], count: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, list[list[int]]]:
    """From `count` values to neurons and on to the larger ones of pairs; where in these each group has them."""
    neurons, values, found = list[Tensor](), list[dict[int, float]](), list[list[int]]()
    unit = torch.eye(count, dtype=dtype)
    for group in places:
        found.append([])
        for first, second in zip(group[::2], [*group[1::2], None], strict=False):
            found[-1].append(len(values))
            values.append({len(neurons): 1.0, len(neurons) + 1: -1.0})
            last = first if second is None else second
            neurons += [unit[last], -unit[last]]
            if second is not None:
                values[-1][len(neurons)] = 1.0
                neurons.append(unit[first] - unit[second])
    out = torch.zeros(len(values), len(neurons), dtype=dtype)
    for row, weights in enumerate(values):
        for column, weight in weights.items():
            out[row, column] = weight
    return torch.stack(neurons), out, found
