"""A KKT point to check theorems on."""

import torch
from torch import Generator, Tensor

from brittle.common.errors import InputError
from brittle.margin import solve
from brittle.networks import PyTorch, TwoLayer
from brittle.settings import Data
from brittle.training import Flow, Margin

WIDTHS = (20, 100, 500)  # a narrow start may leave an example without a neuron
FEW = 150  # examples that are solved for at once; where there are more, this many join in one round at most
ALIKE = 0.9  # two examples of one label and a larger cosine do not join in the same round
FEASIBLE = 1 - 1e-9


def kkt_network(data: Data, rng: Generator) -> TwoLayer:
    """The KKT point that is solved for from a small network, trained until every margin exceeds 0.1.

    Where there are many examples it is solved on a few: it is a KKT point for all of them once all have q ≥ 1.
    """
    trained = _trained(data, rng)
    if len(data) <= FEW:
        return solve(trained, data).network
    working = torch.zeros(len(data), dtype=torch.bool)
    q = trained.margins(data.X, data.y) - torch.inf
    while bool((q < FEASIBLE).any()):
        working[_unlike(data, q)] = True
        network = solve(trained, data.take(working)).network
        q = network.margins(data.X, data.y)
    return network


def _trained(data: Data, rng: Generator) -> TwoLayer:
    for width in WIDTHS:
        start = PyTorch().draw(data.columns, width, rng)
        training = Flow(until=Margin(0.1)).train(start, data)
        if training.reached:
            return training.network
    raise InputError(f"gradient flow did not separate the {len(data)} examples ({training.message})")


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
