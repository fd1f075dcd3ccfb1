"""Powers that a double may not hold: infinite instead of an error, since they are only compared."""

import math


def exponential(exponent: float) -> float:
    """e to the exponent."""
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf


def power(base: float, exponent: float) -> float:
    """`base` > 0 to the exponent."""
    return exponential(exponent * math.log(base))
