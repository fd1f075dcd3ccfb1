"""melamed2023's training, for data that lie near a subspace or on a manifold."""

import torch
from torch import Generator, Tensor

from brittle.networks import Kaiming, TwoLayer
from brittle.settings import Data
from brittle.training import Descent, Logistic, Margin, Steps, Training

MARGIN, LONGEST = 1.0, 20_000


def trained(data: Data, width: int, rng: Generator) -> Training[TwoLayer]:
    """The first layer from w ~ N(0, I/d), no biases, outputs ±1/√m, by descent until every margin is 1."""
    start = Kaiming().draw(data.columns, width, rng)
    until = (Margin(MARGIN), Steps(LONGEST))
    return Descent(until, Logistic("sum"), rate=0.02, layers="first", biases=False).train(start, data)


def gradients(network: TwoLayer, X: Tensor) -> Tensor:
    """∇N at every row."""
    return network.logit_gradients(X, torch.ones(len(X), dtype=X.dtype))
