"""One example seen from inside the attack's ball: a two-layer margin in few neurons, few dimensions, and its error."""

from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from brittle.certificates.rounding import ROUNDOFF, SMALLEST, UNDERFLOW, gamma, length
from brittle.certificates.scales import Array

NARROW = 1e-13  # a direction in which no row of W is longer than this share of the longest is none of theirs
HUGE = 2.0**1000  # an input of a neuron beyond it is not known


@dataclass(frozen=True)
class Span:
    """W = coordinates·basisᵀ + rest, with a basis (d, r) that is orthonormal up to `stretch`.

    For any δ put ε = basisᵀδ: then ‖ε‖ ≤ stretch·‖δ‖ and |w_j·δ - r_j·ε| ≤ rest_j ‖δ‖, whatever rounding did.
    """

    coordinates: Array  # (m, r)
    basis: Array | None  # None: the coordinates are W itself
    rest: Array  # (m,)
    stretch: float

    @classmethod
    def of(cls, W: Array) -> "Span":
        width, dim = W.shape
        if width >= dim:
            basis = _narrow_basis(W)
            return cls(W, None, np.zeros(width), 1.0) if basis is None else cls.within(W, W @ basis, basis)
        Q, R = np.linalg.qr(W.T)
        return cls.within(W, np.ascontiguousarray(R.T), Q)

    @classmethod
    def within(cls, W: Array, rows: Array, Q: Array) -> "Span":
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

    span: Span
    a: Array
    sizes: Array
    slips: Array
    ball: float
    on: NDArray[np.bool_]
    off: NDArray[np.bool_]

    @classmethod
    def of(cls, span: Span, W: Array, b: Array, x: Array, ball: float) -> "Inputs":
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


def localise(span: Span, W: Array, b: Array, c: Array, c0: float, x: Array, ball: float) -> LocalModel:
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
