"""The margin over one rival in one branch, as a problem in quadratic forms.

The variables are ξ = (ε, h, 1) with the outputs h of the free neurons; every z and the margin f are linear forms in ξ,
because neurons whose sign is settled are z itself, or 0. Flips of the branch satisfy, each with its multiplier,

    f ≤ 0 (μ ≥ 0),
    free:    h(h-z) = 0 (λ),  h(z-u) ≤ 0 (ρ ≥ 0),  (z-h)(z-l) ≤ 0 (τ ≥ 0),
    settled: (z-l)(z-u) ≤ 0 (σ ≥ 0).

Each is a product (a·ξ)(b·ξ) of two forms. The Lagrangian ½‖ε‖² + Σ y (a·ξ)(b·ξ) - t is ½ξᵀSξ with
S = S_0 + Σ y (abᵀ + baᵀ). The model's forms are floats; `slips` bound how far the network's own z and margin are from
them at flips of the branch.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brittle.certificates.deep_exact.ball import AttackBall, LayerIntervals
from brittle.certificates.rounding import SQUARES, UNDERFLOW, Array, Exponents, exponents, gamma, shift_exponent

Signs = NDArray[np.int8]
OFF, FREE, ON = -1, 0, 1
NEGLIGIBLE = 1e-12  # of a neuron's size: what reaches less beyond its kink is settled, and the rest is a slip


@dataclass(frozen=True, eq=False)
class Root:
    """The ball with every z in a unit of its own, and its free neurons in one list, layer by layer.

    `signs` has one array per hidden layer; `lost` (per layer) is how far φ(z) of a settled neuron may be from z, or 0;
    `places` says which neurons of each layer are in the list; low and high (n,) are their intervals.
    """

    ball: AttackBall
    signs: tuple[Signs, ...]
    lost: tuple[Array, ...]
    places: tuple[NDArray[np.intp], ...]
    low: Array
    high: Array

    @classmethod
    def of(cls, ball: AttackBall, known: LayerIntervals) -> "Root":
        units = [units_of(low, high) for low, high in zip(known.low, known.high, strict=True)]
        ball = ball.in_units([*units, margin_units(ball, units[-1])])
        low = [shift_exponent(each, -unit) - UNDERFLOW for each, unit in zip(known.low, units, strict=True)]
        high = [shift_exponent(each, -unit) + UNDERFLOW for each, unit in zip(known.high, units, strict=True)]
        signs, lost = zip(*map(_settled, low, high, _sizes(ball, high)), strict=True)
        places = tuple(np.flatnonzero(each == FREE) for each in signs)
        ends = [
            np.concatenate([values[place] for values, place in zip(part, places, strict=True)]) for part in (low, high)
        ]
        return cls(ball, signs, lost, places, *ends)

    @property
    def branch(self) -> "SignBranch":
        """The whole ball."""
        return SignBranch(np.zeros(len(self.low), dtype=np.int8), self.low, self.high)

    def by_layer(self, values: Array | Signs) -> list[NDArray[np.generic]]:
        """Values of the listed neurons, layer by layer."""
        return np.split(values, np.cumsum([len(place) for place in self.places])[:-1])


@dataclass(frozen=True, eq=False)
class SignBranch:
    """A part of the ball: signs (n,) of the root's free neurons, and intervals that hold at every flip in it."""

    signs: Signs
    low: Array
    high: Array

    def tightened(self, low: Array, high: Array) -> "SignBranch":
        """With these intervals, and the signs that follow from them."""
        settled = np.where(low >= 0, ON, np.where(high <= 0, OFF, FREE)).astype(np.int8)
        return SignBranch(np.where(self.signs == FREE, settled, self.signs), low, high)

    def split(self, neuron: int, sign: int) -> "SignBranch":
        """The part in which the neuron has the sign."""
        signs, low, high = self.signs.copy(), self.low.copy(), self.high.copy()
        signs[neuron] = sign
        low[neuron], high[neuron] = (max(low[neuron], 0.0), high[neuron]) if sign == ON else (low[neuron], 0.0)
        return SignBranch(signs, low, high)


class IntervalEnds(NamedTuple):
    """Of the intervals of the free neurons (n,) and of the settled ones (k,)."""

    low: Array
    high: Array
    settled_low: Array
    settled_high: Array


class SdpMultipliers(NamedTuple):
    """μ and t, λ, ρ, τ (n,) of the free neurons, σ (k,) of the settled ones."""

    mu: float
    t: float
    lam: Array
    rho: Array
    tau: Array
    sigma: Array


@dataclass(frozen=True, eq=False)
class SdpProblem:
    """rows (1+n+k, p+n+1): f, z of the free neurons and z of the settled ones as forms in ξ; slips (1+n+k,) of them.

    free (n,) and settled (k,) are places in the root's list, low and high (n+k,) the intervals in this order.
    """

    rows: Array
    slips: Array
    low: Array
    high: Array
    free: NDArray[np.intp]
    settled: NDArray[np.intp]

    @classmethod
    def of(cls, root: Root, branch: SignBranch, rival: int | None) -> "SdpProblem":
        """`rival` is a row of the last layer; without one the margin is -1, which forbids nothing."""
        free, settled = np.flatnonzero(branch.signs == FREE), np.flatnonzero(branch.signs != FREE)
        order = np.concatenate([free, settled])
        rows, slips, f, f_slip = _forms(root, branch, rival)
        rows, slips = np.vstack([f, rows[order]]), np.concatenate([[f_slip], slips[order]])
        return cls(rows, slips, branch.low[order], branch.high[order], free, settled)

    @property
    def n(self) -> int:
        return len(self.free)

    @property
    def k(self) -> int:
        return len(self.settled)

    @property
    def p(self) -> int:
        """The number of coordinates of ε."""
        return int(self.rows.shape[1]) - 1 - self.n

    @property
    def ends(self) -> IntervalEnds:
        n = self.n
        return IntervalEnds(self.low[:n], self.high[:n], self.low[n:], self.high[n:])

    @property
    def signed(self) -> NDArray[np.bool_]:
        """Which multipliers must not be negative."""
        found = np.ones(2 + 3 * self.n + self.k, dtype=bool)
        found[1 : 2 + self.n] = False
        return found

    def within(self, branch: SignBranch) -> "SdpProblem":
        """The same signs with the branch's intervals."""
        order = np.concatenate([self.free, self.settled])
        return replace(self, low=branch.low[order], high=branch.high[order])

    def placed(self, low: Array, high: Array, branch: SignBranch) -> SignBranch:
        """The branch with intervals in this problem's order."""
        new_low, new_high, order = branch.low.copy(), branch.high.copy(), np.concatenate([self.free, self.settled])
        new_low[order], new_high[order] = low, high
        return branch.tightened(new_low, new_high)

    def multipliers(self, y: Array) -> SdpMultipliers:
        n = self.n
        return SdpMultipliers(float(y[0]), float(y[1]), *np.split(y[2:], [n, 2 * n, 3 * n]))

    def lagrangian(self, y: Array, objective: float = 1.0) -> Array:
        """S at the multipliers y; with `objective` 0 its linear part."""
        n, p, m, Z = self.n, self.p, self.multipliers(y), self.rows[1:]
        curved = 2 * np.concatenate([m.tau, m.sigma])
        if (curved >= 0).all():
            Z = np.sqrt(curved)[:, None] * Z
            S = Z.T @ Z  # one array times itself: half the work of a general product
        else:
            S = (Z.T * curved) @ Z
        S.flat[: p * (p + n + 2) : p + n + 2] += objective
        mixed = (m.rho - m.lam - m.tau)[:, None] * self.rows[1 : 1 + n]
        S[p : p + n] += mixed
        S[:, p : p + n] += mixed.T
        h = np.arange(p, p + n)
        S[h, h] += 2 * m.lam
        linear, constant = self._linear_terms(m)
        S[-1] += linear
        S[:, -1] += linear
        S[-1, -1] += constant
        return np.asarray(S)

    def border(self, y: Array, moved: "SdpProblem", S: Array) -> Array:
        """The last row of S at y after the intervals became those of `moved`: no other row has intervals in it."""
        m = self.multipliers(y)
        (old, old_constant), (new, constant) = self._linear_terms(m), moved._linear_terms(m)
        row = S[-1] + (new - old)
        row[-1] += (new - old)[-1] + constant - old_constant
        return np.asarray(row)

    def _linear_terms(self, m: SdpMultipliers) -> tuple[Array, float]:
        """The form, and twice the constant, that the linear parts of all constraints add up to."""
        n, p, ends = self.n, self.p, self.ends
        by_z = np.concatenate([m.tau * ends.low, m.sigma * (ends.settled_low + ends.settled_high)])
        linear = m.mu * self.rows[0] - by_z @ self.rows[1:]
        linear[p : p + n] += m.tau * ends.low - m.rho * ends.high
        return linear, 2 * float(m.sigma @ (ends.settled_low * ends.settled_high) - m.t)

    def gram(self, X: Array) -> Array:
        """Products in X of the forms 1, f, h, z free, z settled."""
        n, p = self.n, self.p
        W = self.rows @ X
        h, one = slice(p, p + n), slice(p + n, None)
        own, to_h, to_one = W @ self.rows.T, W[:, h], W[:, one]
        first = [X[one, one], to_one[:1].T, X[one, h], to_one[1:].T]
        margin = [to_one[:1], own[:1, :1], to_h[:1], own[:1, 1:]]
        outputs = [X[h, one], to_h[:1].T, X[h, h], to_h[1:].T]
        inputs = [to_one[1:], own[1:, :1], to_h[1:], own[1:, 1:]]
        return np.block([first, margin, outputs, inputs])

    def left(self, G: Array) -> Array:
        """The first forms of all constraints, from the rows of G, which are those of `gram`."""
        n, (one, h, z, k) = self.n, self._parts(G)
        found = np.empty((2 + 3 * n + self.k, G.shape[1]))
        found[0], found[1], found[2 : 2 + n], found[2 + n : 2 + 2 * n] = one, -one, h, h
        np.subtract(z, h, out=found[2 + 2 * n : 2 + 3 * n])
        np.subtract(k, self.low[n:, None] * one, out=found[2 + 3 * n :])
        return found

    def right(self, G: Array) -> Array:
        """The second ones."""
        n, (one, h, z, k) = self.n, self._parts(G)
        found = np.empty((2 + 3 * n + self.k, G.shape[1]))
        found[0], found[1] = G[1], one
        np.subtract(h, z, out=found[2 : 2 + n])
        np.subtract(z, self.high[:n, None] * one, out=found[2 + n : 2 + 2 * n])
        np.subtract(z, self.low[:n, None] * one, out=found[2 + 2 * n : 2 + 3 * n])
        np.subtract(k, self.high[n:, None] * one, out=found[2 + 3 * n :])
        return found

    def _parts(self, G: Array) -> tuple[Array, Array, Array, Array]:
        n = self.n
        return G[0], G[2 : 2 + n], G[2 + n : 2 + 2 * n], G[2 + 2 * n :]

    def products(self, X: Array) -> Array:
        """2a·Xb of every constraint, without the whole Gram matrix."""
        n, p, i, ends = self.n, self.p, np.arange(self.n), self.ends
        W = self.rows @ X
        own, one, corner = (W * self.rows).sum(1), W[:, -1], X[-1, -1]
        hh, hz, h1 = X.diagonal()[p : p + n], W[1 + i, p + i], X[-1, p : p + n]
        zz, z1, kk, k1 = own[1 : 1 + n], one[1 : 1 + n], own[1 + n :], one[1 + n :]
        settled = kk - (ends.settled_low + ends.settled_high) * k1 + ends.settled_low * ends.settled_high * corner
        below = zz - ends.low * z1 - hz + ends.low * h1
        return 2 * np.concatenate([[one[0], -corner], hh - hz, hz - ends.high * h1, below, settled])


def carry_multipliers(values: Array, old: SdpProblem, new: SdpProblem, signs: Signs) -> Array:
    """Multipliers of `old`, or their slacks, for a branch with more signs: σ is ρ of what is on, τ of what is off."""
    n, table = old.n, np.zeros((4, len(signs)))
    table[:3, old.free] = values[2 : 2 + 3 * n].reshape(3, n)
    table[3, old.settled] = values[2 + 3 * n :]
    table[3, old.free] = np.where(signs[old.free] == ON, table[1, old.free], table[2, old.free])
    return np.concatenate([values[:2], table[:3, new.free].ravel(), table[3, new.settled]])


def _forms(root: Root, branch: SignBranch, rival: int | None) -> tuple[Array, Array, Array, float]:
    """Every listed z and the margin as forms in ξ, with their slips."""
    ball, p, n = root.ball, root.ball.first.shape[1], int((branch.signs == FREE).sum())
    signs, high, place = root.by_layer(branch.signs), root.by_layer(branch.high), p
    reach = np.concatenate([np.zeros(p), np.maximum(branch.high[branch.signs == FREE], 0), [1.0]])
    Z, slip = np.zeros((len(ball.a), p + n + 1)), ball.slips
    Z[:, :p], Z[:, -1] = ball.first, ball.a
    rows, slips = [], []
    for layer, listed in enumerate(root.places):
        rows.append(Z[listed])
        slips.append(slip[listed])
        sign = root.signs[layer].copy()
        sign[listed] = signs[layer]
        free, on = np.flatnonzero(sign == FREE), np.flatnonzero(sign == ON)
        H, off, size = np.zeros_like(Z), root.lost[layer].copy(), np.zeros(len(Z))
        H[on] = Z[on]
        H[free, place + np.arange(len(free))] = 1
        place += len(free)
        off[on] += slip[on]
        size[on] = (np.linalg.norm(Z[on, :p], axis=1) + SQUARES) * ball.reach + np.abs(Z[on]) @ reach
        size[listed] = np.where(sign[listed] == FREE, np.maximum(high[layer], 0), size[listed])
        W, b = ball.weights[layer], ball.biases[layer]
        if layer + 1 == ball.depth:
            if rival is None:
                f = np.zeros(p + n + 1)
                f[-1] = -1.0
                return np.vstack(rows), np.concatenate(slips), f, 0.0
            W, b = W[rival : rival + 1], b[rival : rival + 1]
        Z = W @ H
        Z[:, -1] += b
        # The rows of W and b may carry one rounding of their own (a pair of classes).
        slip = np.abs(W) @ off * (1 + gamma(len(off) + 2)) + UNDERFLOW * (1 + (size + off).sum())
        slip = slip + gamma(len(off) + 6) * (np.abs(W) @ (size + off) + np.abs(b))
    return np.vstack(rows), np.concatenate(slips), Z[0], float(slip[0])


def units_of(low: Array, high: Array) -> Exponents:
    """The exponent of the larger end of every interval."""
    return np.asarray(np.clip(exponents(np.maximum(np.abs(low), np.abs(high))), -1000, 1000))


def margin_units(ball: AttackBall, units: Exponents) -> Exponents:
    """The exponent of every margin's largest term in the ball."""
    W, b = ball.weights[-1], ball.biases[-1]
    terms = exponents(W) + units[None, :]
    return np.asarray(np.clip(np.maximum(terms.max(1), exponents(b)), -1000, 1000))


def _sizes(ball: AttackBall, high: list[Array]) -> list[Array]:
    """What the terms of every z amount to in the ball."""
    sizes = [np.abs(ball.a) + ball.range_1]
    for W, b, h in zip(ball.weights[:-1], ball.biases[:-1], high[:-1], strict=True):
        sizes.append(np.abs(W) @ np.maximum(h, 0) + np.abs(b))
    return sizes


def _settled(low: Array, high: Array, size: Array) -> tuple[Signs, Array]:
    """Signs that hold in the whole ball, or nearly, and how far φ(z) may be from z, or 0, for that."""
    tiny = NEGLIGIBLE * size + 2 * UNDERFLOW
    signs = np.where(high <= tiny, OFF, np.where(low >= -tiny, ON, FREE)).astype(np.int8)
    lost = np.where(signs == OFF, np.maximum(high, 0), np.where(signs == ON, np.maximum(-low, 0), 0.0))
    return signs, lost
