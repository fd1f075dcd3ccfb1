"""The best multipliers of the dual bound at fixed curvatures: Newton's method on a saddle in (ε, μ).

With the slopes g eliminated the bound is max_μ min_ε ½εᵀAε + μ(β + q·ε) + Σ θ_j(a_j + w_j·ε, μ), A = I - M.
θ is the convex envelope of a concave neuron plus its parabola; the kinks of the others (convex neurons, branch
constraints) are smoothed by a proximal term around the last g, which outer rounds move on: a method of multipliers.
"""

from dataclasses import dataclass, replace

import numpy as np

from brittle.certificates.cholesky import factor, gram, remainder
from brittle.certificates.dual_bound import LARGEST, DualPoint, Kind, Kinds
from brittle.certificates.neighbourhood import LocalModel
from brittle.certificates.scales import Array

STIFFNESS = 5.0  # curvature of the smoothed kinks, in units of 1/‖w‖², in the first rounds
STIFFEST = 1e5  # times that, in late ones


@dataclass(frozen=True)
class Iterate:
    """A candidate: dual value, μ, g (k,) and the point ε (r,) that minimises the Lagrangian there."""

    value: float
    multiplier: float
    slopes: Array
    point: Array


@dataclass(frozen=True)
class _Response:
    """The maximising slopes at (ε, μ), their derivatives in z and μ, and the saddle's gradient."""

    slopes: Array
    by_input: Array
    by_multiplier: Array
    gradient: Array
    slack: np.float64
    bend: np.float64  # minus the second derivative in μ


class Saddle:
    """One branch with its curvatures κ (k,): the kinds say which neurons are given a sign.

    The saddle is that of margin ≤ -depth, so that its point does not only touch the boundary; the value of a dual point
    is always that for margin ≤ 0.
    """

    def __init__(self, model: LocalModel, kinds: Kinds, kappa: Array, depth: float = 0.0) -> None:
        self.model, self.kinds, self.kappa = model, kinds, kappa
        self.N, self.K = np.flatnonzero(kinds == Kind.CONCAVE), np.flatnonzero(kinds != Kind.CONCAVE)
        self.a, self.c, self.k = model.a[self.N], model.c[self.N], kappa[self.N]
        self.A = remainder(model.W[self.N], self.k)
        self.L = factor(self.A)
        self.beta, self.depth = model.beta - model.error, depth
        kinds_K = kinds[self.K]
        self.low = np.where(kinds_K == Kind.ACTIVE, -np.inf, 0.0)
        self.c_K = np.where(kinds_K == Kind.INACTIVE, np.inf, model.c[self.K])
        self.stiff = STIFFNESS / np.maximum(model.sizes[self.K] ** 2, 1e-300)

    @property
    def feasible(self) -> bool:
        return self.L is not None

    def solve(
        self, start: Iterate, enough: float = np.inf, rounds: int = 4, steps: int = 8, tolerance: float = 1e-6
    ) -> Iterate:
        """Improve on `start`; stops early once the value is `enough`, or no longer rises by its relative tolerance."""
        point, mu, slopes = start.point, start.multiplier, start.slopes
        best = self.evaluate(mu, slopes)
        soft = self.stiff
        for turn in range(rounds):
            self.stiff = soft * min(4.0 ** max(0, turn - 2), STIFFEST)
            point, mu, slopes = self._inner(point, mu, slopes, steps, 1e-2 * tolerance)
            found = replace(self.evaluate(mu, slopes), point=point)
            gain = found.value - best.value
            if gain > 0:
                best = found
            elif self._flips(point) and not self._flips(best.point):
                best = replace(best, point=point)
            done = not gain > tolerance * abs(best.value) and (len(self.N) > 0 or self._flips(point))
            if best.value >= enough or done:
                break
            mu, slopes = found.multiplier, found.slopes
        self.stiff = soft
        return best

    def evaluate(self, mu: float, slopes: Array) -> Iterate:
        """F(μ, g, κ) in plain floating point, and its minimising ε."""
        model, g, C = self.model, slopes[self.N], mu * self.c
        assert self.L is not None
        p = mu * model.q + slopes @ model.W
        x = self.L.solve(p)
        bent = np.minimum(-(g**2) / (2 * self.k), C * self.a - (g - C) ** 2 / (2 * self.k))
        linear, form = mu * self.beta + slopes[self.K] @ model.a[self.K] + bent.sum(), p @ x
        if len(self.N) == 0 and linear > 0 and form > 0:  # F is homogeneous but for its square: scale to the best
            scale = linear / form
            mu, slopes, linear, form = mu * scale, slopes * scale, linear * scale, form * scale**2
        value = linear - 0.5 * form
        return Iterate(float(value) if mu > 0 and np.isfinite(value) else -np.inf, mu, slopes, -x)

    def _flips(self, point: Array) -> bool:
        return bool(self.model.values(point) < 0)

    def dual_point(self, found: Iterate) -> DualPoint:
        """With the ratios g/μ and κ/μ kept, a smaller μ stays feasible."""
        mu = found.multiplier
        return DualPoint(min(mu, LARGEST), found.slopes / mu, self.kappa / mu, self.kinds)

    def _inner(
        self, point: Array, mu: float, centre: Array, steps: int, tolerance: float
    ) -> tuple[Array, float, Array]:
        """Damped Newton steps around one proximal centre, which is a ratio g/μ: it must not hold μ back."""
        centre = centre / mu
        now = self._respond(point, mu, centre)
        size = max(float(np.linalg.norm(point)), 1e-100)
        weight = np.square(np.float64(mu) / size)
        merit = now.gradient @ now.gradient + weight * now.slack**2
        for _ in range(steps):
            step, shift = self._newton(now, float(1e-6 / weight))
            if not (np.isfinite(shift) and np.isfinite(step).all()):
                break
            length = min(1.0, (0.9 if shift < 0 else 9.0) * mu / max(abs(shift), 1e-300))
            while True:
                after = self._respond(point + length * step, mu + length * shift, centre)
                new = after.gradient @ after.gradient + weight * after.slack**2
                if new <= (1 - 0.2 * length) * merit or length < 0.02:
                    break
                length *= 0.4
            point, mu, now, merit = point + length * step, mu + length * shift, after, new
            if merit <= (tolerance * size) ** 2:
                break
        return point, mu, now.slopes

    def _newton(self, now: _Response, least: float) -> tuple[Array, float]:
        """A step in (ε, μ); `least` is a curvature in μ, without which a plateau would throw μ away."""
        moving = np.flatnonzero(now.by_input)
        W = self.model.W[moving]
        H = self.A + gram(W, now.by_input[moving])
        L = factor(H)
        if L is None:
            return np.full(len(H), np.nan), np.nan
        coupling = self.model.q + now.by_multiplier @ self.model.W
        solved = L.solve(np.stack([now.gradient, coupling], 1))
        curvature = float(now.bend + coupling @ solved[:, 1])
        shift = (now.slack - coupling @ solved[:, 0]) / max(curvature, least)
        return -solved[:, 0] - solved[:, 1] * shift, float(shift)

    def _respond(self, point: Array, mu: float, centre: Array) -> _Response:
        model = self.model
        z = model.a + model.W @ point
        g, by_z, by_mu = np.empty_like(z), np.empty_like(z), np.empty_like(z)
        ratio, raw, high = centre[self.K], mu * centre[self.K] + self.stiff * z[self.K], mu * self.c_K
        g[self.K] = np.minimum(np.maximum(raw, self.low), high)
        capped, floored = raw >= high, raw <= self.low
        by_z[self.K] = np.where(capped | floored, 0.0, self.stiff)
        share = np.where(capped, self.c_K, np.where(floored, 0.0, ratio))
        by_mu[self.K] = share
        bend = (share - ratio) ** 2 @ (1 / self.stiff)
        slack = self.beta + self.depth + model.q @ point + share @ z[self.K] - mu * bend
        z_N, t = z[self.N], -mu * self.c / (2 * self.k)
        middle, on = np.abs(z_N) < t, z_N >= t
        half = np.where(middle, 0.5, on)  # the part of C in the slope
        g[self.N] = half * mu * self.c + self.k * (np.where(middle, 0.0, z_N) - self.a)
        by_z[self.N] = np.where(middle, 0.0, self.k)
        by_mu[self.N] = half * self.c
        slack += self.c @ np.where(middle, (z_N + t) / 2, np.where(on, z_N, 0.0))
        bend += (self.c[middle] ** 2 / (4 * self.k[middle])).sum()
        gradient = self.A @ point + mu * model.q + g @ model.W
        return _Response(g, by_z, by_mu, gradient, np.float64(slack), np.float64(bend))
