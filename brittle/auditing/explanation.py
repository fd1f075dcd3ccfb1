"""What carries the weakness: the data's own subspace or the directions off it, training or what it never touched."""

from dataclasses import dataclass

from torch import Tensor

from brittle.common.result import Result
from brittle.geometry import Basis
from brittle.networks import Layered, Network, layered_or_none
from brittle.settings import Data

MOST_OF_IT = 0.9


@dataclass(frozen=True)
class Explanation(Result):
    """Shares of squared length, averaged over examples; None where there is nothing to measure, or no known subspace.

    `dimension_share_off` is what a random direction would have off the subspace, to compare the others with.
    """

    dimension_share_off: float | None
    gradient_share_off: float | None
    perturbation_share_off: float | None
    initial_share_of_weights_off: float | None  # how much of the first layer off the subspace is its start, unchanged
    initial_share_of_gradient_off: float | None  # the same for the gradient
    neurons_carrying_gradient: int | None  # fewest neurons that make up 90 % of the gradient
    neurons: int | None


def explain(network: Network, data: Data, basis: Tensor | None, perturbations: Tensor | None) -> Explanation:
    """`basis` (columns, r) orthonormal and `perturbations` the smallest ones; None where they are not known."""
    gradients = network.margin_gradients(data.X, data.y).double()
    layered = layered_or_none(network)
    inside = basis is not None and basis.shape[1] < data.columns
    initial = _untouched(layered, data, basis) if layered and basis is not None and inside else (None, None)
    return Explanation(
        dimension_share_off=None if basis is None else 1 - basis.shape[1] / data.columns,
        gradient_share_off=None if basis is None else share_off(gradients, basis),
        perturbation_share_off=None if perturbations is None or basis is None else share_off(perturbations, basis),
        initial_share_of_weights_off=initial[0],
        initial_share_of_gradient_off=initial[1],
        neurons_carrying_gradient=_carriers(layered, data, gradients) if layered else None,
        neurons=layered.shape[1] if layered else None,
    )


def share_off(vectors: Tensor, basis: Tensor) -> float:
    """Mean share of the squared length off the subspace, over rows that are not zero."""
    squares = vectors.square().sum(1)
    some = squares > 0
    if not some.any():
        return 0.0
    return float((Basis(basis).off(vectors[some]).square().sum(1) / squares[some]).mean())


def without_off_subspace_weights(network: Layered, basis: Tensor) -> Layered:
    """The first layer projected on the subspace: the same function on it, and none of the directions off it."""
    projected = network.with_first_layer(_on(network.layers[0].matrix, basis))
    return projected if network.start is None else projected.with_layers(projected.layers, network.start)


def _on(W: Tensor, basis: Tensor) -> Tensor:
    return Basis(basis).project(W.double()).to(W)


def _untouched(network: Layered, data: Data, basis: Tensor) -> tuple[float | None, float | None]:
    """How much of the off-subspace weights and gradient the initialisation explains: 1 where training never moved it.

    Measured as 1 - ‖now - start‖²/‖now‖², at least 0.
    """
    if network.start is None:
        return None, None
    W, W0 = network.layers[0].matrix, network.start.layers[0].matrix
    start_off = W0 - _on(W0, basis)
    signals = network.neuron_gradients(data.X, network.margin_weights(data.X, data.y)).double()
    now = signals @ Basis(basis).off(W.double())
    then = signals @ Basis(basis).off((_on(W, basis) + start_off).double())
    return _explained(Basis(basis).off(W.double()), start_off.double()), _explained(now, then)


def _explained(now: Tensor, start: Tensor) -> float | None:
    whole = float(now.square().sum())
    if whole == 0:
        return None
    return max(0.0, 1 - float((now - start).square().sum()) / whole)


def _carriers(network: Layered, data: Data, gradients: Tensor) -> int:
    """Neurons sorted by their part <signal_j w_j, g>/‖g‖² of the mean gradient, until 90 % is there."""
    signals = network.neuron_gradients(data.X, network.margin_weights(data.X, data.y)).double()
    squares = gradients.square().sum(1).clamp_min(1e-300)
    inputs = network.layers[0].linear(gradients.to(network.dtype)).double()
    parts = (signals * inputs / squares[:, None]).mean(0)
    positive = parts.sort(descending=True).values.clamp_min(0)
    return min(int((positive.cumsum(0) < MOST_OF_IT * parts.sum().clamp_min(0)).sum()) + 1, len(parts))
