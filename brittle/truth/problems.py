"""The recipes of the truth set: networks and examples from seeds, from the papers' settings to small convolutions."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import torch
from torch import Generator, Tensor

from brittle.data import Cifar10, Clusters, Data, Digits, Mnist, Setting, Sphere, Subspace
from brittle.kkt import solve
from brittle.networks import Convolution, Deep, Dense, Layered, TorchLinearInit, TwoLayer
from brittle.networks import LazyInit as LazyStart
from brittle.training import Flow, GradientDescent, LazyTraining, Logistic, LogLoss, Steps

WEIGHT_BITS = 12  # of the largest weight of a layer
INPUT_BITS = 20  # of the largest feature
KNOWN = "digests.json"


def on_grid(values: Tensor, bits: int) -> Tensor:
    """Multiples of 2^-bits times the power of two above the largest."""
    largest = float(values.abs().max())
    if largest == 0:
        return values.double()
    step = 2.0 ** (torch.tensor(largest).log2().ceil().item() - bits)
    return (values.double() / step).round() * step


def frozen_network(network: Layered) -> Layered:
    """The network with its weights and biases on the grid, layer by layer."""
    network = network.to(torch.float64)
    parts = [
        layer.with_parameters(*(on_grid(each, WEIGHT_BITS) for each in layer.parameters)) for layer in network.layers
    ]
    return network.with_layers(parts)


def frozen_data(X: Tensor, y: Tensor) -> Data:
    """Examples on the grid."""
    return Data(on_grid(X, INPUT_BITS), y)


def digest(network: Layered, data: Data) -> str:
    """SHA-256 of all parameters, examples and labels as little-endian float64, in this order."""
    digest = hashlib.sha256()
    for array in (*(each for layer in network.layers for each in layer.parameters), data.X, data.y):
        digest.update(array.double().contiguous().numpy().astype("<f8").tobytes())
    return digest.hexdigest()


@cache
def load_known_digests() -> dict[str, str]:
    """The digest of every problem as it was first built."""
    content: dict[str, Any] = json.loads((files("brittle.truth") / KNOWN).read_text())
    return content


Drawn = tuple[Layered, Data]
SHALLOW, DEEP = 1e-6, 1e-3  # the relative gap to which radii are proved


@dataclass(frozen=True)
class ProblemRecipe:
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


def label_by_network(network: Layered, X: Tensor) -> Data:
    """Every example has the label that the network gives it."""
    return Data(X, network.predict(X).double() if network.classes == 1 else network.predict(X))


def random_network(dim: int, width: int) -> Callable[[Generator], Drawn]:
    def draw(rng: Generator) -> Drawn:
        network = TwoLayer(normal(rng, width, dim) / dim**0.5, 0.3 * normal(rng, width), normal(rng, width))
        return network, label_by_network(frozen_network(network), normal(rng, 40, dim))

    return draw


def random_deep(*widths: int) -> Callable[[Generator], Drawn]:
    def draw(rng: Generator) -> Drawn:
        shapes = list(zip(widths[1:], widths[:-1], strict=True))
        network = Deep(tuple(Dense(normal(rng, m, d) * (2 / d) ** 0.5, 0.1 * normal(rng, m)) for m, d in shapes))
        return network, label_by_network(frozen_network(network), normal(rng, 40, widths[0]))

    return draw


def kkt_point(setting: Setting, examples: int, width: int) -> Callable[[Generator], Drawn]:
    def draw(rng: Generator) -> Drawn:
        data = setting.sample(examples, rng)
        start = Flow(until=LogLoss(-3)).train(TorchLinearInit().draw(data.columns, width, rng), data).network
        return solve(start, data).network, data

    return draw


def by_flow(setting: Setting, examples: int, width: int, until: float) -> Callable[[Generator], Drawn]:
    def draw(rng: Generator) -> Drawn:
        data = setting.sample(examples, rng)
        start = TorchLinearInit().draw(data.columns, width, rng)
        return Flow(until=LogLoss(until), loss=Logistic()).train(start, data).network, data

    return draw


def lazy(dim: int, width: int) -> Callable[[Generator], Drawn]:
    def draw(rng: Generator) -> Drawn:
        data = Sphere(dim, radius=1.0).sample(80, rng)
        regime = LazyTraining(until=Steps(500), radius=1.0)
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
    return GradientDescent(loss=Logistic(), rate=0.05, until=Steps(300)).train(network, data, rng=rng).network


RANDOM = ((5, 20), (10, 40), (784, 30), (100, 60))  # d and width

RECIPES = (
    *(
        ProblemRecipe(f"random-{d}x{m}", f"random, d = {d}, width {m}", 30, SHALLOW, random_network(d, m))
        for d, m in RANDOM
    ),
    ProblemRecipe("sphere-kkt-100", "KKT point, sphere, d = n = 100", 60, SHALLOW, kkt_point(Sphere(100), 100, 1000)),
    ProblemRecipe(
        "sphere-kkt-1000", "KKT point, sphere, d = 1000, n = 31", 31, SHALLOW, kkt_point(Sphere(1000), 31, 1000)
    ),
    ProblemRecipe(
        "sphere-flow", "flow to e^-20, sphere, d = 200, width 300", 40, SHALLOW, by_flow(Sphere(200), 60, 300, -20)
    ),
    ProblemRecipe("clusters-kkt", "KKT point, 4 clusters, d = 400", 40, SHALLOW, kkt_point(Clusters(400, 4), 60, 500)),
    ProblemRecipe("subspace-flow", "flow, 28 of 100 dimensions", 40, SHALLOW, by_flow(Subspace(100, 72), 80, 100, -5)),
    ProblemRecipe("lazy", "lazy near its start, d = 100, width 300", 30, SHALLOW, lazy(100, 300)),
    ProblemRecipe("digits-3v8", "digits 3 against 8, width 100", 60, SHALLOW, by_flow(Digits((3, 8)), 200, 100, -3)),
    ProblemRecipe(
        "mnist-3v8", "MNIST 3 against 8, width 100", 60, SHALLOW, by_flow(Mnist((3, 8)), 500, 100, -3), "mnist"
    ),
    ProblemRecipe("cifar-1v7", "CIFAR-10 1 against 7", 30, SHALLOW, by_flow(Cifar10((1, 7)), 300, 40, -2), "cifar10"),
    ProblemRecipe("deep-10", "random, 10-20-20-3", 20, DEEP, random_deep(10, 20, 20, 3)),
    ProblemRecipe("deep-6", "random, 6-10-10-10-1", 20, DEEP, random_deep(6, 10, 10, 10, 1)),
    ProblemRecipe("digits-deep", "digits, 64-50-50-10", 20, DEEP, several_classes(Digits(), 600, 64, 50, 50, 10)),
    ProblemRecipe(
        "mnist-deep", "MNIST, 784-50-50-10", 20, DEEP, several_classes(Mnist(), 1000, 784, 50, 50, 10), "mnist"
    ),
    ProblemRecipe("digits-conv", "digits, convolution and two dense", 20, DEEP, convolutional(Digits(), 8, 4, 3, 2)),
    ProblemRecipe(
        "mnist-conv", "MNIST, convolution and two dense", 20, DEEP, convolutional(Mnist(), 28, 3, 5, 4), "mnist"
    ),
)
