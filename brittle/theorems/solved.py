"""A KKT point to check theorems on."""

import torch
from torch import Generator, Tensor

from brittle.margin import solve
from brittle.networks import PyTorch, TwoLayer
from brittle.settings import Data
from brittle.training import Accuracy, Flow

WIDTH = 20
FEW = 150  # examples that are solved for at once; where there are more, this many join in one round at most
ALIKE = 0.9  # two examples of one label and a larger cosine do not join in the same round
FEASIBLE = 1 - 1e-9


def kkt_network(data: Data, rng: Generator) -> TwoLayer:
    """The KKT point that is solved for from a small network, trained until it classifies every example.

    Where there are many examples it is solved on a few: it is a KKT point for all of them once all have q ≥ 1.
    """
    start = PyTorch().draw(data.columns, WIDTH, rng)
    trained = Flow(until=Accuracy(1.0)).train(start, data).network
    assert isinstance(trained, TwoLayer)
    if len(data) <= FEW:
        return solve(trained, data).network
    working = torch.zeros(len(data), dtype=torch.bool)
    q = trained.margins(data.X, data.y) - torch.inf
    while bool((q < FEASIBLE).any()):
        working[_unlike(data, q)] = True
        network = solve(trained, data.take(working)).network
        q = network.margins(data.X, data.y)
    return network


def _unlike(data: Data, q: Tensor) -> Tensor:
    """Violated examples, the worst first, none of them much like another."""
    violated = torch.nonzero(q < FEASIBLE)[:, 0]
    order = violated[q[violated].argsort(stable=True)]
    X = torch.nn.functional.normalize(data.X, dim=1) * data.y[:, None]
    chosen: list[int] = []
    for index in order.tolist():
        if len(chosen) == FEW:
            break
        if not chosen or float((X[chosen] @ X[index]).max()) <= ALIKE:
            chosen.append(index)
    return torch.tensor(chosen)
