"""What rounding costs the certificates; the unit roundoff and γ_n are those of `geometry`.

A glossary of the error terms, which have one name in all files. Each is a bound that holds in real arithmetic.

model
    sizes     (k,) at least ‖w_j‖
    slips     (k,) how far a neuron's input in the model may be from that in the network, anywhere in the ball
    rest      (m,) how far w_j·δ may be from its value in the basis of the span, per length of δ
    stretch   how much longer than δ its coordinates ε may be: a basis is orthonormal up to rounding
    lost      (k,) how far an output weight may be off that would have fallen below the floats
    error     how far the network's margin may lie below the model's, anywhere in the ball

dual point
    slip      how far a sum of products may be off: γ_n times the sum of their absolute values
    off       at least ‖p - Ax‖, the residual of a computed solution x of Ax = p
    slant     how far a computed product Av may be off, per length of v
    spread    at least w·A⁻¹w
    σ, ς      A ⪰ σI is proved if A - (σ + ς)I has a Cholesky factor: ς pays for the rounding of A and of the factor
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from brittle.geometry.vectors import ROUNDOFF as ROUNDOFF
from brittle.geometry.vectors import SMALLEST as SMALLEST
from brittle.geometry.vectors import SQUARES as SQUARES
from brittle.geometry.vectors import UNDERFLOW as UNDERFLOW
from brittle.geometry.vectors import gamma as gamma

Array = NDArray[np.float64]
Exponents = NDArray[np.int64]

ABSENT = -(2**30)  # the exponent of 0
FARTHEST = 4000  # a shift by more leaves the floats, whatever is shifted


def exponents(values: Array) -> Exponents:
    """e with |value| < 2^e ≤ 2|value|."""
    return np.where(values == 0, ABSENT, np.frexp(values)[1]).astype(np.int64)


def shift_exponent(values: Array, by: Exponents | int) -> Array:
    """values·2^by, rounded once where it falls below the normal floats and exact elsewhere."""
    by = np.clip(by, -FARTHEST, FARTHEST).astype(np.int32)
    if by.size < values.size and by.min() >= -1000 and by.max() <= 1000:
        return np.asarray(values * np.ldexp(1.0, by))  # a product with a power of two is the same, and faster
    return np.asarray(np.ldexp(values, by))


def add_scaled(terms: Array) -> tuple[Array, Exponents]:
    """The sums of the columns of one or two rows as m·2^e, m rounded once: its sign is that of the real sum."""
    top = exponents(terms).max(0)
    top[top == ABSENT] = 0
    return shift_exponent(terms, -top).sum(0), top


def exact_sum(terms: Sequence[float]) -> tuple[float, int]:
    """Σ terms as m·2^e, m rounded once: its sign is that of the real sum."""
    try:
        return math.frexp(math.fsum(terms))
    except OverflowError:
        return split(sum(map(Fraction, terms), Fraction(0)))


def split(value: Fraction) -> tuple[float, int]:
    """A fraction of any size as m·2^e."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return float(value / Fraction(2) ** exponent), exponent


def row_exponents(W: Array) -> Exponents:
    """Those of the largest entry of every row."""
    return exponents(np.abs(W).max(1))


def near_one(W: Array, by: Exponents | int, b: Array, b_by: Exponents | int = 0) -> tuple[Array, Array, Exponents]:
    """Rows W·2^by and biases b·2^b_by as (W', b')·2^unit, the largest number of each row between ½ and 1."""
    tops = row_exponents(W) + by if isinstance(by, int) else (exponents(W) + by).max(1)
    unit = np.maximum(tops, exponents(b) + b_by)
    unit[unit < ABSENT // 2] = 0
    return shift_exponent(W, by - unit[:, None]), shift_exponent(b, b_by - unit), unit


def length(vector: Array) -> float:
    """‖vector‖ or a little more: its squares may fall below the floats."""
    return float(np.linalg.norm(vector)) + SQUARES


# Cholesky factors without the wrappers' overhead: branch and bound makes many small ones.


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
