"""How far is a network from a KKT point of min ½‖θ‖² subject to y_i N(x_i) ≥ 1?"""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.common.errors import require
from brittle.common.result import Result
from brittle.margin.polish import polish
from brittle.margin.quadratic import Quadratic
from brittle.margin.stationarity import Stationarity
from brittle.networks import TwoLayer
from brittle.settings import Data

ON_MARGIN = 1.1  # vardi2022 section 6: an example is on the margin if q ≤ 1.1 min q


@dataclass(frozen=True, eq=False)
class KKTResidual(Result):
    """How nearly the KKT conditions hold, measured after the network was scaled to min q = 1.

    multipliers (n,), zero outside on_margin (n,); kinks (K, 2) pairs (example, neuron); slopes (K,), σ' there.
    Every number is what these multipliers and slopes attain, never what a solver claims.
    """

    stationarity: float  # ε = ‖θ - Σ λ_i g_i‖ / ‖θ‖
    complementarity: float  # δ = Σ λ_i (q_i - 1) / Σ λ_i
    normalised_margin: float  # γ = min q / ‖θ‖²
    share_on_margin: float  # of the examples: q ≤ 1.1 min q
    multipliers: Tensor
    on_margin: Tensor
    kinks: Tensor
    slopes: Tensor
    balance: float  # max_j ||v_j| - ‖(w_j, b_j)‖| / ‖θ‖, zero at a KKT point
    norm_gap: float  # |‖θ‖² - 2 Σ λ_i| / ‖θ‖², zero at a KKT point
    kink_tolerance: float
    margin_tolerance: float
    biases: bool


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
    """
    X, W, v = homogeneous(network, data, biases)
    q = data.y * ((X @ W.T).relu_() @ v)
    require_classified(q)
    scale = q.min().sqrt()
    W, v, q = W / scale, v / scale, q / q.min()
    square = float(W.square().sum() + v.square().sum())
    on_margin = q <= 1 + margin_tolerance
    problem = stationarity_problem(X[on_margin], data.y[on_margin], W, v, kink_tolerance)
    lam, s = _explain(problem, square)
    rows = problem.kinks[:, 0]
    multipliers = torch.zeros_like(q)
    multipliers[on_margin] = lam
    kinks = problem.kinks.clone()
    kinks[:, 0] = torch.nonzero(on_margin)[:, 0][rows]
    return KKTResidual(
        stationarity=problem.gap(lam, s)[0] / square**0.5,
        complementarity=float(multipliers @ (q - 1) / lam.sum()) if float(lam.sum()) > 0 else 0.0,
        normalised_margin=1 / square,
        share_on_margin=float((q <= ON_MARGIN).double().mean()),
        multipliers=multipliers,
        on_margin=on_margin,
        kinks=kinks,
        slopes=torch.where(lam[rows] > 0, s / lam[rows].clamp(min=1e-300), 0.0),
        balance=float((v.abs() - W.norm(dim=1)).abs().max()) / square**0.5,
        norm_gap=abs(square - 2 * float(lam.sum())) / square,
        kink_tolerance=kink_tolerance,
        margin_tolerance=margin_tolerance,
        biases=biases,
    )


def homogeneous(network: TwoLayer, data: Data, biases: bool) -> tuple[Tensor, Tensor, Tensor]:
    """X̃ (n, d or d+1), W̃ (m, same) and v (m,): the network as N(x) = Σ v_j φ(w̃_j·x̃), checked."""
    data.require_binary()
    network.check(data.X, data.y)
    require(network.homogeneous, f"the network has the output bias {float(network.c):g}; KKT points are about c = 0")
    for name in ("W", "b", "v"):
        require(bool(torch.isfinite(getattr(network, name)).all()), f"{name} of the network holds NaN or infinity")
    network = network.to(torch.float64)
    if not biases:
        largest = float(network.b.abs().max())
        require(largest == 0, f"biases=False, but the network has a bias of {largest:g}; b must be zero")
        return data.X, network.W, network.v
    ones = torch.ones(len(data), 1, dtype=torch.float64)
    return torch.cat([data.X, ones], 1), torch.cat([network.W, network.b[:, None]], 1), network.v


def require_classified(q: Tensor) -> None:
    wrong = int((q <= 0).sum())
    require(
        wrong == 0,
        f"the network misclassifies {wrong} of {len(q)} examples (smallest margin {float(q.min()):.3g}); "
        "a KKT point needs every margin positive: train it further",
    )


def stationarity_problem(X: Tensor, y: Tensor, W: Tensor, v: Tensor, kink_tolerance: float) -> Stationarity:
    Z = X @ W.T
    close = Z.abs() <= kink_tolerance * X.norm(dim=1)[:, None] * W.norm(dim=1)
    close &= (v != 0) & (W != 0).any(1)  # the slopes of a neuron that is zero change nothing
    problem = Stationarity(X, y, W, v, Z, (Z > 0) & ~close, torch.zeros(0, 2, dtype=torch.long))
    kinks = torch.nonzero(close)
    kinks = kinks[problem.order(kinks)]
    return Stationarity(X, y, W, v, Z, problem.active, kinks)


def _explain(problem: Stationarity, square: float) -> tuple[Tensor, Tensor]:
    """The multipliers λ and s = λσ' that explain θ best; `square` is ‖θ‖²."""
    typical = square / (2 * len(problem.y))
    minimum = Quadratic(problem.arrow(), problem.right_side()).minimise(typical, tolerance=1e-13 * square)
    lam, s, _ = minimum.values
    s = torch.minimum(s, lam[problem.kinks[:, 0]])
    if minimum.gap <= 1e-9 * problem.gap(lam, s)[0] ** 2:
        return lam, s
    return polish(problem, lam, s, square**0.5)
