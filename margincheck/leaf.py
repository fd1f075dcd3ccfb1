"""How much a neuron can gain. Let θ be the weights of a two-layer network N(x) = Σ_j v_j φ(w_j·x + b_j), q its margins
q_i = y_i N(x_i), x̃ = (x, 1) (or x̃ = x and b = 0, where networks without biases compete) and γ* the largest of all
min q/‖θ‖², over every width. With u_j = |v_j|(w_j, b_j), ‖θ‖² ≥ 2 Σ‖u_j‖. So for λ ≥ 0 a network with q ≥ 1 has

    Σλ ≤ Σ_i λ_i q_i = Σ_j sign(v_j) Σ_i λ_i y_i φ(u_j·x̃_i) ≤ Σ‖u_j‖ G ≤ ½‖θ‖² G,   hence   γ* ≤ G/(2Σλ),

where G is the largest gain s Σ_i λ_i y_i φ(u·x̃_i) of ‖u‖ = 1, s = ±1. Fix s, and call examples with y = s own, those
with y = -s others; λ = 0 counts nowhere. Let σ_i = 1 on own examples with u·x̃_i ≥ 0, and -1 on the rest of them. If

    c ≥ λ where σ = 1,   c ≤ 0 where σ = -1,   -λ ≤ c ≤ 0 on others,

every term is at most c_i u·x̃_i, and the gain at most ‖Σ c_i x̃_i‖. A *point* has fixed some σ; c is affine in the free
ones, Σ c_i x̃_i = [p, B](1, σ). If diag(τ, y) - [p, B]ᵀ[p, B] ≻ 0, its square is below τ + Σy for all σ at once.
"""

from collections.abc import Iterator
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proofcheck.balls import Array, Ball, ball, definite, joined, require

Signs = NDArray[np.int8]
LEAST = 1e-11  # the least eigenvalue that is asked for, where the diagonal is about 1


class Point(NamedTuple):
    """s, σ of all examples (0: free, or not own), and y and C for the f free ones, in ascending order: c = C (1, σ) for
    the others, in ascending order, and then for the own examples that are fixed. A free one has c = (1 + σ)λ/2.
    """

    side: int
    signs: Signs
    y: Array
    C: Array


class Examples(NamedTuple):
    """x̃, the labels and λ."""

    X: Array
    labels: Array
    lam: Array

    def own(self, side: int) -> NDArray[np.bool_]:
        return np.asarray((self.labels == side) & (self.lam > 0))

    def columns(self, point: Point) -> Ball:
        """[p, B] of a point whose multipliers are where they must be."""
        own = self.own(point.side)
        free, fixed = np.flatnonzero(own & (point.signs == 0)), np.flatnonzero(own & (point.signs != 0))
        rest = np.concatenate([np.flatnonzero(self.own(-point.side)), fixed])
        require(feasible(point.C, self.lam[rest], point.signs[rest]), "a multiplier is not where it must be")
        halves = self.lam[free] / 2
        C = np.vstack([np.column_stack([halves, np.diag(halves)]), point.C])
        return ball(self.X[np.concatenate([free, rest])].T) @ C

    def free(self, point: Point) -> NDArray[np.intp]:
        return np.flatnonzero(self.own(point.side) & (point.signs == 0))


def feasible(C: Array, lam: Array, signs: Signs) -> bool:
    """Whether c = C (1, σ) is where it must be for every σ; signs are 0 for others. The sign of an `fsum` is exact."""

    def ends() -> Iterator[bool]:
        for first, slopes, size, sign in zip(C[:, 0], np.abs(C[:, 1:]), lam, signs, strict=True):
            least = size if sign == 1 else -size
            yield sign == -1 or fsum([first, -least, *(-slopes).tolist()]) >= 0
            yield sign == 1 or fsum([first, *slopes.tolist()]) <= 0

    return all(ends())


def bound(columns: Ball, y: Array, signs: Signs, ceiling: float) -> None:
    """Refused, unless the square is below the ceiling for all σ that have these signs of the free examples (0: any)."""
    open_ = np.flatnonzero(signs == 0)
    p = columns @ np.append(1.0, signs)
    V = joined([p[None], columns.T[1 + open_]])
    diagonal = joined([(ball(ceiling) - ball(y[open_]) @ np.ones(len(open_)))[None], ball(y[open_])])
    definite(Ball(np.diag(diagonal.mid), np.diag(diagonal.rad)) - V @ V.T, LEAST)
