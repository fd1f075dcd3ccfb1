"""Independent references for the margin folder: cvxpy on the definitions, and KKT points made by hand."""

import itertools

import cvxpy as cp
import numpy as np
import torch
from scipy.optimize import nnls
from torch import Generator, Tensor

from brittle.data import Data
from brittle.kkt.examples import PatternColumns
from brittle.networks import Affine, Deep, Dense, TorchLinearInit, TwoLayer

Array = np.ndarray


def generator(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)


def unit_margin(network: TwoLayer, data: Data, biases: bool) -> tuple[Array, Array, Array, Array, Array]:
    """X̃, y, W̃, v and q as arrays, scaled to min q = 1."""
    X, y = data.X.numpy(), data.y.numpy()
    W, b, v = network.W.numpy(), network.b.numpy(), network.v.numpy()
    if biases:
        X, W = np.c_[X, np.ones(len(X))], np.c_[W, b]
    q = y * (np.maximum(X @ W.T, 0) @ v)
    return X, y, W / q.min() ** 0.5, v / q.min() ** 0.5, q / q.min()


def kinks_of(X: Array, W: Array, tolerance: float) -> Array:
    sizes = np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(W, axis=1))
    return np.asarray(np.abs(X @ W.T) <= tolerance * sizes)


def stationarity_by_cvxpy(
    network: TwoLayer, data: Data, *, biases: bool = True, kink_tolerance: float = 1e-6, margin_tolerance: float = 1e-6
) -> float:
    """min ‖θ - Σ λ_i g_i‖/‖θ‖, written from the definition with one variable per multiplier and slope."""
    X, y, W, v, q = unit_margin(network, data, biases)
    Z, kink = X @ W.T, kinks_of(X, W, kink_tolerance)
    explained, limits = 0, []
    for i in np.flatnonzero(q <= 1 + margin_tolerance):
        lam, loads = cp.Variable(nonneg=True), cp.Variable((len(v), 1), nonneg=True)
        limits.append(loads <= lam)
        row = y[i] * X[i]
        part = lam * np.outer(v * ((Z[i] > 0) & ~kink[i]), row) + cp.multiply(loads, np.outer(v * kink[i], row))
        explained += cp.hstack([cp.vec(part, order="C"), lam * y[i] * np.maximum(Z[i], 0)])
    theta = np.r_[W.ravel(), v]
    problem = cp.Problem(cp.Minimize(cp.norm(theta - explained)), limits)
    return float(problem.solve(solver=cp.CLARABEL) / np.linalg.norm(theta))


def stationarity_by_vertices(
    network: TwoLayer, data: Data, *, biases: bool = True, kink_tolerance: float = 1e-6, margin_tolerance: float = 1e-6
) -> float:
    """The same to rounding error: slopes in [0, 1] are mixtures of 0 and 1, so every vertex is a column of an NNLS."""
    X, y, W, v, q = unit_margin(network, data, biases)
    Z, kink = X @ W.T, kinks_of(X, W, kink_tolerance)
    columns = []
    for i in np.flatnonzero(q <= 1 + margin_tolerance):
        for choice in itertools.product((0, 1), repeat=int(kink[i].sum())):
            slopes = (Z[i] > 0).astype(float)
            slopes[kink[i]] = choice
            columns.append(y[i] * np.r_[np.outer(v * slopes, X[i]).ravel(), np.maximum(Z[i], 0)])
    theta = np.r_[W.ravel(), v]
    return float(nnls(np.array(columns).T, theta)[1] / np.linalg.norm(theta))


def smallest_norm(examples: Tensor, labels: Tensor, columns: PatternColumns) -> float:
    """min Σ ‖u_g‖ subject to the margins of one convex round, as a cone program in the primal."""
    X, y, patterns, signs = examples.numpy(), labels.numpy(), columns.patterns.numpy(), columns.signs.numpy()
    U = cp.Variable((len(signs), X.shape[1]))
    Z = U @ X.T
    own = signs[:, None] == y
    margins = cp.sum(cp.multiply(patterns * own, Z) - cp.multiply(~own, cp.pos(Z)), axis=0)
    return float(cp.Problem(cp.Minimize(cp.sum(cp.norm(U, axis=1))), [margins >= 1]).solve(solver=cp.CLARABEL))


def orthogonal(dim: int, examples: int) -> Data:
    y = torch.ones(examples, dtype=torch.float64)
    y[examples // 2 :] = -1
    return Data(dim**0.5 * torch.eye(dim, dtype=torch.float64)[:examples], y)


def closed_form(dim: int, examples: int) -> tuple[TwoLayer, Data]:
    """The KKT point with biases on orthogonal data with balanced classes: two neurons, and no solver."""
    data = orthogonal(dim, examples)
    share = examples / dim
    bias = share / (2 * (1 + share))
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    same = (signs[:, None] == data.y).double()
    U = torch.zeros(2, dim, dtype=torch.float64)
    U[:, :examples] = (same * (1 - bias) - (1 - same) * bias) / dim**0.5
    return balanced(U, torch.full_like(signs, bias), signs), data


def smaller_norm(dim: int) -> tuple[TwoLayer, Data]:
    """vardi2022 5.1, balanced: w_j ∝ x_j, no biases."""
    data = orthogonal(dim, dim)
    return balanced(data.X / dim, torch.zeros(dim, dtype=torch.float64), data.y.clone()), data


def balanced(W: Tensor, b: Tensor, v: Tensor) -> TwoLayer:
    """The same function with |v_j| = ‖(w_j, b_j)‖."""
    ratio = (v.abs() / (W.square().sum(1) + b.square()).sqrt()).sqrt()
    return TwoLayer(W * ratio[:, None], b * ratio, v / ratio)


def gaussian(examples: int, dim: int, seed: int) -> Data:
    """Gaussian examples with random labels, both of which occur."""
    rng = generator(seed)
    X = torch.randn(examples, dim, generator=rng, dtype=torch.float64)
    y = torch.randint(0, 2, (examples,), generator=rng).double() * 2 - 1
    y[:2] = torch.tensor([1.0, -1.0])
    return Data(X, y)


def fitted(data: Data, width: int, seed: int) -> TwoLayer:
    """A random first layer with the output weights of least norm that give margins between 1 and 1.5."""
    network = TorchLinearInit().draw(data.columns, width, generator(seed))
    goals = data.y * (1 + 0.5 * torch.rand(len(data), generator=generator(seed + 1), dtype=torch.float64).round())
    v = torch.linalg.lstsq(network.preactivations(data.X).relu(), goals[:, None], driver="gelsd").solution[:, 0]
    return TwoLayer(network.W, network.b, v)


def chains(dim: int, depth: int) -> tuple[Deep, Data]:
    """One chain of neurons for each class on orthogonal examples: a KKT point without biases, kinks in every layer."""
    X = torch.eye(dim, dtype=torch.float64) * dim**0.5
    y = torch.where(torch.arange(dim) % 2 == 0, 1.0, -1.0).double()
    length = (2 / dim) ** 0.5 * dim**0.5  # ‖w‖ = 1 and w·x = √d √(2/d) for the own class
    first = torch.stack([(y == sign).double() * (2 / dim) ** 0.5 for sign in (1, -1)])
    scale = length ** (-1 / depth)
    maps: list[Affine] = [Dense(first * scale, torch.zeros(2).double())]
    maps += [Dense(torch.eye(2).double() * scale, torch.zeros(2).double()) for _ in range(depth - 2)]
    maps.append(Dense(torch.tensor([[1.0, -1.0]]).double() * scale, torch.zeros(1).double()))
    return Deep(tuple(maps)), Data(X, y)
