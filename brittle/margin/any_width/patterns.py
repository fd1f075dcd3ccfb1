"""Patterns that gain much, found cheaply: many at once, each followed to the pattern of its own best neuron."""

from dataclasses import dataclass

import numpy as np

from brittle.margin.any_width.proof import Array
from brittle.margin.any_width.side import Side

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


def cheap_patterns(side: Side, known: Array, count: int, rng: np.random.Generator) -> Gains:
    """From known patterns, those of random neurons, all examples, single ones, and neighbours of the best."""
    first = followed(side, np.unique(np.concatenate([known, starts(side, count, rng)]), axis=0))
    best = first.patterns[: max(1, min(NEIGHBOURS, MOST // max(1, side.k)))]
    flipped = np.abs(best[:, None] - np.eye(side.k)).reshape(-1, side.k)
    return first.joined(followed(side, np.unique(flipped, axis=0)))


def starts(side: Side, count: int, rng: np.random.Generator) -> Array:
    """Patterns of random neurons: anywhere in the span, and combinations of examples with the right signs."""
    n, k = len(side.K), side.k
    values, vectors = np.linalg.eigh(side.K)
    anywhere = rng.standard_normal((count // 2, n)) * np.sqrt(np.maximum(values, 0)) @ vectors[:k].T
    loads = rng.random((count - count // 2, n)) * side.lam
    loads[:, k:] *= -1
    loads *= rng.random(loads.shape) < rng.random((len(loads), 1))
    shown = np.concatenate([anywhere, loads @ side.K[:, :k]]) > 0
    return np.concatenate([np.ones((1, k)), np.eye(k), shown.astype(np.float64)])


def followed(side: Side, patterns: Array) -> Gains:
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
