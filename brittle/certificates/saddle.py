"""The best multipliers of the dual bound at fixed curvatures: Newton's method on a saddle in (ε, μ).

With the slopes g eliminated the bound is max_μ min_ε ½εᵀAε + μ(β + q·ε) + Σ θ_j(a_j + w_j·ε, μ), A = I - M.
θ is the convex envelope of a concave neuron plus its parabola; the kinks of the others (convex neurons, branch
constraints) are smoothed by a proximal term around the last g, which outer rounds move on: a method of multipliers.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from brittle.certificates.dual_bound import LARGEST, DualPoint, Kind, Kinds, proven_radius
from brittle.certificates.margins import LocalModel
from brittle.certificates.rounding import Array, Factor, factor, gram, remainder
from brittle.common.time_limit import check_time

STIFFNESS = 5.0  # curvature of the smoothed kinks, in units of 1/‖w‖², in the first rounds
STIFFEST = 1e5  # times that, in late ones


class SaddleIterate(NamedTuple):
    """A candidate: dual value, μ, g (k,) and the point ε (r,) that minimises the Lagrangian there."""

    value: float
    multiplier: float
    slopes: Array
    point: Array


class Concave(NamedTuple):
    """The concave neurons: which they are, and their inputs at 0, weights and curvatures."""

    rows: NDArray[np.intp]
    a: Array
    c: Array
    kappa: Array


class KinkedSaddle(NamedTuple):
    """All others: which they are, their inputs at 0, the interval of g/μ, and the first stiffness of their kinks."""

    rows: NDArray[np.intp]
    a: Array
    low: Array
    high: Array
    stiffness: Array


class _Proximal(NamedTuple):
    """The smoothing of one round and the units of its residuals; the centre is a ratio g/μ: it must not hold μ back."""

    centre: Array
    stiffness: Array
    size: float  # of ε
    weight: np.float64  # of the residual in μ, squared

    @classmethod
    def around(cls, point: Array, mu: float, centre: Array, stiffness: Array) -> "_Proximal":
        size = max(float(np.linalg.norm(point)), 1e-100)
        return cls(centre, stiffness, size, np.square(np.float64(mu) / size))


class _Response(NamedTuple):
    """The maximising slopes at (ε, μ), their derivatives in z and μ, and the saddle's gradient."""

    point: Array
    multiplier: float
    slopes: Array
    by_input: Array
    by_multiplier: Array
    gradient: Array
    slack: np.float64
    bend: np.float64  # minus the second derivative in μ
    merit: np.float64  # what Newton's method brings to 0: the gradient's square, with that of the slack


class _Step(NamedTuple):
    """Of Newton's method, in ε and in μ."""

    point: Array
    multiplier: float


@dataclass(frozen=True, eq=False)
class Saddle:
    """One branch with its curvatures κ (k,): the kinds say which neurons are given a sign.

    The saddle is that of margin ≤ -depth, so that its point does not only touch the boundary; the value of a dual point
    is always that for margin ≤ 0.
    """

    model: LocalModel
    kinds: Kinds
    curvatures: Array
    depth: float
    concave: Concave
    kinked: KinkedSaddle
    A: Array
    factor: Factor

    @classmethod
    def at(cls, model: LocalModel, kinds: Kinds, curvatures: Array, depth: float = 0.0) -> "Saddle":
        """For curvatures of which M ≺ I is known."""
        saddle = cls.attempt(model, kinds, curvatures, depth)
        assert saddle is not None
        return saddle

    @classmethod
    def attempt(cls, model: LocalModel, kinds: Kinds, curvatures: Array, depth: float = 0.0) -> "Saddle | None":
        """None unless M ≺ I."""
        bent = Kind.CONCAVE.among(kinds)
        N, K = np.flatnonzero(bent), np.flatnonzero(~bent)
        A = remainder(model.W[N], curvatures[N])
        L = factor(A)
        if L is None:
            return None
        low = np.where(Kind.ACTIVE.among(kinds[K]), -np.inf, 0.0)
        high = np.where(Kind.INACTIVE.among(kinds[K]), np.inf, model.c[K])
        stiffness = STIFFNESS / np.maximum(model.sizes[K] ** 2, 1e-300)
        concave = Concave(N, model.a[N], model.c[N], curvatures[N])
        return cls(model, kinds, curvatures, depth, concave, KinkedSaddle(K, model.a[K], low, high, stiffness), A, L)

    def solve(
        self, start: SaddleIterate, enough: float = np.inf, rounds: int = 4, steps: int = 8, tolerance: float = 1e-6
    ) -> SaddleIterate:
        """Improve on `start`; stops early once the value is `enough`, or no longer rises by its relative tolerance."""
        point, mu, slopes = start.point, start.multiplier, start.slopes
        best = self.evaluate(mu, slopes)
        for turn in range(rounds):
            check_time()
            stiffness = self.kinked.stiffness * min(4.0 ** max(0, turn - 2), STIFFEST)
            proximal = _Proximal.around(point, mu, slopes[self.kinked.rows] / mu, stiffness)
            response = self._smoothed(self._respond(point, mu, proximal), proximal, steps, 1e-2 * tolerance)
            point = response.point
            candidate = self.evaluate(response.multiplier, response.slopes)._replace(point=point)
            gain = candidate.value - best.value
            if gain > 0:
                best = candidate
            elif self._flips(point) and not self._flips(best.point):
                best = best._replace(point=point)
            done = not gain > tolerance * abs(best.value) and (len(self.concave.rows) > 0 or self._flips(point))
            if best.value >= enough or done:
                break
            mu, slopes = candidate.multiplier, candidate.slopes
        return best

    def evaluate(self, mu: float, slopes: Array) -> SaddleIterate:
        """F(μ, g, κ) in plain floating point, and its minimising ε."""
        N, a, c, kappa = self.concave
        g, C = slopes[N], mu * c
        p = mu * self.model.q + slopes @ self.model.W
        x = self.factor.solve(p)
        bent = np.minimum(-(g**2) / (2 * kappa), C * a - (g - C) ** 2 / (2 * kappa))
        linear, form = mu * self._height + slopes[self.kinked.rows] @ self.kinked.a + bent.sum(), p @ x
        if len(N) == 0 and linear > 0 and form > 0:  # F is homogeneous but for its square: scale to the best
            scale = linear / form
            mu, slopes, linear, form = mu * scale, slopes * scale, linear * scale, form * scale**2
        value = linear - 0.5 * form
        return SaddleIterate(float(value) if mu > 0 and np.isfinite(value) else -np.inf, mu, slopes, -x)

    @property
    def _height(self) -> float:
        return self.model.beta - self.model.error

    def _flips(self, point: Array) -> bool:
        return bool(self.model.values(point) < 0)

    def _smoothed(self, response: _Response, proximal: _Proximal, steps: int, tolerance: float) -> _Response:
        """Newton steps towards the saddle with one proximal term."""
        for _ in range(steps):
            check_time()
            step = self._newton(response, float(1e-6 / proximal.weight))
            if step is None:
                break
            response = self._damped(response, step, proximal)
            if response.merit <= (tolerance * proximal.size) ** 2:
                break
        return response

    def _damped(self, response: _Response, step: _Step, proximal: _Proximal) -> _Response:
        """The longest tried part of the step that lowers the merit and keeps μ positive."""
        point, mu, shift = response.point, response.multiplier, step.multiplier
        length = min(1.0, (0.9 if shift < 0 else 9.0) * mu / max(abs(shift), 1e-300))
        while True:
            after = self._respond(point + length * step.point, mu + length * shift, proximal)
            if after.merit <= (1 - 0.2 * length) * response.merit or length < 0.02:
                return after
            length *= 0.4

    def _newton(self, response: _Response, least: float) -> _Step | None:
        """`least` is a curvature in μ, without which a plateau would throw μ away; None if there is no finite step."""
        moving = np.flatnonzero(response.by_input)
        H = factor(self.A + gram(self.model.W[moving], response.by_input[moving]))
        if H is None:
            return None
        coupling = self.model.q + response.by_multiplier @ self.model.W
        by_gradient, by_coupling = H.solve(np.stack([response.gradient, coupling], 1)).T
        curvature = float(response.bend + coupling @ by_coupling)
        shift = float((response.slack - coupling @ by_gradient) / max(curvature, least))
        step = -by_gradient - by_coupling * shift
        return _Step(step, shift) if np.isfinite(shift) and np.isfinite(step).all() else None

    def _respond(self, point: Array, mu: float, proximal: _Proximal) -> _Response:
        z = self.model.a + self.model.W @ point
        g, by_z, by_mu = np.empty_like(z), np.empty_like(z), np.empty_like(z)
        K, _, low, high, _ = self.kinked
        centre, stiffness, _, weight = proximal
        raw, highest = mu * centre + stiffness * z[K], mu * high
        g[K] = np.minimum(np.maximum(raw, low), highest)
        capped, floored = raw >= highest, raw <= low
        by_z[K] = np.where(capped | floored, 0.0, stiffness)
        share = np.where(capped, high, np.where(floored, 0.0, centre))
        by_mu[K] = share
        bend = (share - centre) ** 2 @ (1 / stiffness)
        slack = self._height + self.depth + self.model.q @ point + share @ z[K] - mu * bend
        N, a, c, kappa = self.concave
        z_N, t = z[N], -mu * c / (2 * kappa)
        middle, on = np.abs(z_N) < t, z_N >= t
        half = np.where(middle, 0.5, on)  # the part of C in the slope
        g[N] = half * mu * c + kappa * (np.where(middle, 0.0, z_N) - a)
        by_z[N] = np.where(middle, 0.0, kappa)
        by_mu[N] = half * c
        slack += c @ np.where(middle, (z_N + t) / 2, np.where(on, z_N, 0.0))
        bend += (c[middle] ** 2 / (4 * kappa[middle])).sum()
        gradient = self.A @ point + mu * self.model.q + g @ self.model.W
        merit = np.float64(gradient @ gradient + weight * np.square(slack))
        return _Response(point, mu, g, by_z, by_mu, gradient, np.float64(slack), np.float64(bend), merit)


@dataclass(frozen=True, eq=False)
class SolvedSaddle:
    """A saddle with an iterate at which it is solved, or nearly."""

    saddle: Saddle
    iterate: SaddleIterate

    @property
    def model(self) -> LocalModel:
        return self.saddle.model

    @property
    def value(self) -> float:
        """F in plain floating point."""
        return self.iterate.value

    @property
    def point(self) -> Array:
        """The relaxed solution ε."""
        return self.iterate.point

    @property
    def concave_inputs(self) -> Array:
        """What the concave neurons see at the relaxed solution."""
        concave = self.saddle.concave
        return np.asarray(concave.a + self.model.W[concave.rows] @ self.point)

    @property
    def dual_point(self) -> DualPoint:
        """With the ratios g/μ and κ/μ kept, a smaller μ stays feasible."""
        mu = self.iterate.multiplier
        return DualPoint(min(mu, LARGEST), self.iterate.slopes / mu, self.saddle.curvatures / mu, self.saddle.kinds)

    @property
    def proven_radius(self) -> float:
        """What the dual point proves, rounding paid for."""
        return proven_radius(self.model, self.dual_point)
