"""The radius of one example by best-first branch and bound over all rivals."""

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from brittle.certificates.deep_exact.ball import Ball
from brittle.certificates.deep_exact.first_intervals import first_intervals, margin_floors
from brittle.certificates.deep_exact.interior_point import (
    Ending,
    Iterate,
    Solved,
    Target,
    climb,
    first_iterate,
    inherited,
    maximise,
    with_margin,
)
from brittle.certificates.deep_exact.problem import FREE, OFF, ON, Branch, Problem, Root
from brittle.certificates.deep_exact.relaxed_attack import directions, margin_at
from brittle.certificates.layers import Margins
from brittle.certificates.local import UNIT
from brittle.certificates.scales import Array

SHARED = 4  # iterations before the margin comes in, for all rivals
PRECISION = 1e-4  # of F, where the iterations end at the latest
KEPT = 0.999  # of the gap in which flips need not be looked for; the rest pays for rounding
AT_ROOT, IN_TREE = 8, 4  # linear pieces that a relaxed point is followed through

Expired = Callable[[], bool]  # whether time is up
Shorten = Callable[[Array], float]  # tries rows (k, dim) as attacks and returns the length of the shortest flip known


@dataclass(frozen=True)
class Node:
    """A branch of the margin over one rival."""

    rival: int
    solved: Solved

    @property
    def floor(self) -> float:
        return self.solved.floor


@dataclass(frozen=True, eq=False)
class Tree:
    """Grows until no flip is left that is shorter by the gap than the shortest known, or time is up.

    Flips ‖δ‖ ≤ radius matter, in the network's own unit; `flips` says that one of that length was known at the start.
    `rivals` are those whose margin the first intervals do not settle.
    """

    root: Root
    rivals: tuple[int, ...]
    radius: float
    flips: bool
    gap: float
    expired: Expired
    shorten: Shorten

    def grow(self, nodes: list[Node]) -> float:
        """The radius that is proved in the end."""
        order, closed = itertools.count(), np.inf
        open_ = [(node.floor, next(order), node) for node in nodes]
        heapq.heapify(open_)
        while open_ and open_[0][0] < self._target().enough and not self.expired():
            _, _, node = heapq.heappop(open_)
            neuron = _loosest(node.solved)
            if neuron is None:
                closed = min(closed, node.floor)
                continue
            for sign in (ON, OFF):
                child = self._child(node, neuron, sign)
                if child.solved.ending is not Ending.CLOSED:
                    heapq.heappush(open_, (child.floor, next(order), child))
        return self.radius_of(min(closed, open_[0][0] if open_ else np.inf))

    def first_nodes(self) -> list[Node]:
        """One for every rival that is not closed without branching."""
        root, branch, nodes = self.root, self.root.branch, []
        shared = Problem.of(root, branch, None)
        start = first_iterate(shared, root.ball.reach, 1.0)
        start = None if start is None else climb(shared, start, SHARED)
        for rival in self.rivals:
            problem = Problem.of(root, branch, rival)
            iterate = None if start is None else with_margin(shared, problem, start, margin_at(root.ball, rival))
            solved = self._solve(branch, rival, iterate, 0.0)
            self._attack(solved, rival, AT_ROOT)
            if solved.ending is not Ending.CLOSED:
                nodes.append(Node(rival, solved))
        return nodes

    def _child(self, node: Node, neuron: int, sign: int) -> Node:
        old = node.solved
        branch = old.branch.split(neuron, sign)
        problem = Problem.of(self.root, branch, node.rival)
        iterate = inherited(old.problem, problem, old.iterate, branch.signs)
        solved = self._solve(branch, node.rival, iterate, node.floor)
        self._attack(solved, node.rival, IN_TREE)
        return Node(node.rival, solved)

    def _solve(self, branch: Branch, rival: int, iterate: Iterate | None, floor: float) -> Solved:
        """From the iterate, and from a cold start where that breaks down."""
        target = self._target()
        if iterate is not None:
            solved = maximise(self.root, branch, rival, iterate, target, floor)
            if solved.ending is not Ending.FAILED:
                return solved
            branch, floor = solved.branch, solved.floor
        problem = Problem.of(self.root, branch, rival)
        cold = first_iterate(problem, target.reach, margin_at(self.root.ball, rival))
        if cold is None:
            return Solved.nothing(branch, problem, floor)
        return maximise(self.root, branch, rival, cold, target, floor)

    def _attack(self, solved: Solved, rival: int, steps: int) -> None:
        if solved.ending is not Ending.CLOSED and solved.point.any():
            span = self.root.ball.span
            rows = directions(self.root.ball, rival, solved.point, steps)
            self.shorten(rows if span.basis is None else rows @ span.basis.T)

    def _target(self) -> Target:
        reach = self.root.ball.stretched(self._asked() / 2.0**self.root.ball.exponent)
        enough = 0.5 * reach**2 * (1 + 4 * UNIT)
        return Target(reach, enough, min(PRECISION, 0.1 * self.gap), self.expired)

    def _asked(self) -> float:
        """How far flips are looked for, by now."""
        shortest = self.shorten(np.zeros((0, 0)))
        return shortest * (1 - KEPT * self.gap) if self.flips or shortest < self.radius else self.radius

    def radius_of(self, floor: float) -> float:
        """What a floor under ½‖ε‖² at all flips that are left means for ‖δ‖."""
        if floor >= self._target().enough:
            return self._asked()
        if not floor > 0:
            return 0.0
        ball = self.root.ball
        return math.ldexp(math.sqrt(2 * floor) / ball.span.stretch * (1 - 8 * UNIT), ball.exponent)


def plant(margins: Margins, radius: float, flips: bool, gap: float, expired: Expired, shorten: Shorten) -> Tree | None:
    """The tree before any node; None where intervals leave the floats."""
    ball = Ball.of(margins, radius * (1 - KEPT * gap) if flips else radius)
    known = first_intervals(ball)
    if not all(np.isfinite(each).all() for each in (*known.low, *known.high)):
        return None
    floors = margin_floors(ball, known)
    rivals = tuple(int(rival) for rival in np.argsort(floors) if not floors[rival] > 0)
    return Tree(Root.of(ball, known), rivals, radius, flips, gap, expired, shorten)


def proven_radius(
    margins: Margins, radius: float, flips: bool, gap: float, expired: Expired, shorten: Shorten
) -> float:
    """No flip ‖δ‖ ≤ radius is shorter than this; `flips` says that one of that length is known."""
    tree = plant(margins, radius, flips, gap, expired, shorten)
    return 0.0 if tree is None else tree.grow(tree.first_nodes() if tree.rivals else [])


def _loosest(solved: Solved) -> int | None:
    """The free neuron that is farthest from its graph at the relaxed point, else the one with the widest kink."""
    branch = solved.branch
    if not (branch.signs == FREE).any():
        return None
    if np.isfinite(solved.looseness).any():
        return int(np.argmax(solved.looseness))
    return int(np.argmax(np.where(branch.signs == FREE, np.minimum(-branch.low, branch.high), -np.inf)))
