"""The largest gain of a unit neuron at given multipliers, by brute force over the patterns of its own class."""

import itertools

import numpy as np
from scipy.optimize import lsq_linear

from brittle.data import Data

Array = np.ndarray


def featured(data: Data, biases: bool) -> Array:
    X = data.X.numpy()
    return np.c_[X, np.ones(len(X))] if biases else X


def pattern_gain(X: Array, y: Array, lam: Array, side: float, pattern: Array) -> float:
    """min over 0 ≤ t ≤ λ of ‖Σ pattern λ x̃ - Σ t x̃‖: what a neuron that is active on these own examples gains."""
    own, other = y == side, (y == -side) & (lam > 0)
    load = (pattern * lam)[own] @ X[own]
    if not other.any():
        return float(np.linalg.norm(load))
    best = lsq_linear(X[other].T, load, (0, lam[other]), tol=1e-14)
    return float(np.linalg.norm(load - X[other].T @ best.x))


def largest_gain(X: Array, y: Array, lam: Array) -> float:
    gains = [0.0]
    for side in (1.0, -1.0):
        own = np.flatnonzero((y == side) & (lam > 0))
        for active in itertools.product((0.0, 1.0), repeat=len(own)):
            pattern = np.zeros(len(y))
            pattern[own] = active
            gains.append(pattern_gain(X, y, lam, side, pattern))
    return max(gains)
