"""A layered network inside the ball of one attack: few dimensions, numbers near 1, and what rounding did on the way."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from brittle.certificates.layers import DeepMargins
from brittle.certificates.margins import WeightSpan
from brittle.certificates.relaxation import LOST, Floors, steeper_half
from brittle.certificates.rounding import (
    ROUNDOFF,
    SQUARES,
    UNDERFLOW,
    Array,
    Exponents,
    factor,
    gamma,
    remainder,
    shift_exponent,
)
from brittle.common.time_limit import check_time


@dataclass(frozen=True, eq=False)
class AttackBall:
    """z_1 = a + first·ε, z_l = weights[l-2] φ(z_{l-1}) + biases[l-2]; the last z are the margins over every rival.

    For every ‖δ‖ ≤ radius there is an ε with ‖ε‖ ≤ reach for which the network's own z_1 differs from a + first·ε by at
    most slips (n_1,); lengths are in units of 2^exponent. `range_1` (n_1,) bounds |z_1 - a| in the ball. Weights and
    biases of later layers are the network's own but for units (powers of two) and what falls below the floats.
    """

    first: Array
    a: Array
    slips: Array
    range_1: Array
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    radius: float
    exponent: int
    span: WeightSpan

    @classmethod
    def of(cls, margins: DeepMargins, radius: float) -> "AttackBall":
        """Around the example of `margins`, for ‖δ‖ ≤ radius (in the network's own unit)."""
        mantissa, by = math.frexp(radius)
        W, b, x = (each.numpy() for each in (margins.weights[0], margins.biases[0], margins.x))
        closer, dim = by - margins.exponent, W.shape[1]
        a = W @ x + b
        slips = gamma(dim + 2) * (np.abs(W) @ np.abs(x) + np.abs(b)) + UNDERFLOW * (1 + np.abs(x).sum())
        # Squares are taken before anything is brought into the ball's unit, which may be far below that of x.
        range_1 = (
            shift_exponent((np.linalg.norm(W, axis=1) + SQUARES) * (1 + gamma(dim + 6)), closer) * mantissa + UNDERFLOW
        )
        live = a + (range_1 + slips) * (1 + 8 * ROUNDOFF) > 0
        live[0] |= not live.any()
        span = WeightSpan.of(W[live])
        first = np.zeros((len(W), span.coordinates.shape[1]))
        first[live] = shift_exponent(span.coordinates, closer)
        slips[live] += shift_exponent((span.rest + SQUARES) * (1 + 8 * ROUNDOFF), closer) * mantissa + UNDERFLOW * (
            1 + dim
        )
        later, heights = ([each.numpy() for each in part[1:]] for part in (margins.weights, margins.biases))
        return cls(first, a, slips, range_1, tuple(later), tuple(heights), mantissa, by, span)

    @property
    def reach(self) -> float:
        """No ε of the ball is longer."""
        return self.stretched(self.radius)

    def stretched(self, radius: float) -> float:
        """No ε of a δ with ‖δ‖ ≤ radius is longer."""
        return radius * self.span.stretch * (1 + 8 * ROUNDOFF)

    @property
    def depth(self) -> int:
        """The number of hidden layers."""
        return len(self.weights)

    def in_units(self, units: list[Exponents]) -> "AttackBall":
        """The same network with z_l in units of 2^units[l-1], hidden layers first and the margins last."""
        first, inputs = units[0], units[:-1]
        weights = [
            shift_exponent(W, before[None, :] - after[:, None])
            for W, before, after in zip(self.weights, inputs, units[1:], strict=True)
        ]
        return replace(
            self,
            first=shift_exponent(self.first, -first[:, None]),
            a=shift_exponent(self.a, -first),
            slips=shift_exponent(self.slips, -first) + UNDERFLOW,
            range_1=shift_exponent(self.range_1, -first) + UNDERFLOW,
            weights=tuple(weights),
            biases=tuple(shift_exponent(b, -unit) for b, unit in zip(self.biases, units[1:], strict=True)),
        )


# Intervals of every z in the ball, and floors under the margins: linear relaxation, and one dual for many rows.
#
# CROWN's lines, put in backwards down to h_1 = φ(z_1), leave floors C·h_1 + c_0. Each is bounded twice: by CROWN's
# lines of the first layer, and by the two-layer dual of docs/certificates.md with one set of curvatures κ for all
# rows. With a unit s > 0 for each row and A = I - Σ κ w wᵀ ≻ 0, every ‖ε‖ ≤ r has for any slopes g
#
#     C·h_1 + c_0 ≥ s (F - ½r²),   F = c_0/s + Σ_i φ_i(g_i) - ½ pᵀA⁻¹p,   p = lin/s + Wᵀg,
#     φ_i(g) = min over l_i ≤ z ≤ u_i of (C_i/s) φ(z) + ½κ_i(z - a_i)² - g(z - a_i).
#
# A few steps of ascent in g for all rows at once; what is claimed of the last slopes is paid for in rounding.


STEPS = 30  # of ascent in the slopes
FULL = 0.96  # the largest eigenvalue of Σ κ w wᵀ
LEAST = 0.01  # the smallest one of A that is proved
WIDTH = 0.2  # of the ball: where curvatures expect z, besides its value at the centre
STEEP = 1.1  # units s, in shares of CROWN's gradient per radius


@dataclass(frozen=True, eq=False)
class LayerIntervals:
    """low ≤ z_l ≤ high in the whole ball, for the layers that are known so far."""

    low: tuple[Array, ...]
    high: tuple[Array, ...]

    def joined(self, low: Array, high: Array) -> "LayerIntervals":
        return LayerIntervals((*self.low, low), (*self.high, high))


class _LinearRows(NamedTuple):
    """Floors rows·h + offsets, each to be lowered by its slip."""

    rows: Array
    offsets: Array
    slip: Array

    @classmethod
    def of(cls, floors: Floors) -> "_LinearRows":
        return cls(*(each.numpy() for each in floors))

    def through_relu(self, known: LayerIntervals, layer: int) -> "_LinearRows":
        return _LinearRows.of(_through_relu(Floors(*map(torch.from_numpy, self)), known, layer))


def first_intervals(ball: AttackBall) -> LayerIntervals:
    """Of all hidden layers."""
    around = (ball.range_1 + ball.slips) * (1 + 8 * ROUNDOFF)
    around = around + gamma(2) * (np.abs(ball.a) + around)
    known = LayerIntervals((ball.a - around,), (ball.a + around,))
    for W, b in zip(ball.weights[:-1], ball.biases[:-1], strict=True):
        both = floors(ball, known, np.vstack([W, -W]), np.concatenate([b, -b]))
        known = known.joined(both[: len(W)], -both[len(W) :])
    return known


def margin_floors(ball: AttackBall, known: LayerIntervals) -> Array:
    """Under the margin over every rival."""
    return floors(ball, known, ball.weights[-1], ball.biases[-1])


def floors(ball: AttackBall, known: LayerIntervals, rows: Array, offsets: Array) -> Array:
    """Under rows·φ(z) + offsets for the last z that is known; rows may carry one rounding of their own."""
    size = np.maximum(known.high[-1], 0)
    pair = gamma(2) * (np.abs(rows) @ size + np.abs(offsets)) + UNDERFLOW * (1 + size.sum())
    now = Floors(*map(torch.from_numpy, (rows, offsets, pair)))
    for layer in reversed(range(1, len(known.low))):
        W, b, size = ball.weights[layer - 1], ball.biases[layer - 1], np.maximum(known.high[layer - 1], 0)
        tensors = map(torch.from_numpy, (W, np.abs(W), b, size))
        now = _through_relu(now, known, layer).through_layer(*tensors)
    start = _LinearRows.of(now)
    found = np.maximum(_linear(ball, known, start), _shared(ball, known, start))
    floor = found - start.slip * (1 + 8 * ROUNDOFF)
    return np.where(np.isfinite(floor), floor, -np.inf)


def _through_relu(now: Floors, known: LayerIntervals, layer: int) -> Floors:
    """From φ(z_layer), counted from 0, to z_layer."""
    low, high = torch.from_numpy(known.low[layer]), torch.from_numpy(known.high[layer])
    return now.through_relu(low, high, steeper_half(low, high))


def _linear(ball: AttackBall, known: LayerIntervals, now: _LinearRows) -> Array:
    """CROWN's floors under rows·φ(z_1) + offsets; what `now` has lost is not yet subtracted."""
    lines = now.through_relu(known, 0)
    rows, dim = lines.rows @ ball.first, ball.first.shape[1]
    size = np.abs(ball.a) + ball.range_1 + ball.slips
    slip = lines.slip - now.slip + np.abs(lines.rows) @ ball.slips * (1 + gamma(len(size)))
    slip = slip + gamma(len(size) + dim + 8) * (np.abs(lines.rows) @ (size + LOST) + np.abs(lines.offsets) + LOST)
    steep = (np.linalg.norm(rows, axis=1) + SQUARES) * ball.reach * (1 + gamma(dim + 8))
    return np.asarray(lines.offsets + lines.rows @ ball.a - steep - slip * (1 + 8 * ROUNDOFF))


@dataclass(frozen=True, eq=False)
class _SharedDual:
    """Rows C φ(z) + lin·ε + offsets with z = a + W·ε in [low, high], everything divided by each row's unit s."""

    W: Array
    a: Array
    low: Array
    high: Array
    C: Array
    lin: Array
    offsets: Array
    kappa: Array

    def terms(self, g: Array) -> tuple[Array, Array]:
        """φ_i(g_i) of every row and neuron, and the minimising z."""
        at = self.a + g / self.kappa
        off = np.clip(at, self.low, 0)
        on = np.clip(at - self.C / self.kappa, 0, self.high)
        below = 0.5 * self.kappa * (off - self.a) ** 2 - g * (off - self.a)
        above = self.C * on + 0.5 * self.kappa * (on - self.a) ** 2 - g * (on - self.a)
        return np.minimum(below, above), np.where(above < below, on, off)

    def start(self) -> Array:
        """The slopes of CROWN's lines."""
        return np.asarray(self.C * np.where(self.C > 0, self.a > 0, self.high / (self.high - self.low)))

    def ascend(self, inverse: Array) -> Array:
        """The best slopes met in some steps of accelerated ascent, row by row."""
        spread = self.W @ inverse @ self.W.T
        pull = self.lin @ inverse @ self.W.T
        sizes = 1 / (1 / self.kappa + np.abs(spread).sum(1))
        here = ahead = best = self.start()
        value, momentum = np.full(len(here), -np.inf), 1.0
        for _ in range(STEPS):
            check_time()
            terms, z = self.terms(ahead)
            bent = ahead @ spread
            height = terms.sum(1) - (pull * ahead).sum(1) - 0.5 * (bent * ahead).sum(1)
            better = height > value
            value, best = np.where(better, height, value), np.where(better[:, None], ahead, best)
            moved = ahead + sizes * (self.a - z - pull - bent)
            after = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
            here, ahead, momentum = moved, moved + (momentum - 1) / after * (moved - here), after
        return best

    def proven(self, g: Array, inverse: Array) -> Array:
        """F of every row less all rounding, for A ⪰ LEAST·I: pᵀA⁻¹p ≤ 2p·x - x·Ax + ‖p - Ax‖²/LEAST for any x."""
        count, dim = self.W.shape
        p = self.lin + g @ self.W
        x = p @ inverse
        u = x @ self.W.T
        rest = p - x + (self.kappa * u) @ self.W
        lengths = np.linalg.norm(x, axis=1) + SQUARES
        sizes = np.linalg.norm(self.W, axis=1) * (1 + gamma(dim + 2)) + SQUARES
        load = np.linalg.norm(self.lin, axis=1) + np.abs(g) @ sizes
        bends = self.kappa * sizes * (np.abs(u) + gamma(dim + 2) * sizes * lengths[:, None])
        slack = gamma(count + dim + 8) * (load + lengths + 2 * bends.sum(1))
        off = np.linalg.norm(rest, axis=1) * (1 + gamma(dim + 4)) + slack + SQUARES
        form = 2 * (p * x).sum(1) - lengths**2 + (u**2) @ self.kappa
        weight = 2 * (load + bends.sum(1)) * lengths + lengths**2 + (u**2) @ self.kappa
        form = form + off**2 / LEAST * (1 + gamma(4)) + gamma(count + dim + 12) * weight
        terms, _ = self.terms(g)
        far = np.abs(self.a) + np.abs(g) / self.kappa + np.abs(self.C) / self.kappa
        # The minimising z is off by a share of `far`, which costs the square of that.
        each = np.abs(self.C) * self.high + 4 * self.kappa * far**2 + 2 * np.abs(g) * far
        total = np.abs(self.offsets) + each.sum(1)
        return np.asarray(self.offsets + terms.sum(1) - 0.5 * form - gamma(count + 20) * (total + np.abs(form)))


def _shared(ball: AttackBall, known: LayerIntervals, now: _LinearRows) -> Array:
    """The dual's floors under rows·φ(z_1) + offsets; -inf where it has nothing to say."""
    low, high = known.low[0], known.high[0]
    on, bent = low >= 0, (low < 0) & (high > 0)
    nothing = np.full(len(now.rows), -np.inf)
    if not bent.any():
        return nothing
    dual, s, slip = _scaled(ball, known, now, on, bent)
    A = remainder(dual.W, dual.kappa)
    if not _definite(A, dual):
        return nothing
    L = factor(A)
    assert L is not None
    inverse = L.solve(np.eye(len(A)))
    value = s * (dual.proven(dual.ascend(inverse), inverse) - 0.5 * ball.reach**2 * (1 + 8 * ROUNDOFF))
    floor = value - slip - gamma(4) * (np.abs(value) + s * ball.reach**2)
    return np.where(np.isfinite(floor), floor, -np.inf)


def _scaled(
    ball: AttackBall, known: LayerIntervals, now: _LinearRows, on: NDArray[np.bool_], bent: NDArray[np.bool_]
) -> tuple[_SharedDual, Array, Array]:
    """The dual of all rows, their units s (powers of two), and what the rows lose before it."""
    W, a, slips = ball.first[bent], ball.a[bent], ball.slips[bent]
    low, high = known.low[0][bent] - 2 * slips, known.high[0][bent] + 2 * slips  # the model's z, not the network's
    C, given = now.rows[:, bent], now.rows[:, on]
    lin, offsets = given @ ball.first[on], now.offsets + given @ ball.a[on]
    size = np.abs(ball.a) + ball.range_1 + ball.slips
    live = on | bent
    slip = np.abs(now.rows[:, live]) @ ball.slips[live] * (1 + gamma(len(a)))
    slip = slip + gamma(len(size) + 8) * (np.abs(given) @ size[on] + np.abs(now.offsets)) + UNDERFLOW
    gradient = np.linalg.norm(lin + (C * np.where(C > 0, a > 0, high / (high - low))) @ W, axis=1)
    s = 2.0 ** np.round(np.log2(np.maximum(gradient, 1e-9) / ball.reach * STEEP))
    C, lin, offsets = C / s[:, None], lin / s[:, None], offsets / s
    squares = (W**2).sum(1)
    kappa = np.sqrt((np.minimum(C, 0) ** 2).mean(0)) + 1e-9
    kappa = kappa / (2 * np.sqrt((0.5 * a) ** 2 + (WIDTH * ball.reach) ** 2 * squares + 1e-30))
    root = W * np.sqrt(kappa)[:, None]
    top = np.linalg.eigvalsh(root @ root.T if len(root) < root.shape[1] else root.T @ root)[-1]
    return _SharedDual(W, a, low, high, C, lin, offsets, kappa * (FULL / max(float(top), 1e-300))), s, slip


def _definite(A: Array, dual: _SharedDual) -> bool:
    """Whether the real A ⪰ LEAST·I, by a factor of A less more than rounding can do."""
    count, dim = dual.W.shape
    trace = float(dual.kappa @ (dual.W**2).sum(1))
    shifted = A.copy()
    shifted.flat[:: dim + 1] -= LEAST + 2 * (gamma(count + 6) * (1 + trace) + gamma(dim + 2) * (dim + trace))
    return factor(shifted) is not None
