"""Signs that every short flip shares: what a dual point proves about single neurons, with rounding paid for.

A dual point bounds ½‖ε‖² + μ·margin from below by a quadratic with minimum F at ε*. A flip no longer than r has at most
½r² there, so it lies in the ellipsoid ½(ε-ε*)·A(ε-ε*) ≤ ½r² - F, which is small if the bound is nearly tight. A neuron
whose z = a + w·ε cannot reach 0 in it has one sign at every flip that matters: it is linear there, and costs nothing.
On the other side of its kink a concave neuron also lies above its parabola, by ½κ(z-m)² at least, with m where the two
touch: getting there costs more than the ellipsoid alone says.
Only concave neurons are asked: the bound holds convex ones exactly, and would lose their kinks where no flip is.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brittle.certificates.dual_bound import (
    TINY,
    DualPoint,
    Kind,
    definite,
    feasible_slopes,
    proven_value,
)
from brittle.certificates.margins import LocalModel
from brittle.certificates.rounding import ROUNDOFF, Array, Factor, factor, gamma, length, remainder
from brittle.certificates.saddle import Saddle, SolvedSaddle

FLOORS = (1e-2, 1e-4, 1e-6)  # under the eigenvalues of A, tried in turn: the higher, the less a residual costs


class _Ranges(NamedTuple):
    """Of the neurons (rows) that have a chance: z at ε*, a bound on its error, and a ceiling over w·A⁻¹w.

    Their κ, 0 where they have no parabola, m of the side that z is not on, a bound on its error, and what the network's
    own neuron may lie below the model's there.
    """

    rows: NDArray[np.intp]
    z: Array
    slip: Array
    spread: Array
    kappa: Array
    touch: Array
    touch_slip: Array
    below: Array

    @property
    def price(self) -> Array:
        """Twice what reaching the other side costs at least: min over z there of (z-z*)²/w·A⁻¹w + κ(z-m)².

        Over all z that minimum is (z*-m)²/(w·A⁻¹w + 1/κ); at the kink it lies where the sum still falls towards z*.
        """
        side, far = np.sign(self.z), np.maximum(np.abs(self.z) - self.slip, 0)
        alone = far**2 / self.spread
        apart = np.maximum(np.abs(self.z - self.touch) - self.slip - self.touch_slip, 0)
        with np.errstate(all="ignore"):
            both = np.where(self.kappa > 0, apart**2 / (self.spread + 1 / self.kappa), 0.0)
        kink = alone + self.kappa * np.maximum(np.abs(self.touch) - self.touch_slip, 0) ** 2
        falls = far / self.spread + self.kappa * (side * self.touch - self.touch_slip) >= 0
        more = np.maximum(both, np.where(falls, kink, 0.0)) - self.below
        return np.asarray(np.maximum(alone, more) * (1 - 32 * ROUNDOFF))


def trim(solved: SolvedSaddle, radius: float) -> SolvedSaddle:
    """The same dual point without the neurons whose sign all flips ‖δ‖ ≤ radius of the branch share."""
    saddle, iterate = solved.saddle, solved.iterate
    signs = find_settled_signs(saddle.model, solved.dual_point, radius)
    keep = signs == 0
    if keep.all():
        return solved
    model = replace(saddle.model, ball=radius).folded(signs > 0, signs < 0)
    smaller = Saddle.at(model, saddle.kinds[keep], saddle.curvatures[keep], saddle.depth)
    return SolvedSaddle(
        smaller, smaller.evaluate(iterate.multiplier, iterate.slopes[keep])._replace(point=iterate.point)
    )


def find_settled_signs(model: LocalModel, point: DualPoint, radius: float) -> NDArray[np.int8]:
    """1 or -1 if z is positive, or negative, at all flips ‖δ‖ ≤ radius of the branch; 0 if unknown, and if convex."""
    signs = np.zeros(len(model.c), dtype=np.int8)
    most, least = (radius * model.stretch) ** 2, 2 * proven_value(model, point)
    room = most - least + 16 * ROUNDOFF * (most + abs(least))
    ranges = _ranges(model, point, room) if most > TINY and 0 < room < np.inf else None
    if ranges is None:
        return signs
    signs[ranges.rows] = np.where(ranges.price > room, np.sign(ranges.z), 0)
    signs[(Kind.ACTIVE.among(point.kinds) & (signs < 0)) | (Kind.INACTIVE.among(point.kinds) & (signs > 0))] = 0
    return signs


def _ranges(model: LocalModel, point: DualPoint, room: float) -> _Ranges | None:
    """None if A is not proved to be definite."""
    N = Kind.CONCAVE.among(point.kinds)
    dim, mu = model.W.shape[1], point.multiplier
    kappa, g = mu * point.curvatures[N], mu * feasible_slopes(model, point)
    trace = float(kappa @ model.sizes[N] ** 2)
    A = remainder(model.W[N], kappa)
    L = factor(A)
    floor = next((sigma for sigma in FLOORS if definite(A, trace, len(kappa), sigma) is not None), None)
    if L is None or floor is None:
        return None
    # |Av - fl(Av)| ≤ slant·‖v‖: the rounding in the entries of A, and that of a product with it.
    slant = gamma(len(kappa) + 6) * (1 + trace) + gamma(dim + 4) * (dim + trace)
    p = mu * model.q + g @ model.W
    x = L.solve(p)
    span, load = length(x), mu * length(model.q) + np.abs(g) @ model.sizes
    off = length(p - A @ x) * (1 + gamma(dim)) + slant * span + gamma(len(g) + dim + 6) * (load + span)
    z = model.a - model.W @ x
    bent, touch = np.zeros(len(z)), np.zeros(len(z))
    bent[N], slopes = kappa, feasible_slopes(model, point)
    touch[N] = (model.a + (slopes - np.where(z > 0, 0.0, model.c)) / np.where(N, point.curvatures, 1.0))[N]
    squares = (model.W**2).sum(1)  # at most w·A⁻¹w, because A ⪯ I
    likely = np.flatnonzero((model.c < 0) & (z**2 + bent * squares * touch**2 > room * squares))
    W, size = model.W[likely], model.sizes[likely]
    # The network's own z differs from the model's by `slips`: its sign is meant too.
    slip = gamma(dim + 4) * (np.abs(model.a[likely]) + size * span) + size * off / floor + model.slips[likely]
    far = np.abs(model.a) + np.where(N, (np.abs(slopes) + np.abs(model.c)) / np.where(N, point.curvatures, 1.0), 0.0)
    below = 4 * mu * np.abs(model.c) * model.slips
    spread = _spreads(A, L, W, size, slant, floor)
    parabolas = bent[likely], touch[likely], gamma(8) * far[likely] + model.slips[likely], below[likely]
    return _Ranges(likely, z[likely], slip, spread, *parabolas)


def _spreads(A: Array, L: Factor, W: Array, size: Array, slant: float, floor: float) -> Array:
    """Ceilings over w·A⁻¹w = 2w·v - v·Av + (w-Av)·A⁻¹(w-Av), whatever v is."""
    V = L.solve(W.T)
    product, dim = A @ V, len(A)
    lengths, products = np.linalg.norm(V, axis=0), np.linalg.norm(product, axis=0)
    residual = np.linalg.norm(W.T - product, axis=0) * (1 + gamma(dim)) + slant * lengths
    residual += gamma(2) * (size + products)
    spread = 2 * (W * V.T).sum(1) - (V * product).sum(0) + residual**2 / floor + slant * lengths**2
    return np.asarray(spread + gamma(dim + 8) * (2 * size * lengths + lengths * products))
