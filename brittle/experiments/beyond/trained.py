"""melamed2023's training, for data that lie near a subspace or on a manifold."""

import torch
from torch import Generator, Tensor

from brittle.data import Data
from brittle.networks import Kaiming, TwoLayer
from brittle.training import GradientDescent, Logistic, Margin, Steps, TrainingResult

MARGIN, LONGEST = 1.0, 20_000


def train_first_layer(data: Data, width: int, rng: Generator) -> TrainingResult[TwoLayer]:
    """The first layer from w ~ N(0, I/d), no biases, outputs ±1/√m, by descent until every margin is 1."""
    start = Kaiming().draw(data.columns, width, rng)
    until = (Margin(MARGIN), Steps(LONGEST))
    return GradientDescent(until, Logistic("sum"), rate=0.02, layers="first", biases=False).train(start, data)


def gradients(network: TwoLayer, X: Tensor) -> Tensor:
    """∇N at every row."""
    return network.logit_gradients(X, torch.ones(len(X), dtype=X.dtype))
