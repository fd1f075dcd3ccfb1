"""Do leaves split all sign patterns between them? Counted in fractions, and pair by pair."""

from collections import Counter
from fractions import Fraction

import numpy as np

from brittle.margin.any_width.proof import Signs

AT_ONCE = 20_000_000  # pairs of leaves that are compared together


def covered(signs: Signs) -> Fraction:
    """Σ 2^-depth: which share of all patterns leaves (L, k) hold, if no two of them share one."""
    depths = Counter(np.count_nonzero(signs, axis=1).tolist())
    return sum((Fraction(count, 2**depth) for depth, count in depths.items()), Fraction(0))


def overlap(signs: Signs) -> tuple[int, int] | None:
    """Two leaves with a pattern in common: no example has + in one and - in the other."""
    plus, minus = (signs == 1).astype(np.float32), (signs == -1).astype(np.float32)
    count = max(1, AT_ONCE // max(1, len(signs)))
    for begin in range(0, len(signs), count):
        part = slice(begin, begin + count)
        clashes = plus[part] @ minus.T + minus[part] @ plus.T
        rows = np.arange(len(clashes))
        clashes[rows, begin + rows] = 1  # a leaf is not compared with itself
        if not clashes.all():
            row, column = np.argwhere(clashes == 0)[0]
            return begin + int(row), int(column)
    return None
