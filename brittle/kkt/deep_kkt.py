"""How far is a network of any depth and any number of classes from a KKT point of min ½‖θ‖², every margin ≥ 1?

A margin is y N(x), or the own logit minus another one: one constraint for every example and rival. The slope of a
neuron at its kink is free in [0, 1] for every constraint apart, as Clarke's subdifferential has it. Slopes of two
layers multiply, so that no convex problem finds the best ones of all layers at once: one layer's are improved at a time
with the others held, and the residual is what the multipliers and slopes attain.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.common.errors import require
from brittle.common.kinds import check_kinds
from brittle.common.result import Result
from brittle.data import Data
from brittle.kkt.explained import MultiplierSearch, WeightedGradients
from brittle.kkt.layer_gradients import Pairs, pairs_of
from brittle.kkt.residual import ON_MARGIN, require_classified
from brittle.networks import Layered


@dataclass(frozen=True, eq=False)
class DeepKKTResidual(Result):
    """How nearly the KKT conditions hold, measured after the network was scaled to a smallest margin of 1.

    Every number is what multipliers and slopes attain, never what a solver claims.

    stationarity: ε = ‖θ - Σ λ_p g_p‖ / ‖θ‖, over examples and rivals p
    complementarity: δ = Σ λ_p (q_p - 1) / Σ λ_p
    normalised_margin: γ = min q / ‖θ‖^depth
    share_on_margin: of the examples, those with a margin of at most 1.1 times the smallest
    pairs (N, 2): example and rival of the constraints that were weighed; the rival is -1 with one logit
    multipliers (N,): λ of these
    kinks: how many slopes were free
    balance: max_l |‖θ_l‖² - ‖θ‖²/depth| / ‖θ‖² over layers, zero at a KKT point
    norm_gap: |‖θ‖² - depth Σ λ_p| / ‖θ‖², zero at a KKT point
    kink_tolerance, margin_tolerance, biases: as they were given

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> found = bt.kkt.deep_residual(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> found.stationarity < 1e-9, found.share_on_margin
        (True, 1.0)
    """

    stationarity: float
    complementarity: float
    normalised_margin: float
    share_on_margin: float
    pairs: Tensor
    multipliers: Tensor
    kinks: int
    balance: float
    norm_gap: float
    kink_tolerance: float
    margin_tolerance: float
    biases: bool


@check_kinds
def deep_residual(
    network: Layered,
    data: Data,
    *,
    biases: bool = True,
    kink_tolerance: float = 1e-6,
    margin_tolerance: float = 1e-6,
) -> DeepKKTResidual:
    """The distance of a homogeneous network that classifies the data from a KKT point.

    A constraint may carry a multiplier if q ≤ (1 + margin_tolerance) min q. The slope at z = w·h + b is free where
    |z| ≤ kink_tolerance ‖(w, b)‖ ‖(h, 1)‖. `biases` says whether the first layer's are parameters; all others are zero.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=8, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.Flow(until=bt.training.LogLoss(-5)).train(start, data).network
        >>> bt.kkt.deep_residual(trained, data).stationarity > 1e-6  # still on its way
        True
    """
    require(margin_tolerance >= 0, f"margin_tolerance is {margin_tolerance!r}; it must be a number of at least 0")
    network = _checked(network, data, biases)
    pairs = pairs_of(network, data)
    q = _margins(network, data.X, pairs)
    nearest = torch.full((len(data),), torch.inf, dtype=q.dtype).scatter_reduce_(0, pairs.rows, q, "amin")
    require_classified(nearest)
    smallest = float(nearest.min())
    weighed = WeightedGradients(_divided(network, smallest ** (1 / network.depth)), data.X, biases)
    allowed = torch.nonzero(q <= smallest * (1 + margin_tolerance))[:, 0]
    q = q[allowed] / smallest
    found = MultiplierSearch(weighed, pairs.take(allowed), kink_tolerance).best(q)
    square, total = sum(weighed.squares), float(found.lam.sum())
    return DeepKKTResidual(
        stationarity=found.misfit.norm / square**0.5,
        complementarity=float(found.lam @ (q[found.chosen] - 1)) / total if total > 0 else 0.0,
        normalised_margin=square ** (-network.depth / 2),
        share_on_margin=float((nearest <= ON_MARGIN * smallest).double().mean()),
        pairs=torch.stack([pairs.rows, pairs.rivals], 1)[allowed[found.chosen]],
        multipliers=found.lam,
        kinks=found.kinks,
        balance=max(abs(each - square / network.depth) for each in weighed.squares) / square,
        norm_gap=abs(square - network.depth * total) / square,
        kink_tolerance=kink_tolerance,
        margin_tolerance=margin_tolerance,
        biases=biases,
    )


def _checked(network: Layered, data: Data, biases: bool) -> Layered:
    """The network in float64."""
    network.check(data.X, data.y)
    require(
        network.homogeneous,
        "the network has biases beyond its first layer; KKT points of ½‖θ‖² are about homogeneous networks",
    )
    for name, numbers in network.arrays.items():
        require(bool(torch.isfinite(numbers).all()), f"{name} of the network holds NaN or infinity")
    largest = float(network.layers[0].parameters[1].abs().max())
    require(biases or largest == 0, f"biases=False, but the first layer has a bias of {largest:g}; it must be zero")
    return network.to(torch.float64)


def _margins(network: Layered, X: Tensor, pairs: Pairs) -> Tensor:
    """Own logit minus the rival's, of every pair."""
    logits = network.logits(X).reshape(len(X), network.classes)
    return (logits[pairs.rows] * pairs.weights).sum(1)


def _divided(network: Layered, number: float) -> Layered:
    """Every parameter divided by a number."""
    parts = [layer.with_parameters(*(each / number for each in layer.parameters)) for layer in network.layers]
    return network.with_layers(parts)
