"""Nearest feasible slopes: rows in an ℓ1 ball, or in the cone of rows whose first entry is at least the others' sum."""

import numpy as np
from numpy.typing import NDArray

from brittle.margin.any_width.proof import Array


def into_balls(V: Array, radius: Array) -> Array:
    """The nearest matrix with Σ_l |V_il| ≤ radius_i."""
    sizes = np.abs(V)
    outside = np.flatnonzero(sizes.sum(1) > radius)
    if not len(outside):
        return V
    V = V.copy()
    V[outside] = np.copysign(
        np.maximum(sizes[outside] - _excess(sizes[outside], radius[outside])[:, None], 0), V[outside]
    )
    return V


def into_cones(V: Array) -> Array:
    """The nearest matrix with V_i0 ≥ Σ_l |V_il|."""
    sizes = np.abs(V[:, 1:])
    outside = np.flatnonzero(sizes.sum(1) > V[:, 0])
    if not len(outside):
        return V
    V = V.copy()
    if V.shape[1] == 1:
        V[outside] = np.maximum(V[outside], 0)
        return V
    rest = np.maximum(sizes[outside] - _shrinkage(sizes[outside], V[outside, 0])[:, None], 0)
    V[outside, 1:] = np.copysign(rest, V[outside, 1:])
    V[outside, 0] = rest.sum(1)
    return V


def _excess(sizes: Array, radius: Array) -> Array:
    """θ with Σ max(size - θ, 0) = radius."""
    falling = -np.sort(-sizes, axis=1)
    sums = falling.cumsum(1) - radius[:, None]
    counts = np.maximum((falling * np.arange(1, sizes.shape[1] + 1) > sums).sum(1), 1)
    return np.asarray(np.maximum(sums[np.arange(len(sizes)), counts - 1] / counts, 0))


def _shrinkage(sizes: Array, first: Array) -> Array:
    """θ with Σ max(size - θ, 0) = first + θ, or so large that nothing is left."""
    falling = -np.sort(-sizes, axis=1)
    sums = falling.cumsum(1) - first[:, None]
    counts: NDArray[np.intp] = (falling * np.arange(2, sizes.shape[1] + 2) > sums).sum(1)
    theta = sums[np.arange(len(sizes)), np.maximum(counts, 1) - 1] / (np.maximum(counts, 1) + 1)
    return np.where(counts > 0, theta, np.inf)
