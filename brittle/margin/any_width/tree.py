"""Branch and bound over the signs that a neuron shows on its own class: does any pattern gain more than a threshold?"""

import heapq
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brittle.margin.any_width.descent import BRANCH, ROOT, Descent, Effort, Exclusion, Outcome
from brittle.margin.any_width.proof import Array, Signs
from brittle.margin.any_width.relaxation import Relaxation
from brittle.margin.any_width.side import Side

CLIMB = 4  # patterns in a row from each open node's own
AFTER, AFTER_SHARE = 15, 0.2  # nodes still looked at when a pattern gains enough: at least, and of those before it


class Source(NamedTuple):
    """Slopes V and curvatures y of the node with these signs (k,), whose own rows of V are in the order of `fixed`."""

    signs: Signs
    fixed: NDArray[np.intp]
    V: Array
    y: Array

    def folded(self, signs: Signs) -> "Source":
        """The same multipliers where more signs are fixed: their columns join the first one."""
        free = np.flatnonzero(self.signs == 0)
        new = signs[free] != 0
        V = np.concatenate([self.V[:, :1], self.V[:, 1:][:, ~new]], 1)
        V[:, 0] += self.V[:, 1:][:, new] @ signs[free[new]].astype(np.float64)
        V = np.concatenate([V, np.zeros((int(new.sum()), V.shape[1]))])
        return Source(signs, np.concatenate([self.fixed, free[new]]), V, self.y[~new])

    @property
    def bytes(self) -> int:
        """What it takes to remember."""
        return int(self.V.nbytes + self.y.nbytes + self.signs.nbytes)


class Leaf(NamedTuple):
    """Patterns with these signs, whose squared gain is at most `bound` by the source's multipliers."""

    source: Source
    signs: Signs
    bound: float


@dataclass
class Tree:
    """What is known of one side: closed leaves below the threshold, open ones above, and patterns that gain more.

    stuck: leaves that nothing more can be done about; root: the bound before any branch; nodes: programs solved;
    size: bytes of all that is remembered
    """

    side: Side
    threshold: float
    closed: list[Leaf]
    open: list[tuple[float, int, Leaf]]
    stuck: list[Leaf]
    gains: dict[bytes, float]
    nodes: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        self._order = itertools.count(len(self.open))
        self._tried, self._sources = set[bytes](), set[int]()
        self._last: float = np.inf

    @classmethod
    def of(cls, side: Side, threshold: float, leaves: tuple[Leaf, ...] = ()) -> "Tree":
        """Before any work, or with the leaves that earlier work left at the same multipliers."""
        known = leaves or (_root(side),)
        tree = cls(side, threshold, [leaf for leaf in known if leaf.bound <= threshold], [], [], {})
        for leaf in known:
            if leaf.bound > threshold:
                tree._push(leaf)
        return tree

    @property
    def bound(self) -> float:
        """No pattern of this side has a larger squared gain."""
        return max([self.threshold, *(leaf.bound for leaf in self.stuck), *(-key for key, _, _ in self.open[:1])])

    @property
    def left(self) -> bool:
        """Whether a node is open."""
        return bool(self.open)

    def leaves(self) -> Iterator[Leaf]:
        """All of them: they split the patterns between them."""
        return itertools.chain(self.closed, self.stuck, (leaf for _, _, leaf in self.open))

    def patterns(self) -> list[Array]:
        """Those that gain more than the threshold, the best first."""
        ordered = sorted(self.gains, key=lambda pattern: -self.gains[pattern])
        return [np.frombuffer(each, dtype=np.float64) for each in ordered]

    def run(self, stop: Callable[["Tree"], bool]) -> None:
        """Open nodes, the highest bound first, until none is left, `stop` says so or patterns have been found."""
        while self.open and not stop(self):
            if self.nodes >= self._last:
                break
            self._node(heapq.heappop(self.open)[2])

    def _push(self, leaf: Leaf) -> None:
        heapq.heappush(self.open, (-leaf.bound, next(self._order), leaf))

    def _node(self, leaf: Leaf) -> None:
        """Close a leaf, or split it in two."""
        while True:
            source = leaf.source if np.array_equal(leaf.source.signs, leaf.signs) else leaf.source.folded(leaf.signs)
            outcome = self._solved(source, leaf.bound)
            if outcome is None:
                self.stuck.append(leaf)
                return
            best = Source(source.signs, source.fixed, outcome.best.V, outcome.best.y)
            bound = min(leaf.bound, outcome.best.bound)
            if outcome.best.bound <= leaf.bound:
                leaf = Leaf(best, source.signs, bound)
            if bound <= self.threshold:
                self._close(leaf)
                return
            if not len(outcome.best.v):
                self._decide(leaf)
                return
            self._try(source.signs, outcome.best.v)
            if not outcome.excluded:
                self._branch(leaf, outcome)
                return
            leaf = self._settled(leaf, source, outcome.excluded)

    def _solved(self, source: Source, bound: float) -> Outcome | None:
        effort: Effort = BRANCH if self.nodes else ROOT
        self.nodes += 1
        program = Relaxation(self.side, source.signs, source.fixed)
        return Descent(program, self.threshold, effort).run(source.V, source.y, bound)

    def _close(self, leaf: Leaf) -> None:
        self.closed.append(leaf)
        self._remember(leaf.source)

    def _remember(self, source: Source) -> None:
        if id(source.V) not in self._sources:
            self._sources.add(id(source.V))
            self.size += source.bytes

    def _decide(self, leaf: Leaf) -> None:
        """A single pattern: its length is known exactly."""
        pattern = (leaf.signs > 0).astype(np.float64)
        answer = self.side.length(pattern)
        V = np.zeros_like(leaf.source.V)
        V[: len(answer.t), 0] = answer.t - self.side.lam[self.side.k :] / 2
        if answer.square < leaf.bound:
            leaf = Leaf(leaf.source._replace(V=V), leaf.signs, answer.square)
        if leaf.bound <= self.threshold:
            self._close(leaf)
            return
        self.stuck.append(leaf)
        if answer.square > self.threshold:
            self._found(pattern, answer.square)

    def _try(self, signs: Signs, v: Array) -> None:
        """The node's own guess: where v̂ > 0."""
        pattern = (signs > 0).astype(np.float64)
        pattern[signs == 0] = v > 0
        if pattern.tobytes() in self._tried:
            return
        self._tried.add(pattern.tobytes())
        square, pattern = self.side.climb(pattern, CLIMB)
        if square > self.threshold:
            self._found(pattern, square)

    def _found(self, pattern: Array, square: float) -> None:
        self.gains[pattern.tobytes()] = square
        self._last = min(self._last, self.nodes + max(AFTER, AFTER_SHARE * self.nodes))

    def _settled(self, leaf: Leaf, source: Source, excluded: dict[int, Exclusion]) -> Leaf:
        """Each excluded sign is a leaf of its own, below the threshold; what is left has the other signs."""
        signs = source.signs.copy()
        for example, (sign, by) in excluded.items():
            other = signs.copy()
            other[example] = -sign
            self._close(Leaf(Source(source.signs, source.fixed, by.V, by.y), other, self.threshold))
            signs[example] = sign
        return Leaf(leaf.source, signs, leaf.bound)

    def _branch(self, leaf: Leaf, outcome: Outcome) -> None:
        """On the free example whose sign costs the bound most."""
        free = np.flatnonzero(leaf.signs == 0)
        best = outcome.best
        example = free[(best.y * (1 - np.abs(best.v)) ** 2).argmax()]
        self._remember(leaf.source)
        for sign in (-1, 1):
            signs = leaf.signs.copy()
            signs[example] = sign
            self._push(Leaf(leaf.source, signs, leaf.bound))


def _root(side: Side) -> Leaf:
    """All signs free, no slopes, and curvatures that are large enough by their rows' sums."""
    k, lam = side.k, side.lam[: side.k]
    y = 1.05 * (np.abs(side.K[:k, :k]) @ lam) * lam / 4 + 1e-12
    signs, fixed, V = np.zeros(k, dtype=np.int8), np.zeros(0, dtype=np.intp), np.zeros((len(side.others), k + 1))
    value = Relaxation(side, signs, fixed).at(V, y, 1.0 / max(1, k))
    assert value is not None, "curvatures above the sums of their rows are large enough"
    return Leaf(Source(signs, fixed, V, value.y), signs, value.bound)
