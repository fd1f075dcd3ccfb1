"""How the papers draw the weights of an untrained network."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, TypeVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import require, require_count, require_positive
from brittle.common.kinds import check_kinds
from brittle.common.parts import check_fields, option
from brittle.networks.deep import Deep
from brittle.networks.layered import Layered
from brittle.networks.two_layer import TwoLayer

Kind = TypeVar("Kind", bound=Layered)
BIASES = option("Hidden biases; only pytorch draws them unless asked.")


@dataclass(frozen=True)
class Initialisation(ABC):
    """A law of (W, b, v), with b = 0 unless `biases`. `scale` divides the weights, and b too where `scale_biases`.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> start = bt.networks.Kaiming()
        >>> isinstance(start, bt.networks.Initialisation)
        True
        >>> start.draw(10, width=6, rng=torch.Generator().manual_seed(0)).W.shape
        torch.Size([6, 10])
    """

    name: ClassVar[str]  # what the command line calls it

    scale: float = field(
        default=1.0, metadata=option("Divides the initial weights.", "--init-scale", check=require_positive)
    )
    scale_biases: bool = field(
        default=True, metadata=option("Divides the biases too.", "--init-scale-biases/--no-init-scale-biases")
    )
    biases: bool = field(default=True, metadata=BIASES)

    def __post_init__(self) -> None:
        check_fields(self)

    def draw(self, dim: int, width: int, rng: Generator, *, ambient: int | None = None) -> TwoLayer:
        """An untrained float64 network. Data in their span have fewer columns `dim` than their `ambient` dimension."""
        require_count("dim", dim)
        require_count("width", width)
        ambient = dim if ambient is None else ambient
        require(ambient >= dim, f"the ambient dimension is {ambient}; it must be at least the {dim} columns")
        W, b, v = self.draw_arrays(dim, width, ambient, rng)
        b = b / self.scale if self.scale_biases else b
        network = TwoLayer(W / self.scale, b if self.biases else torch.zeros_like(b), self._scaled_output(v))
        return TwoLayer(network.W, network.b, network.v, start=network)

    def _scaled_output(self, v: Tensor) -> Tensor:
        return v

    @abstractmethod
    def draw_arrays(self, dim: int, width: int, ambient: int, rng: Generator) -> tuple[Tensor, Tensor, Tensor]:
        """W (width, dim), b (width,) and v (width,), before they are scaled; the fan-in is `ambient`."""


@dataclass(frozen=True)
class TorchLinearInit(Initialisation):
    """nn.Linear's default: every entry uniform in ±1/√fan_in; `scale` divides the first layer or all of them.

    In the span the law of the first layer is the Gaussian of the same variance, which is what its projection on a
    few directions tends to in high dimension.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> network = bt.networks.TorchLinearInit().draw(25, width=7, rng=torch.Generator().manual_seed(0))
        >>> bool(network.W.abs().max() <= 1 / 5), network.width
        (True, 7)
    """

    name: ClassVar = "pytorch"

    first_layer_only: bool = field(
        default=False,
        metadata=option("--init-scale divides the first layer, or all.", "--init-first-layer/--init-all-layers"),
    )

    def draw_deep(
        self, dim: int, widths: Sequence[int], rng: Generator, *, outputs: int = 1, ambient: int | None = None
    ) -> Deep:
        """An untrained float64 network with these hidden widths and one logit, or as many as there are outputs."""
        shape, ambient = (dim, *widths, outputs), dim if ambient is None else ambient
        require(len(widths) > 0, "widths is empty; at least one hidden layer is needed")
        for name, size in zip(("dim", *("width",) * len(widths), "outputs"), shape, strict=True):
            require_count(name, size)
        require(ambient >= dim, f"the ambient dimension is {ambient}; it must be at least the {dim} columns")
        weights, biases = [], []
        for layer, (inputs, size) in enumerate(pairwise(shape)):
            W, b = self._linear(size, inputs, inputs if layer else ambient, rng)
            divisor = 1.0 if layer and self.first_layer_only else self.scale
            weights.append(W / divisor)
            biases.append((b / divisor if self.scale_biases else b) * self.biases)
        network = Deep.dense(weights, biases)
        return Deep(network.maps, network)

    def _scaled_output(self, v: Tensor) -> Tensor:
        return v if self.first_layer_only else v / self.scale

    def draw_arrays(self, dim: int, width: int, ambient: int, rng: Generator) -> tuple[Tensor, Tensor, Tensor]:
        return *self._linear(width, dim, ambient, rng), _uniform((width,), width**-0.5, rng)

    def _linear(self, outputs: int, inputs: int, ambient: int, rng: Generator) -> tuple[Tensor, Tensor]:
        """W (outputs, inputs) of a layer whose fan-in is `ambient`, and its b."""
        bound = ambient**-0.5
        if ambient == inputs:
            W = _uniform((outputs, inputs), bound, rng)
        else:
            W = _normal((outputs, inputs), bound / 3**0.5, rng)
        return W, _uniform((outputs,), bound, rng)


@dataclass(frozen=True)
class Kaiming(Initialisation):
    """melamed2023 3.1: w_i ~ N(0, β² I) with β² = 1/d unless given, output weights ±1/√m.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> network = bt.networks.Kaiming().draw(784, width=400, rng=torch.Generator().manual_seed(0))
        >>> round(network.W.norm(dim=1).mean().item(), 1), network.v.abs().unique().tolist()
        (1.0, [0.05])
    """

    name: ClassVar = "kaiming"

    beta: float | None = field(
        default=None, metadata=option("β, 1/√d unless given.", "--init-beta", check=require_positive)
    )
    biases: bool = field(default=False, metadata=BIASES)

    def draw_arrays(self, dim: int, width: int, ambient: int, rng: Generator) -> tuple[Tensor, Tensor, Tensor]:
        beta = ambient**-0.5 if self.beta is None else self.beta
        W = _normal((width, dim), beta, rng)
        return W, _normal((width,), beta, rng), _signs(width, rng) / width**0.5


@dataclass(frozen=True)
class LazyInit(Initialisation):
    """wang2022 2.1: w_s ~ N(0, I), output weights ±1/√m.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> network = bt.networks.LazyInit().draw(100, width=400, rng=torch.Generator().manual_seed(0))
        >>> network.v.abs().unique().tolist()
        [0.05]
    """

    name: ClassVar = "lazy"

    biases: bool = field(default=False, metadata=BIASES)

    def draw_arrays(self, dim: int, width: int, ambient: int, rng: Generator) -> tuple[Tensor, Tensor, Tensor]:
        return _normal((width, dim), 1.0, rng), _normal((width,), 1.0, rng), _signs(width, rng) / width**0.5


@check_kinds
def redrawn(network: Kind, rng: Generator) -> Kind:
    """PyTorch's initialisation of a network like this one, in float64; layers without biases stay without.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> rng = torch.Generator().manual_seed(0)
        >>> network = bt.networks.TorchLinearInit().draw(3, width=5, rng=rng)
        >>> again = bt.networks.redrawn(network, rng)
        >>> again.shape == network.shape, bool((again.W == network.W).any())
        (True, False)
    """
    layers = []
    for layer in network.layers:
        weight, bias = layer.parameters
        bound = weight[0].numel() ** -0.5
        drawn = _uniform(tuple(weight.shape), bound, rng), _uniform(tuple(bias.shape), bound, rng)
        layers.append(layer.with_parameters(drawn[0], drawn[1] * bool(bias.any())))
    return network.with_layers(layers)


def _uniform(shape: tuple[int, ...], bound: float, rng: Generator) -> Tensor:
    return (2 * torch.rand(shape, generator=rng, dtype=torch.float64) - 1) * bound


def _normal(shape: tuple[int, ...], deviation: float, rng: Generator) -> Tensor:
    return torch.randn(shape, generator=rng, dtype=torch.float64) * deviation


def _signs(count: int, rng: Generator) -> Tensor:
    return torch.randint(0, 2, (count,), generator=rng).double() * 2 - 1
