"""The pricing problem of one sign: which unit neuron gains most at the multipliers λ?

A neuron that is active on the own examples of a pattern σ gains at most ℓ(σ) = min over 0 ≤ t ≤ λ of
‖Σ σ_i λ_i x̃_i - Σ t_j x̃_j‖, and the largest ℓ over all patterns is attained.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brittle.kkt.any_width.proof import Array

NEGLIGIBLE = 1e-10  # a multiplier below this share of the largest one is zero
STEPS = 60  # of the box program, at most
RIDGE = 1e-12


class Answer(NamedTuple):
    """ℓ² of a pattern, the t (others,) that attains it, and z = u·x̃ on own and other examples of the neuron there."""

    square: float
    t: Array
    z: Array


@dataclass(frozen=True, eq=False)
class SideExamples:
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


def side_of(K: Array, y: Array, lam: Array, sign: int) -> SideExamples:
    """The pricing problem of a sign among examples with Gram matrix K (n, n), labels y and multipliers λ."""
    own, others = (np.flatnonzero((y == each) & (lam > 0)) for each in (sign, -sign))
    order = np.concatenate([own, others])
    return SideExamples(sign, own, others, np.ascontiguousarray(K[np.ix_(order, order)]), lam[order])


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


# Patterns that gain much, found cheaply: many at once, each followed to the pattern of its own best neuron.


ROUNDS, INNER = 25, 30  # of patterns, and steps of the box program in each
NEIGHBOURS = 20  # the best patterns, of which every sign is changed once
MOST = 4000  # neighbours, or single examples, at once


@dataclass(frozen=True, eq=False)
class Gains:
    """Distinct patterns (m, k) with their lengths (m,), which are approximate, the longest first."""

    lengths: Array
    patterns: Array

    def joined(self, other: "Gains") -> "Gains":
        """Both."""
        lengths, patterns = (
            np.concatenate(pair) for pair in ((self.lengths, other.lengths), (self.patterns, other.patterns))
        )
        return _ranked(lengths, patterns)


def cheap_patterns(side: SideExamples, known: Array, count: int, rng: np.random.Generator) -> Gains:
    """From known patterns, those of random neurons, all examples, single ones, and neighbours of the best."""
    first = follow_patterns(side, np.unique(np.concatenate([known, starts(side, count, rng)]), axis=0))
    best = first.patterns[: max(1, min(NEIGHBOURS, MOST // max(1, side.k)))]
    flipped = np.abs(best[:, None] - np.eye(side.k)).reshape(-1, side.k)
    return first.joined(follow_patterns(side, np.unique(flipped, axis=0)))


def starts(side: SideExamples, count: int, rng: np.random.Generator) -> Array:
    """Patterns of random neurons: anywhere in the span, and combinations of examples with the right signs."""
    n, k = len(side.K), side.k
    values, vectors = np.linalg.eigh(side.K)
    anywhere = rng.standard_normal((count // 2, n)) * np.sqrt(np.maximum(values, 0)) @ vectors[:k].T
    loads = rng.random((count - count // 2, n)) * side.lam
    loads[:, k:] *= -1
    loads *= rng.random(loads.shape) < rng.random((len(loads), 1))
    shown = np.concatenate([anywhere, loads @ side.K[:, :k]]) > 0
    return np.concatenate([np.ones((1, k)), np.eye(k), shown.astype(np.float64)])


def follow_patterns(side: SideExamples, patterns: Array) -> Gains:
    """Every pattern to the neuron it leads to, to that neuron's pattern, and so on until it repeats."""
    k, top = side.k, side.lam[side.k :]
    t, lengths, live = np.tile(top / 2, (len(patterns), 1)), np.zeros(len(patterns)), np.arange(len(patterns))
    patterns = patterns.copy()
    rate = 1 / max(1e-300, float(np.linalg.eigvalsh(side.K[k:, k:])[-1])) if len(top) else 1.0
    for _ in range(ROUNDS):
        load = patterns[live] * side.lam[:k]
        t[live] = _box(side.K[k:, k:], load @ side.K[:k, k:], top, t[live], rate)
        c = np.concatenate([load, -t[live]], 1)
        z = c @ side.K
        lengths[live] = np.sqrt(np.maximum(np.einsum("ij,ij->i", c, z), 0))
        shown = (z[:, :k] > 0).astype(np.float64)
        moving = (shown != patterns[live]).any(1)
        patterns[live] = shown
        live = live[moving]
        if not len(live):
            break
    return _ranked(lengths, patterns)


def _box(K: Array, rhs: Array, top: Array, t: Array, rate: float) -> Array:
    """½tKt - t·rhs over 0 ≤ t ≤ top, row by row, by accelerated projected gradients."""
    ahead, momentum = t, 1.0
    for _ in range(INNER if len(top) else 0):
        moved = np.clip(ahead - rate * (ahead @ K - rhs), 0, top)
        after = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = moved + (momentum - 1) / after * (moved - t)
        t, momentum = moved, after
    return t


def _ranked(lengths: Array, patterns: Array) -> Gains:
    distinct, first = np.unique(patterns, axis=0, return_index=True)
    order = lengths[first].argsort()[::-1]
    return Gains(lengths[first][order], distinct[order])
