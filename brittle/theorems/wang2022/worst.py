"""The hardest networks of the lazy ball at one example, found by ascent inside it.

At x the network is linear: ∇f = Σ_{on} v_s w_s and f = ∇f·x, so that one step flips at about |f|/‖∇f‖, the cosine
between the gradient and x. For a direction D each neuron's best answer in its own ball is known in closed form. Neurons
that are on throughout the ball shift by ±V h with one h, ‖h‖ ≤ 1; the few whose kink lies in their ball choose whether
to be on. The gradients that come about fill a nearly convex set, on which Frank and Wolfe's ascent works: D is the
slope of what is to be made large, and the share of the neurons that gives the new answer is the best of a few.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.attacks import first_flip
from brittle.networks import TwoLayer
from brittle.theorems.wang2022.ball import WeightBall

ROUNDS = 30
SHARES = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
INSIDE = 1 - 1e-9  # of the ball, against rounding
KINK = 1e-9  # how far beyond its kink a neuron is put, beside the ball's radius
GOLDEN = (math.sqrt(5) - 1) / 2

Goal = Callable[[Tensor], tuple[float, Tensor]]  # of a gradient: the value, and its slope


class BallPoint(NamedTuple):
    """A network of the ball: `shift` is the common h of the neurons that stay on, `rows` are those that may choose."""

    shift: Tensor
    rows: Tensor


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The hardest networks of a `ball` at its example number `row`; each lies in the ball and remembers its start."""

    ball: WeightBall
    row: int = 0

    @cached_property
    def output(self) -> TwoLayer:
        """The largest |f|, exactly: every neuron moves along x."""
        candidates = [self._network(self._answer(sign * self.x)) for sign in (1.0, -1.0)]
        return max(candidates, key=lambda network: abs(float(network.logits(self.x[None]))))

    @cached_property
    def gradient(self) -> TwoLayer:
        """The shortest ∇f that was found."""
        return self._network(self._ascend(_short, [-self.gradient_at(self._start)]))

    @cached_property
    def flip(self) -> TwoLayer:
        """The longest flip by one gradient step that was found."""
        g = self.gradient_at(self._start)
        across = g - (g @ self.x) * self.x
        across = -across / across.norm().clamp(min=1e-300)
        starts = [self.sign * self.x, across, self.sign * self.x + across]
        found = self._network(self._ascend(self._aligned, starts))
        return max((found, self.output, self.gradient), key=self.flip_size)

    def flip_size(self, network: TwoLayer) -> float:
        """‖δ‖ of the smallest step along ±∇f(x) that flips; infinite where none does."""
        y = network.logits(self.x[None]).sign()
        g = network.logit_gradients(self.x[None], y)
        return float(first_flip(network, self.x[None], y, -g / g.norm().clamp(min=1e-300)))

    @property
    def x(self) -> Tensor:
        """The example."""
        return self.ball.instance.data.X[self.row]

    @cached_property
    def sign(self) -> float:
        """That of f at the start."""
        return -1.0 if float(self.ball.start.v @ self._inputs.relu()) < 0 else 1.0

    def gradient_at(self, place: BallPoint) -> Tensor:
        """∇f(x) there."""
        return self._fixed + self._pull * place.shift + self._parts(place.rows).sum(0)

    @property
    def _inputs(self) -> Tensor:
        return self.ball.inputs[self.row]

    @property
    def _reach(self) -> float:
        return INSIDE * self.ball.reach

    @cached_property
    def _free(self) -> Tensor:
        """The neurons whose kink lies in their ball, (width,)."""
        return self._inputs.abs() < self._reach

    @cached_property
    def _stays_on(self) -> Tensor:
        return self._inputs >= self._reach

    @cached_property
    def _fixed(self) -> Tensor:
        """The part of ∇f at the start that neurons hold which stay on."""
        return (self.ball.start.v * self._stays_on) @ self.ball.start.W

    @cached_property
    def _pull(self) -> float:
        """What a common shift h of these neurons adds to ∇f: so many times h."""
        return self._reach * float((self.ball.start.v.abs() * self._stays_on).sum())

    @cached_property
    def _start(self) -> BallPoint:
        return BallPoint(torch.zeros_like(self.x), self.ball.start.W[self._free])

    def _aligned(self, g: Tensor) -> tuple[float, Tensor]:
        """ln cos(g, x); where f has the wrong sign, nothing but f counts."""
        f, square = self.sign * float(g @ self.x), float(g @ g)
        if f <= 1e-12 * math.sqrt(square):
            return f - 1e6, self.sign * self.x
        return math.log(f) - math.log(square) / 2, self.sign * self.x / f - g / square

    def _answer(self, D: Tensor) -> BallPoint:
        """The best place for Σ_{on} v_s D·w_s.

        A free neuron is on or off, whichever is better: on at w(0) + VE, E = ±D/‖D‖, or, where that lies beyond the
        kink, on the kink and across it with what is left of V; off where it is, or just beyond the kink.
        """
        D = D / D.norm().clamp(min=1e-300)
        W, z, V, x = self._start.rows, self._inputs[self._free], self._reach, self.x
        E = self.ball.start.v[self._free].sign()[:, None] * D
        along = E @ x
        across = E - along[:, None] * x
        height = across.norm(dim=1)
        across = torch.where(height > 1e-9, 1 / height, 0.0)[:, None] * across
        needed = KINK * V - z
        room = (V**2 - needed**2).clamp(min=0).sqrt()
        kinked = W + needed[:, None] * x + room[:, None] * across
        on = torch.where((z + V * along > 0)[:, None], W + V * E, kinked)
        off = W - (z + KINK * V).clamp(min=0)[:, None] * x
        return BallPoint(D, torch.where(((E * on).sum(1) > 0)[:, None], on, off))

    def _ascend(self, goal: Goal, starts: Sequence[Tensor]) -> BallPoint:
        """From the start through the answers to `starts`, then along the goal's slope while some share is better."""
        order = torch.rand(int(self._free.sum()), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        place = self._start
        for begin in starts:
            place = self._mixed(goal, place, self._answer(begin), order)
        for _ in range(ROUNDS):
            order = (order + GOLDEN) % 1
            place = self._mixed(goal, place, self._answer(goal(self.gradient_at(place))[1]), order)
        return place

    def _mixed(self, goal: Goal, place: BallPoint, answer: BallPoint, order: Tensor) -> BallPoint:
        """The place with the best share of it moved to the answer; the place itself where none is better."""
        g, change = self.gradient_at(place), self._parts(answer.rows) - self._parts(place.rows)
        group = torch.bucketize(order, torch.tensor(SHARES, dtype=torch.float64))
        parts = torch.zeros(len(SHARES), len(g), dtype=g.dtype).index_add_(0, group, change).cumsum(0)
        shifts = [share * (answer.shift - place.shift) for share in SHARES]
        values = [goal(g + part + self._pull * shift)[0] for part, shift in zip(parts, shifts, strict=True)]
        best = max(range(len(SHARES)), key=values.__getitem__)
        if not values[best] > goal(g)[0]:
            return place
        return BallPoint(place.shift + shifts[best], torch.where((group <= best)[:, None], answer.rows, place.rows))

    def _parts(self, rows: Tensor) -> Tensor:
        """v_s w_s of the free neurons that are on, one row each."""
        return (self.ball.start.v[self._free] * (rows @ self.x > 0))[:, None] * rows

    def _network(self, place: BallPoint) -> TwoLayer:
        start = replace(self.ball.start, start=None)
        W = start.W + (self._reach * start.v.sign() * self._stays_on)[:, None] * place.shift
        W[self._free] = place.rows
        return replace(start, W=W, start=start)


def _short(g: Tensor) -> tuple[float, Tensor]:
    """-‖g‖."""
    length = g.norm()
    return -float(length), -g / length.clamp(min=1e-300)


def hardest_for_all(ball: WeightBall, rounds: int = 8) -> TwoLayer:
    """One network of the ball whose gradients at all examples are as nearly parallel to them as ascent finds."""
    start, X = replace(ball.start, start=None), ball.instance.data.X
    y = start.logits(X).sign()
    W, value = start.W, -math.inf
    for _ in range(rounds):
        answer = start.W + INSIDE * ball.reach * _uphill(replace(start, W=W), X, y)
        mixtures = [W + share * (answer - W) for share in (1.0, 0.5, 0.2)]
        values = [_alignment(replace(start, W=each), X, y) for each in mixtures]
        best = max(range(len(values)), key=values.__getitem__)
        if not values[best] > value:
            break
        W, value = mixtures[best], values[best]
    return replace(start, W=W, start=start)


def _alignment(network: TwoLayer, X: Tensor, y: Tensor) -> float:
    """The mean cosine between the examples and their gradients, where they have their sign y."""
    g = network.logit_gradients(X, y)
    return float(((g * X).sum(1) / g.norm(dim=1).clamp(min=1e-300)).mean())


def _uphill(network: TwoLayer, X: Tensor, y: Tensor) -> Tensor:
    """For every neuron the unit direction in which the mean cosine grows fastest, (width, columns)."""
    g = network.logit_gradients(X, y)
    length = g.norm(dim=1, keepdim=True).clamp(min=1e-300)
    slopes = y[:, None] * (X - (g * X).sum(1, keepdim=True) * g / length**2) / length
    on = network.preactivations(X) > 0
    directions = network.v[:, None] * (on.to(X.dtype).T @ slopes)
    unit: Tensor = directions / directions.norm(dim=1, keepdim=True).clamp(min=1e-300)
    return unit
