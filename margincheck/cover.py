"""Does every pattern of signs lie in a leaf?"""

import time

import numpy as np

from margincheck.leaf import Signs
from proofcheck.balls import require


def covered(leaves: Signs, seconds: float) -> None:
    """Refused, unless the leaves (L, n) hold every pattern of signs; 0 in a leaf is any sign. A branch is covered if a
    leaf is all of it, or if both halves are, for an example that every leaf in it has fixed.
    """
    branches = [(leaves, np.zeros(leaves.shape[1], dtype=bool))]
    while branches:
        inside, decided = branches.pop()
        require(time.process_time() < seconds, "the proof is too long")
        require(len(inside), "a pattern of signs lies in no leaf")
        fixed = (inside != 0) & ~decided
        if not fixed.any(axis=1).all():
            continue
        common = np.flatnonzero(fixed.all(axis=0))
        require(len(common), "the leaves are not those of a tree")
        after, column = decided.copy(), inside[:, common[0]]
        after[common[0]] = True
        branches += [(inside[column == sign], after) for sign in (1, -1)]
