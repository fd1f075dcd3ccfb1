"""A layered network inside the ball of one attack: few dimensions, numbers near 1, and what rounding did on the way."""

import math
from dataclasses import dataclass, replace

import numpy as np

from brittle.certificates.layers import DeepMargins
from brittle.certificates.neighbourhood import Span
from brittle.certificates.rounding import ROUNDOFF, SQUARES, UNDERFLOW, gamma
from brittle.certificates.scales import Array, Exponents, shifted


@dataclass(frozen=True, eq=False)
class Ball:
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
    span: Span

    @classmethod
    def of(cls, margins: DeepMargins, radius: float) -> "Ball":
        """Around the example of `margins`, for ‖δ‖ ≤ radius (in the network's own unit)."""
        mantissa, by = math.frexp(radius)
        W, b, x = (each.numpy() for each in (margins.weights[0], margins.biases[0], margins.x))
        closer, dim = by - margins.exponent, W.shape[1]
        a = W @ x + b
        slips = gamma(dim + 2) * (np.abs(W) @ np.abs(x) + np.abs(b)) + UNDERFLOW * (1 + np.abs(x).sum())
        # Squares are taken before anything is brought into the ball's unit, which may be far below that of x.
        range_1 = shifted((np.linalg.norm(W, axis=1) + SQUARES) * (1 + gamma(dim + 6)), closer) * mantissa + UNDERFLOW
        live = a + (range_1 + slips) * (1 + 8 * ROUNDOFF) > 0
        live[0] |= not live.any()
        span = Span.of(W[live])
        first = np.zeros((len(W), span.coordinates.shape[1]))
        first[live] = shifted(span.coordinates, closer)
        slips[live] += shifted((span.rest + SQUARES) * (1 + 8 * ROUNDOFF), closer) * mantissa + UNDERFLOW * (1 + dim)
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

    def in_units(self, units: list[Exponents]) -> "Ball":
        """The same network with z_l in units of 2^units[l-1], hidden layers first and the margins last."""
        first, inputs = units[0], units[:-1]
        weights = [
            shifted(W, before[None, :] - after[:, None])
            for W, before, after in zip(self.weights, inputs, units[1:], strict=True)
        ]
        return replace(
            self,
            first=shifted(self.first, -first[:, None]),
            a=shifted(self.a, -first),
            slips=shifted(self.slips, -first) + UNDERFLOW,
            range_1=shifted(self.range_1, -first) + UNDERFLOW,
            weights=tuple(weights),
            biases=tuple(shifted(b, -unit) for b, unit in zip(self.biases, units[1:], strict=True)),
        )
