"""The radius of one example by best-first branch and bound over all rivals."""

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from brittle.certificates.deep_exact.ball import AttackBall, first_intervals, margin_floors
from brittle.certificates.deep_exact.interior_point import (
    BranchStatus,
    BranchTarget,
    SolvedBranch,
    climb,
    first_iterate,
    inherit_iterate,
    maximise,
    with_margin,
)
from brittle.certificates.deep_exact.leaf import leaf_floor
from brittle.certificates.deep_exact.newton import SdpIterate
from brittle.certificates.deep_exact.problem import FREE, OFF, ON, Root, SdpProblem, SignBranch
from brittle.certificates.dual_bound import TINY
from brittle.certificates.example import Example, RadiusInterval
from brittle.certificates.layers import DeepMargins
from brittle.certificates.rounding import ROUNDOFF, Array
from brittle.common.time_limit import TimeLimitReached

BEYOND = 1 + 1e-9  # a little past the linear piece's boundary


def directions(ball: AttackBall, rival: int, epsilon: Array, steps: int) -> Array:
    """ε and the next points of Newton's iteration for the margin's shortest zero, (at most steps + 1, p)."""
    found = [epsilon]
    for _ in range(steps):
        value, gradient = _linear_piece(ball, rival, found[-1])
        square = gradient @ gradient
        if not square > 0:
            break
        following = (gradient @ found[-1] - value) / square * BEYOND * gradient
        if not np.linalg.norm(following) <= 1.5 * ball.reach:
            break
        found.append(following)
    return np.stack(found)


def margin_at(ball: AttackBall, rival: int) -> float:
    """The margin over the rival at the example itself."""
    return _linear_piece(ball, rival, np.zeros(ball.first.shape[1]))[0]


def _linear_piece(ball: AttackBall, rival: int, epsilon: Array) -> tuple[float, Array]:
    """The margin at ε and its gradient."""
    z = ball.first @ epsilon + ball.a
    signs = [z > 0]
    for W, b in zip(ball.weights[:-1], ball.biases[:-1], strict=True):
        z = W @ np.maximum(z, 0) + b
        signs.append(z > 0)
    row = ball.weights[-1][rival]
    value = float(row @ np.maximum(z, 0) + ball.biases[-1][rival])
    for sign, W in zip(reversed(signs), [*reversed(ball.weights[:-1]), ball.first], strict=True):
        row = (row * sign) @ W
    return value, row


SHARED = 4  # iterations before the margin comes in, for all rivals
PRECISION = 1e-4  # of F, where the iterations end at the latest
KEPT = 0.999  # of the gap in which flips need not be looked for; the rest pays for rounding
FARTHEST = 200  # the exponent by which a ball may be smaller than the example: its squares stay far above underflow
AT_ROOT, IN_TREE = 8, 4  # linear pieces that a relaxed point is followed through

Expired = Callable[[], bool]  # whether time is up


@dataclass(frozen=True)
class RivalNode:
    """A branch of the margin over one rival."""

    rival: int
    solved: SolvedBranch

    @property
    def floor(self) -> float:
        return self.solved.floor


@dataclass(frozen=True, eq=False)
class RadiusTree:
    """Grows until no flip is left that is shorter by the gap than the shortest known, or time or `nodes` are up.

    Lengths are in the network's own unit. `rivals` are those whose margin the first intervals do not settle.
    """

    root: Root
    rivals: tuple[int, ...]
    example: Example
    gap: float
    expired: Expired
    nodes: float = math.inf  # branches beyond which none is split

    def grow(self, nodes: Sequence[RivalNode], enclosure: RadiusInterval) -> RadiusInterval:
        """With the radius that is proved in the end, after all attacks."""
        order, closed = itertools.count(), np.inf
        open_ = [(node.floor, next(order), node) for node in nodes]
        heapq.heapify(open_)
        while open_ and open_[0][0] < self._target(enclosure).enough and self._goes_on(enclosure):
            _, _, node = heapq.heappop(open_)
            neuron = loosest(node.solved)
            if neuron is None:
                closed = min(closed, max(node.floor, leaf_floor(node.solved.problem)))
                continue
            try:
                children = []
                for sign in (ON, OFF):
                    child, enclosure = self._child(node, neuron, sign, enclosure)
                    children.append(child)
            except TimeLimitReached:
                heapq.heappush(open_, (node.floor, next(order), node))
                break
            for child in children:
                if child.solved.ending is not BranchStatus.CLOSED:
                    heapq.heappush(open_, (child.floor, next(order), child))
        return enclosure.proven(self.radius_of(min(closed, open_[0][0] if open_ else np.inf), enclosure))

    def _goes_on(self, enclosure: RadiusInterval) -> bool:
        return enclosure.nodes < self.nodes and not self.expired()

    def first_nodes(self, enclosure: RadiusInterval) -> tuple[list[RivalNode], RadiusInterval]:
        """One for every rival that is not closed without branching, and the enclosure after their attacks."""
        root, branch, nodes = self.root, self.root.branch, []
        shared = SdpProblem.of(root, branch, None)
        start = first_iterate(shared, root.ball.reach, 1.0)
        start = None if start is None else climb(shared, start, SHARED)
        for rival in self.rivals:
            problem = SdpProblem.of(root, branch, rival)
            iterate = None if start is None else with_margin(shared, problem, start, margin_at(root.ball, rival))
            solved = self._solve(branch, rival, iterate, 0.0, enclosure)
            enclosure = self._attacked(solved, rival, AT_ROOT, enclosure.branched())
            if solved.ending is not BranchStatus.CLOSED:
                nodes.append(RivalNode(rival, solved))
        return nodes, enclosure

    def _child(
        self, node: RivalNode, neuron: int, sign: int, enclosure: RadiusInterval
    ) -> tuple[RivalNode, RadiusInterval]:
        old = node.solved
        branch = old.branch.split(neuron, sign)
        problem = SdpProblem.of(self.root, branch, node.rival)
        iterate = inherit_iterate(old.problem, problem, old.iterate, branch.signs)
        solved = self._solve(branch, node.rival, iterate, node.floor, enclosure)
        return RivalNode(node.rival, solved), self._attacked(solved, node.rival, IN_TREE, enclosure.branched())

    def _solve(
        self, branch: SignBranch, rival: int, iterate: SdpIterate | None, floor: float, enclosure: RadiusInterval
    ) -> SolvedBranch:
        """From the iterate, and from a cold start where that breaks down."""
        target = self._target(enclosure)
        if iterate is not None:
            solved = maximise(self.root, branch, rival, iterate, target, floor)
            if solved.ending is not BranchStatus.FAILED:
                return solved
            branch, floor = solved.branch, solved.floor
        problem = SdpProblem.of(self.root, branch, rival)
        cold = first_iterate(problem, target.reach, margin_at(self.root.ball, rival))
        if cold is None:
            return SolvedBranch.nothing(branch, problem, floor)
        return maximise(self.root, branch, rival, cold, target, floor)

    def _attacked(self, solved: SolvedBranch, rival: int, steps: int, enclosure: RadiusInterval) -> RadiusInterval:
        """The relaxed point as an attack."""
        if solved.ending is BranchStatus.CLOSED or not solved.point.any():
            return enclosure
        span = self.root.ball.span
        rows = directions(self.root.ball, rival, solved.point, steps)
        rows = rows if span.basis is None else rows @ span.basis.T
        return self.example.attacked(enclosure, torch.from_numpy(np.ascontiguousarray(rows)))

    def _target(self, enclosure: RadiusInterval) -> BranchTarget:
        reach = self.root.ball.stretched(choose_search_radius(enclosure, self.gap) / 2.0**self.root.ball.exponent)
        enough = max(0.5 * reach**2 * (1 + 4 * ROUNDOFF), TINY)  # attacks may shorten a ball until its square is lost
        return BranchTarget(reach, enough, min(PRECISION, 0.1 * self.gap), self.expired)

    def radius_of(self, floor: float, enclosure: RadiusInterval) -> float:
        """What a floor under ½‖ε‖² at all flips that are left means for ‖δ‖."""
        if floor >= self._target(enclosure).enough:
            return choose_search_radius(enclosure, self.gap)
        if not floor > 0:
            return 0.0
        ball = self.root.ball
        return math.ldexp(math.sqrt(2 * floor) / ball.span.stretch * (1 - 8 * ROUNDOFF), ball.exponent)


def choose_search_radius(enclosure: RadiusInterval, gap: float) -> float:
    """How far flips are looked for: almost to the shortest one, or as far as anybody asks."""
    flips = enclosure.upper <= enclosure.cap
    return enclosure.ball * (1 - KEPT * gap) if flips else enclosure.ball


def make_tree(
    margins: DeepMargins,
    example: Example,
    enclosure: RadiusInterval,
    gap: float,
    expired: Expired,
    nodes: float = math.inf,
) -> RadiusTree | None:
    """The tree before any node; None where intervals leave the floats, or squares of the ball might."""
    ball = AttackBall.of(margins, choose_search_radius(enclosure, gap))
    if ball.exponent < margins.exponent - FARTHEST:
        return None
    known = first_intervals(ball)
    if not all(np.isfinite(each).all() for each in (*known.low, *known.high)):
        return None
    floors = margin_floors(ball, known)
    rivals = tuple(int(rival) for rival in np.argsort(floors) if not floors[rival] > 0)
    return RadiusTree(Root.of(ball, known), rivals, example, gap, expired, nodes)


def close_branch(
    margins: DeepMargins, example: Example, enclosure: RadiusInterval, gap: float, expired: Expired, nodes: float
) -> RadiusInterval:
    """With the proof that no flip of the ball is shorter than `lower`."""
    tree = make_tree(margins, example, enclosure, gap, expired, nodes)
    if tree is None:
        return enclosure
    roots, enclosure = tree.first_nodes(enclosure) if tree.rivals else ([], enclosure)
    return tree.grow(roots, enclosure)


def loosest(solved: SolvedBranch) -> int | None:
    """The free neuron that is farthest from its graph at the relaxed point, else the one with the widest kink."""
    branch = solved.branch
    if not (branch.signs == FREE).any():
        return None
    if np.isfinite(solved.looseness).any():
        return int(np.argmax(solved.looseness))
    return int(np.argmax(np.where(branch.signs == FREE, np.minimum(-branch.low, branch.high), -np.inf)))
