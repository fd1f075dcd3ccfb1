"""The pricing problem of one sign: which unit neuron gains most at the multipliers λ?

A neuron that is active on the own examples of a pattern σ gains at most ℓ(σ) = min over 0 ≤ t ≤ λ of
‖Σ σ_i λ_i x̃_i - Σ t_j x̃_j‖, and the largest ℓ over all patterns is attained.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brittle.margin.any_width.proof import Array

NEGLIGIBLE = 1e-10  # a multiplier below this share of the largest one is zero
STEPS = 60  # of the box program, at most
RIDGE = 1e-12


class Answer(NamedTuple):
    """ℓ² of a pattern, the t (others,) that attains it, and z = u·x̃ on own and other examples of the neuron there."""

    square: float
    t: Array
    z: Array


@dataclass(frozen=True, eq=False)
class Side:
    """sign: of the neurons; own (k,), others: examples of either class with λ > 0; K, lam: of both, own ones first."""

    sign: int
    own: NDArray[np.intp]
    others: NDArray[np.intp]
    K: Array
    lam: Array

    @property
    def k(self) -> int:
        """How many own examples there are."""
        return len(self.own)

    def length(self, pattern: Array, t: Array | None = None) -> Answer:
        """ℓ² of a pattern (k,) by Newton's method on the free part of the box, from t if it is given."""
        top, square = self.lam[self.k :], self.K[self.k :, self.k :]
        c = np.concatenate([pattern * self.lam[: self.k], np.zeros(len(top))])
        rhs = self.K[self.k :] @ c
        t = top / 2 if t is None else np.clip(t, 0, top)
        for _ in range(STEPS):
            moved = _step(square, rhs, top, t)
            if moved is None:
                break
            t = moved
        c[self.k :] = -t
        z = self.K @ c
        return Answer(float(c @ z), t, z)

    def climb(self, pattern: Array, rounds: int) -> tuple[float, Array]:
        """A pattern, the neuron that it leads to, that neuron's pattern, and so on while the length grows."""
        best, answer = -1.0, self.length(pattern)
        for _ in range(rounds):
            best, shown = answer.square, (answer.z[: self.k] > 0).astype(np.float64)
            if np.array_equal(shown, pattern):
                break
            after = self.length(shown, answer.t)
            if after.square <= best * (1 + 1e-12):
                break
            pattern, answer = shown, after
        return answer.square, pattern


def side_of(K: Array, y: Array, lam: Array, sign: int) -> Side:
    """The pricing problem of a sign among examples with Gram matrix K (n, n), labels y and multipliers λ."""
    own, others = (np.flatnonzero((y == each) & (lam > 0)) for each in (sign, -sign))
    order = np.concatenate([own, others])
    return Side(sign, own, others, np.ascontiguousarray(K[np.ix_(order, order)]), lam[order])


def without_negligible(lam: Array) -> Array:
    """λ with those set to zero that carry nothing."""
    return np.where(lam > NEGLIGIBLE * lam.max(initial=0.0), lam, 0.0)


def _step(K: Array, rhs: Array, top: Array, t: Array) -> Array | None:
    """One projected Newton step of ½tᵀKt - tᵀrhs over 0 ≤ t ≤ top; None at the minimum."""
    gradient = K @ t - rhs
    free = np.flatnonzero(~(((t <= 0) & (gradient >= 0)) | ((t >= top) & (gradient <= 0))))
    if not len(free) or np.abs(gradient[free]).max() < 1e-13:
        return None
    A = K[np.ix_(free, free)]
    A.flat[:: len(free) + 1] += RIDGE
    step, before, length = np.linalg.solve(A, -gradient[free]), t @ (K @ t / 2 - rhs), 1.0
    while length > 1e-6:
        moved = t.copy()
        moved[free] = np.clip(t[free] + length * step, 0, top[free])
        if moved @ (K @ moved / 2 - rhs) < before - 1e-17:
            return moved
        length /= 2
    moved = np.clip(t - gradient / np.abs(K).sum(1).max(), 0, top)
    return moved if moved @ (K @ moved / 2 - rhs) < before - 1e-18 else None
