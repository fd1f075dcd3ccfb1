"""Confidence in a rate that was counted."""

import math
from collections.abc import Iterator

import numpy as np
import scipy
import torch
from torch import Generator, Tensor

from brittle.common.ending import Status
from brittle.common.errors import require_value
from brittle.data import Data
from brittle.kkt import solve
from brittle.networks import TorchLinearInit, TwoLayer
from brittle.training import Flow, Margin


def clopper_pearson(failures: int, trials: int, confidence: float = 0.99) -> tuple[float, float]:
    """The exact interval for a binomial rate."""
    beta, tail = scipy.stats.beta, (1 - confidence) / 2
    low = 0.0 if failures == 0 else float(beta.ppf(tail, failures, trials - failures + 1))
    high = 1.0 if failures == trials else float(beta.ppf(1 - tail, failures + 1, trials - failures))
    return low, high


# Powers that a double may not hold: infinite instead of an error, since they are only compared.


def exponential(exponent: float) -> float:
    """e to the exponent."""
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf


def power(base: float, exponent: float) -> float:
    """`base` > 0 to the exponent."""
    return exponential(exponent * math.log(base))


# A radius that is read off a network's activation pattern.


RADIUS = "radius within which no sign can change"


def pattern_radius(network: TwoLayer, X: Tensor) -> Tensor:
    """How far each row may move while no neuron opens or closes, (n,); 0 where not exactly one of them is open.

    With one open neuron the output keeps its sign until that neuron closes or another one opens.
    """
    inputs = network.preactivations(X)
    distances = inputs.abs() / torch.linalg.vector_norm(network.W, dim=1)
    return torch.where((inputs > 0).sum(1) == 1, distances.min(1).values, 0.0)


# Many draws at once of vectors in their span.


AT_ONCE = 2**21  # numbers


def bartletts(draws: int, count: int, dim: int, rng: Generator) -> Iterator[Tensor]:
    """Batches (any, count, count): rows with the joint inner products of `count` ≤ dim Gaussian vectors of R^dim.

    As `settings.span.bartlett`, which makes one.
    """
    seed = int(torch.randint(2**63 - 1, (), generator=rng))
    chi = np.random.default_rng(seed)
    degrees = np.arange(dim, dim - count, -1).astype(float)
    size = max(1, AT_ONCE // count**2)
    for begin in range(0, draws, size):
        batch = min(size, draws - begin)
        L = torch.randn(batch, count, count, generator=rng, dtype=torch.float64).tril(-1)
        diagonal = np.sqrt(chi.chisquare(degrees, (batch, count)))
        yield L + torch.diag_embed(torch.from_numpy(diagonal))


# A KKT point to check theorems on.


WIDTHS = (20, 100, 500)  # a narrow start may leave an example without a neuron


def kkt_network(data: Data, rng: Generator) -> TwoLayer:
    """The KKT point that is solved for from a small network, trained until every margin exceeds 0.1.

    Where the solver does not arrive at one, a wider network is tried; the last one is given back in any case.
    """
    network = None
    for width in WIDTHS:
        start = TorchLinearInit().draw(data.columns, width, rng)
        training = Flow(until=Margin(0.1)).train(start, data)
        if training.reached:
            found = solve(training.network, data)
            network = found.network
            if found.status is Status.SOLVED:
                break
    return require_value(network, f"gradient flow did not separate the {len(data)} examples ({training.message})")
