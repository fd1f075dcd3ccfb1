"""Two-layer margins, one per rival class: what the dual and the exact certificate work on."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.certificates.example import Example, RadiusInterval
from brittle.certificates.rounding import (
    ABSENT,
    ROUNDOFF,
    SMALLEST,
    UNDERFLOW,
    Array,
    Exponents,
    add_scaled,
    exact_sum,
    exponents,
    gamma,
    length,
    row_exponents,
    shift_exponent,
    split,
)
from brittle.common.errors import require
from brittle.networks import Network, as_layered

NARROW = 1e-13  # a direction in which no row of W is longer than this share of the longest is none of theirs
HUGE = 2.0**1000  # an input of a neuron beyond it is not known


@dataclass(frozen=True)
class WeightSpan:
    """W = coordinates·basisᵀ + rest, with a basis (d, r) that is orthonormal up to `stretch`.

    For any δ put ε = basisᵀδ: then ‖ε‖ ≤ stretch·‖δ‖ and |w_j·δ - r_j·ε| ≤ rest_j ‖δ‖, whatever rounding did.
    """

    coordinates: Array  # (m, r)
    basis: Array | None  # None: the coordinates are W itself
    rest: Array  # (m,)
    stretch: float

    @classmethod
    def of(cls, W: Array) -> "WeightSpan":
        width, dim = W.shape
        if width >= dim:
            basis = _narrow_basis(W)
            return cls(W, None, np.zeros(width), 1.0) if basis is None else cls.within(W, W @ basis, basis)
        Q, R = np.linalg.qr(W.T)
        return cls.within(W, np.ascontiguousarray(R.T), Q)

    @classmethod
    def within(cls, W: Array, rows: Array, Q: Array) -> "WeightSpan":
        """With rows (m, r) near WQ; what they and the columns of Q (d, r) miss is measured."""
        dim, rank = Q.shape
        size = np.linalg.norm(rows, axis=1)
        rest = 2 * np.linalg.norm(W - rows @ Q.T, axis=1) + gamma(rank + 4) * (size * rank**0.5 + _norms(W))
        skew = np.linalg.norm(Q.T @ Q - np.eye(rank)) + gamma(dim + 4) * 2 * rank
        return cls(rows, Q, rest, float(1 + skew))

    def reduce(self, delta: Array) -> Array:
        return delta if self.basis is None else delta @ self.basis

    def lift(self, epsilon: Array) -> Array:
        return epsilon if self.basis is None else self.basis @ epsilon


@dataclass(frozen=True)
class LocalModel:
    """For every ‖δ‖ ≤ ball: margin(x + δ) ≥ beta - error + q·ε + Σ_j c_j φ(a_j + w_j·ε), with ‖ε‖ ≤ stretch·‖δ‖.

    The floats W (k, r), a, c, beta, q are the model, exactly; every rounding made on the way to them is in `error`.
    The network's own input of neuron j differs from a_j + w_j·ε by at most slips_j.
    Neurons that cannot change sign inside the ball are folded into beta and q, or gone; `pure` says that nothing
    negative was folded: then the margin is not negative wherever all neurons with c < 0 are off.
    """

    W: Array
    a: Array
    c: Array
    beta: float
    q: Array
    error: float
    ball: float
    stretch: float
    sizes: Array  # upper bounds on ‖w_j‖
    slips: Array
    pure: bool

    @property
    def reach(self) -> float:
        """No ε of the ball is longer."""
        return self.ball * self.stretch * (1 + 8 * ROUNDOFF)

    def values(self, epsilon: Array) -> Array:
        """The model margin at every row of ε."""
        hidden = np.maximum(self.a + epsilon @ self.W.T, 0)
        return np.asarray(self.beta + epsilon @ self.q + hidden @ self.c)

    def within(self, ball: float) -> "LocalModel":
        """The same example in a smaller ball, where more neurons keep their sign."""
        assert ball <= self.ball
        return replace(self, ball=ball).folded(*_fixed(self.a, self.sizes, self.slips, ball * self.stretch))

    def folded(self, on: NDArray[np.bool_], off: NDArray[np.bool_]) -> "LocalModel":
        """Without neurons of which it is known that they are on, or off, wherever the model is used."""
        if not (on.any() or off.any()):
            return self
        c, a, W = self.c[on], self.a[on], self.W[on]
        keep, reach = ~(on | off), self.reach
        # Folding the neurons that stay on rounds beta and q: at most this much of margin anywhere in the ball.
        moved = np.abs(c) @ (np.abs(a) + reach * self.sizes[on]) + abs(self.beta) + reach * length(self.q)
        return replace(
            self,
            W=self.W[keep],
            a=self.a[keep],
            c=self.c[keep],
            beta=float(self.beta + c @ a),
            q=self.q + c @ W,
            error=self.error + gamma(int(on.sum()) + 4) * float(moved) + UNDERFLOW * (1 + reach),
            sizes=self.sizes[keep],
            slips=self.slips[keep],
            pure=self.pure and not (c < 0).any(),
        )


@dataclass(frozen=True)
class Inputs:
    """The inputs a_j + w_j·ε of all neurons for ‖δ‖ ≤ ball, each within slips_j of the network's own.

    `on` and `off` (m,): those that keep their sign in the ball.
    """

    span: WeightSpan
    a: Array
    sizes: Array
    slips: Array
    ball: float
    on: NDArray[np.bool_]
    off: NDArray[np.bool_]

    @classmethod
    def of(cls, span: WeightSpan, W: Array, b: Array, x: Array, ball: float) -> "Inputs":
        """Around x; the entries of W, whose rows are near 1, and those of b and x may be off by SMALLEST."""
        dim = W.shape[1]
        far, b = b > HUGE, np.clip(b, -HUGE, HUGE)  # a neuron with less is off all the more
        a = W @ x + b
        sizes = np.maximum(_norms(W), _norms(span.coordinates)) * (1 + gamma(dim + 4))
        slips = gamma(dim + 2) * (np.abs(W) @ np.abs(x) + np.abs(b)) + span.rest * ball * (1 + 8 * ROUNDOFF)
        slips += (4 * dim + 4) * SMALLEST * (1 + ball + np.abs(x).sum())
        slips[~W.any(1)] = 0  # a neuron without weights is its bias
        slips[far | ~np.isfinite(a + slips)] = np.inf
        a[~np.isfinite(slips)] = 0
        return cls(span, a, sizes, slips, ball, *_fixed(a, sizes, slips, ball * span.stretch))

    @property
    def ranges(self) -> Array:
        """What the inputs can amount to."""
        return np.asarray(np.abs(self.a) + self.sizes * self.ball)

    def margin(self, c: Array, c0: float, lost: Array | float = 0.0) -> LocalModel:
        """c0 + Σ c_j φ(a_j + w_j·ε); c may carry one rounding of its own (a class pair), and be off by `lost`."""
        live, q = (c != 0) & ~self.off, np.zeros(self.span.coordinates.shape[1])
        lost = np.broadcast_to(lost, c.shape)[live]
        rows, a, c, sizes, slips = (
            self.span.coordinates[live],
            self.a[live],
            c[live],
            self.sizes[live],
            self.slips[live],
        )
        ranges, on = self.ranges[live], self.on[live]
        pair = gamma(1) * (np.abs(c) @ ranges + abs(c0)) + lost @ ranges * (1 + gamma(len(c)))
        error = float(np.abs(c) @ slips * (1 + gamma(len(c))) + pair + UNDERFLOW * (1 + self.ball))
        model = LocalModel(rows, a, c, c0, q, error, self.ball, self.span.stretch, sizes, slips, c0 >= 0)
        return model.folded(on, np.zeros_like(on))


def localise(span: WeightSpan, W: Array, b: Array, c: Array, c0: float, x: Array, ball: float) -> LocalModel:
    """The margin c0 + Σ c_j φ(w_j·(x+δ) + b_j) around x, of numbers near 1."""
    return Inputs.of(span, W, b, x, ball).margin(c, c0)


def _fixed(a: Array, sizes: Array, slips: Array, stretched: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which neurons are on, and which are off, wherever ‖ε‖ ≤ stretched."""
    room = (stretched * (1 + 8 * ROUNDOFF) * sizes + slips) * (1 + 8 * ROUNDOFF)
    off = -a >= room
    return (a >= room) & ~off, off


def _narrow_basis(W: Array) -> Array | None:
    """An orthonormal basis (d, r) of the rows of W; None if they fill all dimensions."""
    Q, R, _ = scipy.linalg.qr(W.T, mode="economic", pivoting=True, check_finite=False)
    steps = np.abs(R.diagonal())
    rank = int((steps > NARROW * steps[0]).sum())
    return np.ascontiguousarray(Q[:, :rank]) if 0 < rank < W.shape[1] else None


def _norms(W: Array) -> Array:
    return np.asarray(np.linalg.norm(W, axis=1))


FLOOR = 2.0**-500  # under the weight of a neuron whose sign is not fixed: its square is a normal float
NORMAL = 2.0**-1000  # a float below it may have lost digits on its way
Rival = dict[int, float]  # the rows of V and c whose sum is a margin, with their signs: the label's own, minus another


@dataclass(frozen=True, eq=False)
class RivalMargin:
    """The margin over one rival around an example, in lengths of `unit`, a power of two that brings the ball near 1."""

    example: Example
    model: LocalModel
    unit: float
    span: WeightSpan

    def ball(self, enclosure: RadiusInterval) -> float:
        """The radius of the enclosure's ball in this unit."""
        return enclosure.ball / self.unit

    def start(self, enclosure: RadiusInterval) -> Array:
        """The shortest known flip as ε."""
        return self.span.reduce(_array(enclosure.flip) / self.unit)

    def attacked(self, enclosure: RadiusInterval, epsilon: Array) -> RadiusInterval:
        """The enclosure after ε was tried as a direction."""
        return self.example.attacked(enclosure, torch.from_numpy(self.span.lift(epsilon).copy())[None])


@dataclass(frozen=True, eq=False)
class TwoLayerMargins:
    """logits = V 2^rows φ(Wx + 2^-rows b)[group] + c: W (m, d) without repeated neurons, V (classes, width).

    The rows of W are near 1. V has one row for a sign network. Neurons that are equal before any scaling are merged, so
    that a kink which cancels in the sum is none; `constant` (classes, k) with its inputs are those without weights.
    """

    W: Array
    rows: Exponents
    b: Array
    V: Array
    c: Array
    group: NDArray[np.intp]
    constant: Array
    constant_inputs: Array

    @classmethod
    def of(cls, network: Network, method: str) -> "TwoLayerMargins":
        layered = as_layered(network, f"method {method}")
        depth = layered.depth
        require(depth == 2, f"the network has {depth} layers; method {method} needs two layers (relaxation takes more)")
        W, V, b, c = map(_array, (*layered.weights, *layered.biases))
        bent = W.any(1)
        _, first, group = np.unique(np.column_stack([W, b])[bent], axis=0, return_index=True, return_inverse=True)
        W, constant_inputs, b = W[bent][first], np.maximum(b[~bent], 0), b[bent][first]
        rows = row_exponents(W)
        return cls(
            shift_exponent(W, -rows[:, None]), rows, b, V[:, bent], c, group.reshape(-1), V[:, ~bent], constant_inputs
        )

    @cached_property
    def span(self) -> WeightSpan:
        return WeightSpan.of(self.W)

    def rivals(self, y: Tensor) -> Iterator[Rival]:
        """One per other class; a sign network has one margin."""
        if len(self.V) == 1:
            yield {0: float(y)}
            return
        for rival in range(len(self.V)):
            if rival != int(y):
                yield {int(y): 1.0, rival: -1.0}

    def over(self, rival: Rival, example: Example, ball: float) -> RivalMargin:
        """The margin over a rival in a ball around the example."""
        exponent = math.frexp(ball)[1] - 1
        unit = 2.0**exponent
        b, x = shift_exponent(self.b, -self.rows - exponent), shift_exponent(_array(example.x), -exponent)
        inputs = Inputs.of(self.span, self.W, b, x, ball / unit)
        return RivalMargin(example, self._margin(inputs, rival, exponent), unit, self.span)

    def _margin(self, inputs: Inputs, rival: Rival, exponent: int) -> LocalModel:
        """Outputs in a unit of their own: the largest term of this margin in this ball is near 1."""
        c, by = self._outputs(rival)
        c0, c0_by = self._height(rival)
        by = by + self.rows + exponent
        terms = np.where(inputs.off, ABSENT, exponents(c) + by + exponents(inputs.ranges))
        top = max(int(terms.max(initial=ABSENT)), c0_by if c0 else ABSENT)
        c, lost = _floored(shift_exponent(c, by - top), np.sign(c), np.where(inputs.on, SMALLEST, FLOOR))
        height = float(shift_exponent(np.array(c0), c0_by - top))
        return inputs.margin(c, height or math.copysign(SMALLEST, c0) if c0 else 0.0, lost)

    def _outputs(self, rival: Rival) -> tuple[Array, Exponents]:
        """The margin's weight of every merged neuron as c·2^by, rounded once: its sign is right."""
        outputs = np.stack([sign * self.V[row] for row, sign in rival.items()])
        c, by = np.empty(len(self.W)), np.empty(len(self.W), dtype=np.int64)
        if len(self.W) == outputs.shape[1]:
            c[self.group], by[self.group] = add_scaled(outputs)
            return c, by
        parts: list[list[float]] = [[] for _ in self.W]
        for neuron, values in zip(self.group, outputs.T, strict=True):
            parts[neuron].extend(values)
        for neuron, values in enumerate(parts):
            c[neuron], by[neuron] = exact_sum(values)
        return c, by

    def _height(self, rival: Rival) -> tuple[float, int]:
        """The margin's constant term as c0·2^by, rounded once: its sign is right."""
        biases = [sign * self.c[row] for row, sign in rival.items()]
        if not self.constant.size:
            return exact_sum(biases)
        total = sum(map(Fraction, biases), Fraction(0))
        for row, sign in rival.items():
            for v, z in zip(self.constant[row], self.constant_inputs, strict=True):
                total += Fraction(sign * v) * Fraction(z)
        return split(total)


def _floored(c: Array, signs: Array, least: Array) -> tuple[Array, Array]:
    """Weights that are not smaller than `least`, unless they are 0, and by how much they may be off."""
    small = np.abs(c) < np.maximum(least, NORMAL)
    return np.where(small, signs * np.maximum(np.abs(c), least), c), np.where(small, np.abs(signs) * least, 0.0)


def _array(values: Tensor) -> Array:
    return np.ascontiguousarray(values.detach().double().numpy())
