"""How far is a network from a KKT point of min ½‖θ‖² subject to y_i N(x_i) ≥ 1?"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.common.errors import require
from brittle.common.kinds import kinds_checked
from brittle.common.result import Result
from brittle.margin.arrow import ArrowVector
from brittle.margin.neurons import Weights
from brittle.margin.polish import Polish
from brittle.margin.quadratic import Quadratic
from brittle.margin.stationarity import Stationarity, stationarity_problem
from brittle.networks import TwoLayer
from brittle.settings import Data

ON_MARGIN = 1.1  # vardi2022 section 6: an example is on the margin if q ≤ 1.1 min q


@dataclass(frozen=True, eq=False)
class KKTResidual(Result):
    """How nearly the KKT conditions hold, measured after the network was scaled to min q = 1.

    Every number is what the multipliers and slopes given here attain, never what a solver claims.

    stationarity: ε = ‖θ - Σ λ_i g_i‖ / ‖θ‖
    complementarity: δ = Σ λ_i (q_i - 1) / Σ λ_i
    normalised_margin: γ = min q / ‖θ‖²
    share_on_margin: of the examples, those with q ≤ 1.1 min q
    multipliers (n,): λ, zero outside on_margin
    on_margin (n,): the examples that may carry a multiplier
    kinks (K, 2): pairs (example, neuron) whose slope is free
    slopes (K,): σ' there
    balance: max_j ||v_j| - ‖(w_j, b_j)‖| / ‖θ‖, zero at a KKT point
    norm_gap: |‖θ‖² - 2 Σ λ_i| / ‖θ‖², zero at a KKT point
    kink_tolerance, margin_tolerance, biases: as they were given

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> found = bt.margin.residual(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> found.share_on_margin, bool((found.multipliers > 0).all())
        (1.0, True)
    """

    stationarity: float
    complementarity: float
    normalised_margin: float
    share_on_margin: float
    multipliers: Tensor
    on_margin: Tensor
    kinks: Tensor
    slopes: Tensor
    balance: float
    norm_gap: float
    kink_tolerance: float
    margin_tolerance: float
    biases: bool


@kinds_checked
def residual(
    network: TwoLayer,
    data: Data,
    *,
    biases: bool = True,
    kink_tolerance: float = 1e-6,
    margin_tolerance: float = 1e-6,
) -> KKTResidual:
    """The distance of a two-layer network that classifies the data from a KKT point.

    An example may carry a multiplier if q ≤ (1 + margin_tolerance) min q, so complementarity never exceeds that
    tolerance; with `inf` stationarity is the smallest over all multipliers, a lower bound. The slope at z_ij is free
    if |z_ij| ≤ kink_tolerance ‖(w_j, b_j)‖ ‖(x_i, 1)‖. Without biases, b is no parameter and must be zero.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> robust = bt.networks.nearly_orthogonal(data.X, data.y).network  # robust, and no KKT point
        >>> bt.margin.residual(robust, data).stationarity > 0.01
        True
    """
    require(margin_tolerance >= 0, f"margin_tolerance is {margin_tolerance!r}; it must be a number of at least 0")
    X, weights = homogeneous(network, data, biases)
    q = weights.margins(X, data.y)
    require_classified(q)
    W, v = weights = weights.divided(float(q.min()) ** 0.5)
    q = q / q.min()
    square = float(W.square().sum() + v.square().sum())
    on_margin = q <= 1 + margin_tolerance
    problem = stationarity_problem(X[on_margin], data.y[on_margin], weights, kink_tolerance)
    lam, s = best = _explain(problem, square)
    rows, neurons = problem.kinks.T
    indices = torch.nonzero(on_margin)[:, 0]
    total = float(lam.sum())
    return KKTResidual(
        stationarity=problem.misfit(best).norm / square**0.5,
        complementarity=float(lam @ (q[on_margin] - 1)) / total if total > 0 else 0.0,
        normalised_margin=1 / square,
        share_on_margin=float((q <= ON_MARGIN).double().mean()),
        multipliers=torch.zeros_like(q).index_copy(0, indices, lam),
        on_margin=on_margin,
        kinks=torch.stack([indices[rows], neurons], 1),
        slopes=torch.where(lam[rows] > 0, s / lam[rows].clamp(min=1e-300), 0.0),
        balance=float((v.abs() - W.norm(dim=1)).abs().max()) / square**0.5,
        norm_gap=abs(square - 2 * total) / square,
        kink_tolerance=kink_tolerance,
        margin_tolerance=margin_tolerance,
        biases=biases,
    )


class Homogeneous(NamedTuple):
    """X (n, d or d+1) rows x̃, and the weights of N(x) = Σ v_j φ(w̃_j·x̃)."""

    X: Tensor
    weights: Weights


def homogeneous(network: TwoLayer, data: Data, biases: bool) -> Homogeneous:
    """The examples and the network without biases of their own, checked."""
    data.require_binary()
    network.check(data.X, data.y)
    require(network.homogeneous, f"the network has the output bias {float(network.c):g}; KKT points are about c = 0")
    for name in ("W", "b", "v"):
        require(bool(torch.isfinite(getattr(network, name)).all()), f"{name} of the network holds NaN or infinity")
    network = network.to(torch.float64)
    if not biases:
        largest = float(network.b.abs().max())
        require(largest == 0, f"biases=False, but the network has a bias of {largest:g}; b must be zero")
        return Homogeneous(data.X, Weights(network.W, network.v))
    ones = torch.ones(len(data), 1, dtype=torch.float64)
    W = torch.cat([network.W, network.b[:, None]], 1)
    return Homogeneous(torch.cat([data.X, ones], 1), Weights(W, network.v))


def require_classified(q: Tensor) -> None:
    """Every margin is positive."""
    wrong = int((q <= 0).sum())
    require(
        wrong == 0,
        f"the network misclassifies {wrong} of {len(q)} examples (smallest margin {float(q.min()):.3g}); "
        "a KKT point needs every margin positive: train it further",
    )


def _explain(problem: Stationarity, square: float) -> ArrowVector:
    """The multipliers λ and s = λσ' that explain θ best; `square` is ‖θ‖²."""
    typical = square / (2 * len(problem.y))
    minimum = Quadratic(problem.arrow(), problem.rhs()).minimise(typical, tolerance=1e-13 * square)
    lam, s, _ = minimum.values
    x = ArrowVector(lam, torch.minimum(s, lam[problem.kinks[:, 0]]))
    if minimum.gap <= 1e-9 * problem.misfit(x).norm ** 2:
        return x
    return Polish(problem, square**0.5).run(x)
