"""The recipes of the truth set: networks and examples from seeds, from the papers' settings to small convolutions."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from brittle.margin import solve
from brittle.networks import Convolution, Deep, Dense, Layered, PyTorch, TwoLayer
from brittle.networks import Lazy as LazyStart
from brittle.settings import Cifar10, Clusters, Data, Digits, Mnist, Setting, Sphere, Subspace
from brittle.training import Descent, Flow, Lazy, Logistic, LogLoss, Steps
from brittle.truth.frozen import frozen_data, frozen_network

Drawn = tuple[Layered, Data]
SHALLOW, DEEP = 1e-6, 1e-3  # the relative gap to which radii are proved


@dataclass(frozen=True)
class Recipe:
    """How a problem is made: its name and what it is in words, how many examples it keeps, the gap to reach.

    `draw` gives a network and at least as many examples that it has right; `needs` is the data set that must be there.
    """

    name: str
    words: str
    examples: int
    gap: float
    draw: Callable[[Generator], Drawn]
    needs: str = ""

    def build(self, seed: int = 0) -> Drawn:
        """The network and its first rightly classified examples, on the grid."""
        drawn, data = self.draw(torch.Generator().manual_seed(seed))
        network, data = frozen_network(drawn), frozen_data(data.X, data.y)
        correct = torch.nonzero(network.margins(data.X, data.y) > 0)[: self.examples, 0]
        return network, Data(data.X[correct], data.y[correct])


def normal(rng: Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=rng, dtype=torch.float64)


def self_labelled(network: Layered, X: Tensor) -> Data:
    """Every example has the label that the network gives it."""
    return Data(X, network.predict(X).double() if network.classes == 1 else network.predict(X))


def random_network(dim: int, width: int) -> Callable[[Generator], Drawn]:
    def draw(rng: Generator) -> Drawn:
        network = TwoLayer(normal(rng, width, dim) / dim**0.5, 0.3 * normal(rng, width), normal(rng, width))
        return network, self_labelled(frozen_network(network), normal(rng, 40, dim))

    return draw


def random_deep(*widths: int) -> Callable[[Generator], Drawn]:
    def draw(rng: Generator) -> Drawn:
        shapes = list(zip(widths[1:], widths[:-1], strict=True))
        network = Deep(tuple(Dense(normal(rng, m, d) * (2 / d) ** 0.5, 0.1 * normal(rng, m)) for m, d in shapes))
        return network, self_labelled(frozen_network(network), normal(rng, 40, widths[0]))

    return draw


def kkt_point(setting: Setting, examples: int, width: int) -> Callable[[Generator], Drawn]:
    def draw(rng: Generator) -> Drawn:
        data = setting.sample(examples, rng)
        start = Flow(until=LogLoss(-3)).train(PyTorch().draw(data.columns, width, rng), data).network
        return solve(start, data).network, data

    return draw


def by_flow(setting: Setting, examples: int, width: int, until: float) -> Callable[[Generator], Drawn]:
    def draw(rng: Generator) -> Drawn:
        data = setting.sample(examples, rng)
        start = PyTorch().draw(data.columns, width, rng)
        return Flow(until=LogLoss(until), loss=Logistic()).train(start, data).network, data

    return draw


def lazy(dim: int, width: int) -> Callable[[Generator], Drawn]:
    def draw(rng: Generator) -> Drawn:
        data = Sphere(dim, radius=1.0).sample(80, rng)
        regime = Lazy(until=Steps(500), radius=1.0)
        return regime.train(LazyStart().draw(dim, width, rng), data, rng=rng).network, data

    return draw


def several_classes(setting: Setting, examples: int, *widths: int) -> Callable[[Generator], Drawn]:
    def draw(rng: Generator) -> Drawn:
        data = setting.sample(examples, rng)
        shapes = list(zip(widths[1:], widths[:-1], strict=True))
        start = Deep(tuple(Dense(normal(rng, m, d) * (2 / d) ** 0.5, torch.zeros(m).double()) for m, d in shapes))
        return _descended(start, data, rng), data

    return draw


def convolutional(setting: Setting, side: int, channels: int, size: int, stride: int) -> Callable[[Generator], Drawn]:
    def draw(rng: Generator) -> Drawn:
        data = setting.sample(800, rng)
        kernel, none = normal(rng, channels, 1, size, size) * 1.2 / size, torch.zeros(channels).double()
        first = Convolution(kernel, none, (1, side, side), (stride, stride))
        shapes = ((20, first.outputs), (10, 20))
        dense = (Dense(normal(rng, m, d) * (2 / d) ** 0.5, torch.zeros(m).double()) for m, d in shapes)
        return _descended(Deep((first, *dense)), data, rng), data

    return draw


def _descended(network: Deep, data: Data, rng: Generator) -> Layered:
    return Descent(loss=Logistic(), rate=0.05, until=Steps(300)).train(network, data, rng=rng).network


RANDOM = ((5, 20), (10, 40), (784, 30), (100, 60))  # d and width

RECIPES = (
    *(Recipe(f"random-{d}x{m}", f"random, d = {d}, width {m}", 30, SHALLOW, random_network(d, m)) for d, m in RANDOM),
    Recipe("sphere-kkt-100", "KKT point, sphere, d = n = 100", 60, SHALLOW, kkt_point(Sphere(100), 100, 1000)),
    Recipe("sphere-kkt-1000", "KKT point, sphere, d = 1000, n = 31", 31, SHALLOW, kkt_point(Sphere(1000), 31, 1000)),
    Recipe("sphere-flow", "flow to e^-20, sphere, d = 200, width 300", 40, SHALLOW, by_flow(Sphere(200), 60, 300, -20)),
    Recipe("clusters-kkt", "KKT point, 4 clusters, d = 400", 40, SHALLOW, kkt_point(Clusters(400, 4), 60, 500)),
    Recipe("subspace-flow", "flow, 28 of 100 dimensions", 40, SHALLOW, by_flow(Subspace(100, 72), 80, 100, -5)),
    Recipe("lazy", "lazy near its start, d = 100, width 300", 30, SHALLOW, lazy(100, 300)),
    Recipe("digits-3v8", "digits 3 against 8, width 100", 60, SHALLOW, by_flow(Digits((3, 8)), 200, 100, -3)),
    Recipe("mnist-3v8", "MNIST 3 against 8, width 100", 60, SHALLOW, by_flow(Mnist((3, 8)), 500, 100, -3), "mnist"),
    Recipe("cifar-1v7", "CIFAR-10 1 against 7", 30, SHALLOW, by_flow(Cifar10((1, 7)), 300, 40, -2), "cifar10"),
    Recipe("deep-10", "random, 10-20-20-3", 20, DEEP, random_deep(10, 20, 20, 3)),
    Recipe("deep-6", "random, 6-10-10-10-1", 20, DEEP, random_deep(6, 10, 10, 10, 1)),
    Recipe("digits-deep", "digits, 64-50-50-10", 20, DEEP, several_classes(Digits(), 600, 64, 50, 50, 10)),
    Recipe("mnist-deep", "MNIST, 784-50-50-10", 20, DEEP, several_classes(Mnist(), 1000, 784, 50, 50, 10), "mnist"),
    Recipe("digits-conv", "digits, convolution and two dense", 20, DEEP, convolutional(Digits(), 8, 4, 3, 2)),
    Recipe("mnist-conv", "MNIST, convolution and two dense", 20, DEEP, convolutional(Mnist(), 28, 3, 5, 4), "mnist"),
)
