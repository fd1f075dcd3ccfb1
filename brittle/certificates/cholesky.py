"""Cholesky factors without the wrappers' overhead: branch and bound makes many small ones."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from brittle.certificates.scales import Array


class Factor(NamedTuple):
    """A = LLᵀ; the upper triangle of L is not read."""

    L: Array

    def solve(self, rhs: Array) -> Array:
        """A⁻¹ times `rhs`, (r,) or (r, s)."""
        if len(self.L) == 0:
            return np.zeros_like(rhs)
        return np.asarray(dpotrs(self.L, rhs, lower=1)[0])

    def whiten(self, rows: Array) -> Array:
        """L⁻¹ times the transposed rows: the products of its columns are those of the rows in A⁻¹."""
        return np.asarray(dtrtrs(self.L, rows.T, lower=1)[0])


def factor(A: Array) -> Factor | None:
    """The Cholesky factor of A, or None if A is not positive definite."""
    L, info = dpotrf(A.T, lower=1, clean=0)  # symmetric: the transpose is in the order that LAPACK reads
    finite = info == 0 and math.isfinite(L.trace())  # LAPACK's word alone is not enough: NaN may pass for positive
    return Factor(L) if finite else None


def gram(W: Array, weights: Array) -> Array:
    """Σ_j weights_j w_j w_jᵀ for weights ≥ 0."""
    scaled = W * np.sqrt(weights)[:, None]
    return np.asarray(scaled.T @ scaled)  # one array times itself: half the work of a general product


def remainder(W: Array, weights: Array) -> Array:
    """I - Σ_j weights_j w_j w_jᵀ for weights ≥ 0."""
    A = -gram(W, weights)
    A.flat[:: len(A) + 1] += 1
    return A
