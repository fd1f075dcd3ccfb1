"""What tells the causes of a weakness apart: labels, margins, one direction for all, and where the flips point."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.auditing.geometry import NearestNeighbourLimit
from brittle.auditing.vulnerability import Vulnerability
from brittle.common.errors import InputError
from brittle.common.result import Result
from brittle.data import Data
from brittle.geometry import Basis, nearest_rivals
from brittle.networks import Layered, Network, get_layered

NEIGHBOURS, AGREEING = 5, 4


@dataclass(frozen=True, eq=False)
class Evidence(Result):
    """A measure that does not apply is None.

    `doubtful` are the rows of training examples of whose five nearest neighbours four at least agree on another label,
    looked for among `compared` examples; `unsettled` is the share of these most of whose neighbours have other labels,
    and `allowed_gain` how many times more the data would allow in the median without the doubtful ones.
    `weakest_margins` is the margin that a tenth of the training examples do not reach, over the median margin.
    `one_direction` is the median radius over the size at which the best single direction flips half of the examples: 1
    where it is as good as each one's own. `toward_rivals` is the mean cosine between the shortest flip and the way to
    the nearest example of another class.
    """

    doubtful: Tensor
    compared: int
    unsettled: float
    allowed_gain: float | None
    weakest_margins: float | None
    one_direction: float | None
    toward_rivals: float | None

    @property
    def doubtful_share(self) -> float:
        return len(self.doubtful) / self.compared


def evidence(
    margins: Tensor, data: Data, audited: Data, weak: Vulnerability, bound: NearestNeighbourLimit | None, compared: int
) -> Evidence:
    """Of a network with these `margins` on training examples, and of the `audited` examples.

    Labels are compared among so many examples.
    """
    rows = torch.arange(0, len(data), -(-len(data) // compared))
    some = data.take(rows)
    odd, unsettled = _contradicted(some)
    return Evidence(
        doubtful=rows[odd],
        compared=len(rows),
        unsettled=unsettled,
        allowed_gain=_allowed_gain(some, odd),
        weakest_margins=_weakest(margins),
        one_direction=_one_direction(weak),
        toward_rivals=None if bound is None else _toward(weak, audited, data.X[bound.rivals]),
    )


def _contradicted(data: Data) -> tuple[Tensor, float]:
    """Which examples (n,) have neighbours that agree on another label, and the share with most neighbours of others."""
    squares = data.X.square().sum(1)
    far = torch.addmm(squares, data.X, data.X.T, alpha=-2).fill_diagonal_(torch.inf)
    count = min(NEIGHBOURS, len(data) - 1)
    if count < AGREEING:
        return torch.zeros(len(data), dtype=torch.bool), 0.0
    labels = data.y[far.topk(count, largest=False).indices]
    commonest = labels.mode(1).values
    agreeing = (labels == commonest[:, None]).sum(1) >= AGREEING
    others = (labels != data.y[:, None]).double().mean(1)
    return agreeing & (commonest != data.y), float((others > 0.5).double().mean())


def _allowed_gain(data: Data, odd: Tensor) -> float | None:
    try:
        before, after = (float(nearest_rivals(X, y)[0].median()) for X, y in _with_and_without(data, odd))
    except InputError:
        return None
    return after / before if before > 0 else None


def _with_and_without(data: Data, odd: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    kept = data if bool(odd.all()) else data.take((~odd).nonzero()[:, 0])
    return (data.X, data.y), (kept.X, kept.y)


def _weakest(margins: Tensor) -> float | None:
    middle = float(margins.median())
    return float(margins.kthvalue(1 + len(margins) // 10).values) / middle if middle > 0 else None


def _one_direction(weak: Vulnerability) -> float | None:
    half = min((each.half for each in weak.universal), default=torch.inf)
    return weak.free.median / half if 0 < half < torch.inf and weak.free.median < torch.inf else None


def _toward(weak: Vulnerability, audited: Data, rivals: Tensor) -> float | None:
    flipped = weak.free.rows[(weak.free.norms > 0) & weak.free.norms.isfinite()]
    if not len(flipped):
        return None
    ways = rivals[flipped] - audited.X[flipped]
    return float(torch.nn.functional.cosine_similarity(ways, weak.perturbations[flipped], dim=1).mean())


# What carries the weakness: the data's own subspace or the directions off it, training or what it never touched.


MOST_OF_IT = 0.9


@dataclass(frozen=True)
class WeaknessShares(Result):
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


def explain(network: Network, data: Data, basis: Tensor | None, perturbations: Tensor | None) -> WeaknessShares:
    """`basis` (columns, r) orthonormal and `perturbations` the smallest ones; None where they are not known."""
    gradients = network.margin_gradients(data.X, data.y).double()
    layered = get_layered(network)
    inside = basis is not None and basis.shape[1] < data.columns
    initial = _untouched(layered, data, basis) if layered and basis is not None and inside else (None, None)
    return WeaknessShares(
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
