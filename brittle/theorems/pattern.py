"""A radius that is read off a network's activation pattern."""

import torch
from torch import Tensor

from brittle.networks import TwoLayer

RADIUS = "radius within which no sign can change"


def pattern_radius(network: TwoLayer, X: Tensor) -> Tensor:
    """How far each row may move while no neuron opens or closes, (n,); 0 where not exactly one of them is open.

    With one open neuron the output keeps its sign until that neuron closes or another one opens.
    """
    inputs = network.preactivations(X)
    distances = inputs.abs() / torch.linalg.vector_norm(network.W, dim=1)
    return torch.where((inputs > 0).sum(1) == 1, distances.min(1).values, 0.0)
