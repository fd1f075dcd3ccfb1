"""Cholesky factors without the wrappers' overhead: branch and bound makes many small ones."""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from brittle.certificates.scales import Array


def factor(A: Array) -> Array | None:
    """The lower Cholesky factor of A (its upper triangle is left as it was), or None if A is not positive definite."""
    L, info = dpotrf(A.T, lower=1, clean=0)  # symmetric: the transpose is in the order that LAPACK reads
    return L if info == 0 else None


def solve(L: Array, right: Array) -> Array:
    """A⁻¹ times `right`, (r,) or (r, s), for A = LLᵀ."""
    if len(L) == 0:
        return np.zeros_like(right)
    return np.asarray(dpotrs(L, right, lower=1)[0])


def whiten(L: Array, rows: Array) -> Array:
    """L⁻¹ times the transposed rows: the products of its columns are those of the rows in A⁻¹."""
    return np.asarray(dtrtrs(L, rows.T, lower=1)[0])


def gram(W: Array, weights: Array) -> Array:
    """Σ_j weights_j w_j w_jᵀ for weights ≥ 0."""
    scaled = W * np.sqrt(weights)[:, None]
    return np.asarray(scaled.T @ scaled)  # one array times itself: half the work of a general product


def remainder(W: Array, weights: Array) -> Array:
    """I - Σ_j weights_j w_j w_jᵀ for weights ≥ 0."""
    A = -gram(W, weights)
    A.flat[:: len(A) + 1] += 1
    return A
