"""Branch and bound over the signs that a neuron shows on its own class: does any pattern gain more than a threshold?"""

import heapq
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brittle.kkt.any_width.proof import Array, Signs
from brittle.kkt.any_width.relaxation import NodeRelaxation, RelaxationValue
from brittle.kkt.any_width.side import SideExamples

MEMORY = 3  # potentials of so many steps back may be exceeded
SHORTEST, LONGEST = 1e-8, 1e4  # step lengths
WINDOW = 6  # steps over which progress is measured
DECREASE = 1e-4


@dataclass(frozen=True)
class Effort:
    """How hard a node is tried: so many steps at each of so many barriers, from the barrier first·(D - θ)/f on.

    progress: a stage ends where the bound falls by less than this share of what is missing in a few steps
    """

    steps: int
    stages: int
    first: float
    progress: float


ROOT = Effort(steps=150, stages=5, first=1.0, progress=2e-3)
BRANCH = Effort(steps=4, stages=3, first=0.3, progress=0.05)


class Exclusion(NamedTuple):
    """Patterns with the other sign of an own example lie below the threshold, by this value."""

    sign: int
    by: RelaxationValue


class DescentOutcome(NamedTuple):
    """The value of lowest bound, and for own examples by their number the sign that is left to them."""

    best: RelaxationValue
    excluded: dict[int, Exclusion]


class NodeDescent:
    """One node under way; it closes as soon as its bound is at most the threshold."""

    def __init__(self, program: NodeRelaxation, threshold: float, effort: Effort) -> None:
        self.program, self.threshold, self.effort = program, threshold, effort
        self.best: RelaxationValue | None = None
        self.excluded: dict[int, Exclusion] = {}

    def run(self, V: Array, y: Array, bound: float) -> DescentOutcome | None:
        """From slopes and curvatures whose bound is known (inf if not); None if numbers are out of reach."""
        V, count = self.program.feasible(V), max(1, len(self.program.free))
        nu = self.effort.first * min(max(bound - self.threshold, 1e-6), 0.3) / count
        for _ in range(self.effort.stages):
            value = self._note(self.program.at(V, y, nu))
            if value is None:
                break
            value = self._stage(value, nu)
            V, y = value.V, value.y
            missing = self._missing
            if missing <= 0 or missing > 1.2 * nu * count * (1 if self.effort is BRANCH else 50):
                break
            nu = min(0.2 * nu, 0.3 * missing / count)
            if nu * count < 1e-10:
                break
        return None if self.best is None else DescentOutcome(self.best, self.excluded)

    @property
    def _missing(self) -> float:
        return np.inf if self.best is None else self.best.bound - self.threshold

    def _note(self, value: RelaxationValue | None) -> RelaxationValue | None:
        """Remember the lowest bound and every sign that is excluded."""
        if value is None:
            return None
        if self.best is None or value.bound < self.best.bound:
            self.best = value
        settled = value.excluded(self.threshold)
        for place in np.flatnonzero(settled):
            self.excluded.setdefault(int(self.program.free[place]), Exclusion(int(settled[place]), value))
        return value

    def _stage(self, value: RelaxationValue, nu: float) -> RelaxationValue:
        """Steps at one barrier."""
        size = float(np.abs(value.V).max(initial=0.0)) + 1e-3
        rate = 0.5 * size / max(1e-9, float(np.abs(value.gradient).max(initial=0.0)))
        recent, bounds = [value.potential], [value.bound]
        for _ in range(self.effort.steps):
            if self._missing <= 0:
                break
            after = self._step(value, rate, max(recent[-MEMORY:]), nu)
            if after is None:
                break
            moved, turned = after.V - value.V, after.gradient - value.gradient
            curvature = float((moved * turned).sum())
            rate = min(LONGEST, max(SHORTEST, float((moved * moved).sum()) / curvature)) if curvature > 0 else LONGEST
            value = after
            recent.append(value.potential)
            bounds.append(value.bound)
            if len(bounds) > WINDOW:
                fallen = min(bounds[: -WINDOW + 1]) - min(bounds)
                if fallen < self.effort.progress * max(self._missing, 1e-9):
                    break
        return value

    def _step(self, value: RelaxationValue, rate: float, level: float, nu: float) -> RelaxationValue | None:
        """Along the projected gradient, shorter until the potential is low enough."""
        way = self.program.feasible(value.V - rate * value.gradient) - value.V
        slope = float((way * value.gradient).sum())
        if slope > -1e-15:
            return None
        length = 1.0
        while length > 1e-4:
            after = self._note(self.program.at(value.V + length * way, value.y, nu))
            if after is not None and after.potential <= level + DECREASE * length * slope:
                return after
            length *= 0.3
        return None


CLIMB = 4  # patterns in a row from each open node's own
AFTER, AFTER_SHARE = 15, 0.2  # nodes still looked at when a pattern gains enough: at least, and of those before it


class BoundSource(NamedTuple):
    """Slopes V and curvatures y of the node with these signs (k,), whose own rows of V are in the order of `fixed`."""

    signs: Signs
    fixed: NDArray[np.intp]
    V: Array
    y: Array

    def folded(self, signs: Signs) -> "BoundSource":
        """The same multipliers where more signs are fixed: their columns join the first one."""
        free = np.flatnonzero(self.signs == 0)
        new = signs[free] != 0
        V = np.concatenate([self.V[:, :1], self.V[:, 1:][:, ~new]], 1)
        V[:, 0] += self.V[:, 1:][:, new] @ signs[free[new]].astype(np.float64)
        V = np.concatenate([V, np.zeros((int(new.sum()), V.shape[1]))])
        return BoundSource(signs, np.concatenate([self.fixed, free[new]]), V, self.y[~new])

    @property
    def bytes(self) -> int:
        """What it takes to remember."""
        return int(self.V.nbytes + self.y.nbytes + self.signs.nbytes)


class SearchLeaf(NamedTuple):
    """Patterns with these signs, whose squared gain is at most `bound` by the source's multipliers."""

    source: BoundSource
    signs: Signs
    bound: float


@dataclass
class SideTree:
    """What is known of one side: closed leaves below the threshold, open ones above, and patterns that gain more.

    stuck: leaves that nothing more can be done about; root: the bound before any branch; nodes: programs solved;
    size: bytes of all that is remembered
    """

    side: SideExamples
    threshold: float
    closed: list[SearchLeaf]
    open: list[tuple[float, int, SearchLeaf]]
    stuck: list[SearchLeaf]
    gains: dict[bytes, float]
    nodes: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        self._order = itertools.count(len(self.open))
        self._tried, self._sources = set[bytes](), set[int]()
        self._last: float = np.inf

    @classmethod
    def of(cls, side: SideExamples, threshold: float, leaves: tuple[SearchLeaf, ...] = ()) -> "SideTree":
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

    def leaves(self) -> Iterator[SearchLeaf]:
        """All of them: they split the patterns between them."""
        return itertools.chain(self.closed, self.stuck, (leaf for _, _, leaf in self.open))

    def patterns(self) -> list[Array]:
        """Those that gain more than the threshold, the best first."""
        ordered = sorted(self.gains, key=lambda pattern: -self.gains[pattern])
        return [np.frombuffer(each, dtype=np.float64) for each in ordered]

    def run(self, stop: Callable[["SideTree"], bool]) -> None:
        """Open nodes, the highest bound first, until none is left, `stop` says so or patterns have been found."""
        while self.open and not stop(self):
            if self.nodes >= self._last:
                break
            self._node(heapq.heappop(self.open)[2])

    def _push(self, leaf: SearchLeaf) -> None:
        heapq.heappush(self.open, (-leaf.bound, next(self._order), leaf))

    def _node(self, leaf: SearchLeaf) -> None:
        """Close a leaf, or split it in two."""
        while True:
            source = leaf.source if np.array_equal(leaf.source.signs, leaf.signs) else leaf.source.folded(leaf.signs)
            outcome = self._solved(source, leaf.bound)
            if outcome is None:
                self.stuck.append(leaf)
                return
            best = BoundSource(source.signs, source.fixed, outcome.best.V, outcome.best.y)
            bound = min(leaf.bound, outcome.best.bound)
            if outcome.best.bound <= leaf.bound:
                leaf = SearchLeaf(best, source.signs, bound)
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

    def _solved(self, source: BoundSource, bound: float) -> DescentOutcome | None:
        effort: Effort = BRANCH if self.nodes else ROOT
        self.nodes += 1
        program = NodeRelaxation(self.side, source.signs, source.fixed)
        return NodeDescent(program, self.threshold, effort).run(source.V, source.y, bound)

    def _close(self, leaf: SearchLeaf) -> None:
        self.closed.append(leaf)
        self._remember(leaf.source)

    def _remember(self, source: BoundSource) -> None:
        if id(source.V) not in self._sources:
            self._sources.add(id(source.V))
            self.size += source.bytes

    def _decide(self, leaf: SearchLeaf) -> None:
        """A single pattern: its length is known exactly."""
        pattern = (leaf.signs > 0).astype(np.float64)
        answer = self.side.length(pattern)
        V = np.zeros_like(leaf.source.V)
        V[: len(answer.t), 0] = answer.t - self.side.lam[self.side.k :] / 2
        if answer.square < leaf.bound:
            leaf = SearchLeaf(leaf.source._replace(V=V), leaf.signs, answer.square)
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

    def _settled(self, leaf: SearchLeaf, source: BoundSource, excluded: dict[int, Exclusion]) -> SearchLeaf:
        """Each excluded sign is a leaf of its own, below the threshold; what is left has the other signs."""
        signs = source.signs.copy()
        for example, (sign, by) in excluded.items():
            other = signs.copy()
            other[example] = -sign
            self._close(SearchLeaf(BoundSource(source.signs, source.fixed, by.V, by.y), other, self.threshold))
            signs[example] = sign
        return SearchLeaf(leaf.source, signs, leaf.bound)

    def _branch(self, leaf: SearchLeaf, outcome: DescentOutcome) -> None:
        """On the free example whose sign costs the bound most."""
        free = np.flatnonzero(leaf.signs == 0)
        best = outcome.best
        example = free[(best.y * (1 - np.abs(best.v)) ** 2).argmax()]
        self._remember(leaf.source)
        for sign in (-1, 1):
            signs = leaf.signs.copy()
            signs[example] = sign
            self._push(SearchLeaf(leaf.source, signs, leaf.bound))


def _root(side: SideExamples) -> SearchLeaf:
    """All signs free, no slopes, and curvatures that are large enough by their rows' sums."""
    k, lam = side.k, side.lam[: side.k]
    y = 1.05 * (np.abs(side.K[:k, :k]) @ lam) * lam / 4 + 1e-12
    signs, fixed, V = np.zeros(k, dtype=np.int8), np.zeros(0, dtype=np.intp), np.zeros((len(side.others), k + 1))
    value = NodeRelaxation(side, signs, fixed).at(V, y, 1.0 / max(1, k))
    assert value is not None, "curvatures above the sums of their rows are large enough"
    return SearchLeaf(BoundSource(signs, fixed, V, value.y), signs, value.bound)
