"""Networks that are affine maps and ReLUs, and were something else: normalised, pooled, with branches."""

from dataclasses import dataclass, field, replace

import torch
from torch import nn

from brittle.networks.affine import Affine
from brittle.networks.deep import Deep
from brittle.networks.graph import Graph, Interpreter, of_type
from brittle.networks.lowering import lower_graph
from brittle.networks.output_layers import Rows


@dataclass(frozen=True, eq=False)
class Folded(Deep):
    """A deep network that was read from a `graph`, whose inputs have the shape `image`.

    It is judged by its layers and trained in the form in which it came: kernels stay shared, and what is carried past a
    ReLU or pooled stays as it is.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> module = torch.nn.Sequential(
        ...     torch.nn.Conv2d(1, 2, 3),
        ...     torch.nn.ReLU(),
        ...     torch.nn.MaxPool2d(2),
        ...     torch.nn.Flatten(),
        ...     torch.nn.Linear(2, 3),
        ... )
        >>> network = bt.networks.as_network(module, shape=(1, 4, 4))
        >>> type(network).__name__, network.dim, network.classes
        ('Folded', 16, 3)
    """

    graph: Graph = field(kw_only=True)
    image: tuple[int, ...] = field(kw_only=True)

    @property
    def degree(self) -> int:
        return sum(parameter.ndim > 1 for parameter in Interpreter(self.graph).parameters())

    def to(self, dtype: torch.dtype) -> "Folded":
        if dtype == self.dtype:
            return self
        start = None if self.start is None else self.start.to(dtype)
        return replace(self, maps=tuple(layer.to(dtype) for layer in self.maps), start=start)

    def module(self) -> nn.Module:
        return Rows(Interpreter(of_type(self.graph, self.dtype)), self.image, self.classes)

    def loaded(self, module: nn.Module) -> "Folded":
        assert isinstance(module, Rows)
        assert isinstance(module.inner, Interpreter)
        graph = module.inner.trained()
        maps = _maps(graph, self.image, self.dtype)
        start = self.start if self.start is not None else Deep(self.maps)
        fits = start.shape == (start.dim, *(layer.outputs for layer in maps))  # a ReLU that is always on may have gone
        return Folded(maps, start if fits else None, graph=graph, image=self.image)


def _maps(graph: Graph, image: tuple[int, ...], dtype: torch.dtype) -> tuple[Affine, ...]:
    return tuple(layer.to(dtype) for layer in lower_graph(graph, image)[0])
