"""Independent references for the margin folder: cvxpy on the definitions, and KKT points made by hand."""

import cvxpy as cp
import numpy as np
import torch

from brittle.networks import TwoLayer
from brittle.settings import Data


def stationarity(network, data, *, biases=True, kink_tolerance=1e-6, margin_tolerance=1e-6):
    """min ‖θ - Σ λ_i g_i‖/‖θ‖, written from the definition with one variable per slope."""
    X, y = data.X.numpy(), data.y.numpy()
    W, b, v = network.W.numpy(), network.b.numpy(), network.v.numpy()
    if biases:
        X, W = np.c_[X, np.ones(len(X))], np.c_[W, b]
    q = y * (np.maximum(X @ W.T, 0) @ v)
    W, v, q = W / q.min() ** 0.5, v / q.min() ** 0.5, q / q.min()
    Z = X @ W.T
    kink = np.abs(Z) <= kink_tolerance * np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(W, axis=1))
    lam = cp.Variable(len(y), nonneg=True)
    load = cp.Variable(Z.shape, nonneg=True)
    ones = np.ones(len(v))
    limits = (
        [load <= cp.outer(lam, ones), lam[q > 1 + margin_tolerance] == 0]
        if (q > 1 + margin_tolerance).any()
        else [load <= cp.outer(lam, ones)]
    )
    limits += [cp.multiply(~kink & (Z > 0), load - cp.outer(lam, ones)) == 0, cp.multiply(~kink & (Z <= 0), load) == 0]
    first = W - cp.multiply(v[:, None], cp.multiply(y[:, None], load).T @ X)
    second = v - np.maximum(Z, 0).T @ cp.multiply(lam, y)
    length = cp.norm(cp.hstack([cp.vec(first, order="F"), second]))
    problem = cp.Problem(cp.Minimize(length), limits)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value / (np.square(W).sum() + np.square(v).sum()) ** 0.5


def orthogonal(dim, examples):
    y = torch.ones(examples, dtype=torch.float64)
    y[examples // 2 :] = -1
    return Data(dim**0.5 * torch.eye(dim, dtype=torch.float64)[:examples], y)


def closed_form(dim, examples):
    """SPEC 9: the KKT point with biases on orthogonal data with balanced classes, in two neurons."""
    data = orthogonal(dim, examples)
    share = examples / dim
    bias = share / (2 * (1 + share))
    own, other = (1 - bias) / dim**0.5, -bias / dim**0.5
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    U = torch.zeros(2, dim, dtype=torch.float64)
    U[:, :examples] = torch.where(signs[:, None] == data.y, own, other).double()
    U[:, :examples] = torch.where(signs[:, None] == data.y, torch.tensor(own).double(), torch.tensor(other).double())
    return balanced(U, torch.full((2,), bias, dtype=torch.float64), signs), data


def smaller_norm(dim):
    """vardi2022 5.1, balanced: w_j ∝ x_j, no biases."""
    data = orthogonal(dim, dim)
    return balanced(data.X / dim, torch.zeros(dim, dtype=torch.float64), data.y.clone()), data


def balanced(W, b, v):
    """The same function with |v_j| = ‖(w_j, b_j)‖."""
    ratio = (v.abs() / (W.square().sum(1) + b.square()).sqrt()).sqrt()
    return TwoLayer(W * ratio[:, None], b * ratio, v / ratio)
