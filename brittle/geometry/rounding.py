"""Rounding errors of floating point: the unit roundoff, γ_n, and what is lost below the floats."""

ROUNDOFF = 2.0**-53  # u: a result of +, -, ·, / or √ is within this share of the real one
SMALLEST = 2.0**-1074  # the least float above 0: no result loses more than half of it below the normal ones
SQUARES = 1e-150  # a length is at most its float, up to rounding, plus this: smaller squares may be lost
UNDERFLOW = 1e-290  # more than any sum of products near 1 can lose below the smallest normal float


def gamma(count: int) -> float:
    """Twice γ_n = nu/(1 - nu): the second factor pays for computing an error bound in floating point."""
    return 2 * count * ROUNDOFF / (1 - count * ROUNDOFF)
