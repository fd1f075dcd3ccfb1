"""Powers of two: numbers of any size, their sums and their lengths, without leaving the range of floats."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Exponents = NDArray[np.int64]

ABSENT = -(2**30)  # the exponent of 0
FARTHEST = 4000  # a shift by more leaves the floats, whatever is shifted


def exponents(values: Array) -> Exponents:
    """e with |value| < 2^e ≤ 2|value|."""
    return np.where(values == 0, ABSENT, np.frexp(values)[1]).astype(np.int64)


def shifted(values: Array, by: Exponents | int) -> Array:
    """values·2^by, rounded once where it falls below the normal floats and exact elsewhere."""
    by = np.clip(by, -FARTHEST, FARTHEST).astype(np.int32)
    if by.size < values.size and by.min() >= -1000 and by.max() <= 1000:
        return np.asarray(values * np.ldexp(1.0, by))  # a product with a power of two is the same, and faster
    return np.asarray(np.ldexp(values, by))


def added(terms: Array) -> tuple[Array, Exponents]:
    """The sums of the columns of one or two rows as m·2^e, m rounded once: its sign is that of the real sum."""
    top = exponents(terms).max(0)
    top[top == ABSENT] = 0
    return shifted(terms, -top).sum(0), top


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
    return shifted(W, by - unit[:, None]), shifted(b, b_by - unit), unit
