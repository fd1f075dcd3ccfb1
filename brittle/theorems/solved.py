"""A KKT point to check theorems on."""

from torch import Generator

from brittle.common.ending import Ending
from brittle.common.errors import required
from brittle.margin import solve
from brittle.networks import PyTorch, TwoLayer
from brittle.settings import Data
from brittle.training import Flow, Margin

WIDTHS = (20, 100, 500)  # a narrow start may leave an example without a neuron


def kkt_network(data: Data, rng: Generator) -> TwoLayer:
    """The KKT point that is solved for from a small network, trained until every margin exceeds 0.1.

    Where the solver does not arrive at one, a wider network is tried; the last one is given back in any case.
    """
    network = None
    for width in WIDTHS:
        start = PyTorch().draw(data.columns, width, rng)
        training = Flow(until=Margin(0.1)).train(start, data)
        if training.reached:
            found = solve(training.network, data)
            network = found.network
            if found.status is Ending.SOLVED:
                break
    return required(network, f"gradient flow did not separate the {len(data)} examples ({training.message})")
