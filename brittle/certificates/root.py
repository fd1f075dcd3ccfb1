"""From an attack to a dual point: the start, and rounds of better curvatures and better multipliers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brittle.certificates import curvature
from brittle.certificates.local import Array, Local
from brittle.certificates.rounding import CONCAVE, CONVEX
from brittle.certificates.saddle import Iterate, Saddle

ROOM = (0.9, 0.95)  # of I that the closed-form curvatures may fill, first and later
LEVELS = 30  # of the barrier, at most
DESCENT = 0.3  # from level to level
STEPS = np.linspace(0, 1, 65)  # on the way to the attack's point
BARRIER = 1e-4  # what the barrier may cost of F


@dataclass(frozen=True)
class Solved:
    saddle: Saddle
    iterate: Iterate

    @property
    def point(self) -> Array:
        return self.iterate.point


def initial_kinds(local: Local) -> NDArray[np.int8]:
    """Before any branching."""
    return np.where(local.c < 0, CONCAVE, CONVEX).astype(np.int8)


def first_iterate(local: Local, epsilon: Array) -> Iterate:
    """Where the margin first vanishes on the way to the attack's point, with μ from its slope there: ε = -μ∇f."""
    way = local.values(STEPS[:, None] * epsilon)
    fallen = np.flatnonzero(way <= 0.02 * way[0])
    mu = 0.0
    if len(fallen) and fallen[0] > 0:
        here, slope = STEPS[fallen[0]], (way[fallen[0] - 1] - way[fallen[0]]) * (len(STEPS) - 1)
        epsilon = here * epsilon
        mu = float(epsilon @ epsilon / (here * slope))
    if not (np.isfinite(mu) and mu > 0):
        gradient = local.q + (local.c * (local.a > 0)) @ local.W
        size = gradient @ gradient
        most = local.reach**2 / max(float(way[0]), 1e-100)  # more than the ball can ask for
        mu = min(float(way[0] / size), most) if size > 0 and way[0] > 0 else min(1.0, most)
        epsilon = -mu * gradient
    z = local.a + local.W @ epsilon
    return Iterate(-np.inf, mu, mu * np.where(local.c > 0, local.c * (z > 0), 0.0), epsilon)


def closed_form(local: Local, start: Iterate, passes: int, enough: float = np.inf) -> Solved:
    """Curvatures in closed form around the last point, then multipliers; the best pass counts."""
    kinds = initial_kinds(local)
    N = np.flatnonzero(kinds == CONCAVE)
    W, c = local.W[N], local.c[N]
    leverage, s, now, best = (W**2).sum(1), 0.0, start, None
    kappa = np.zeros(len(kinds))
    for turn in range(passes):
        if turn > 0:
            sharper = curvature.leverages(W, kappa[N])
            s, leverage = s * float(np.median(leverage / sharper)) if len(N) else s, sharper
        z = local.a[N] + W @ now.point
        kappa[N], s = curvature.closed_form(W, -now.multiplier * c, z, leverage, ROOM[turn > 0], s)
        saddle = Saddle(local, kinds, kappa.copy())
        if not saddle.feasible:  # numbers beyond any sense: curvatures whose trace is small enough
            kappa[N] = 0.5 / (len(N) * local.sizes[N] ** 2)
            saddle = Saddle(local, kinds, kappa.copy())
        found = Solved(saddle, saddle.solve(now, enough, rounds=3, steps=6, tolerance=1e-5))
        best = found if best is None or found.iterate.value > best.iterate.value else best
        if best.iterate.value >= enough:
            break
        now = found.iterate
    assert best is not None
    return best


def refine(local: Local, solved: Solved, barrier: float = BARRIER, enough: float = np.inf) -> Solved:
    """Optimal curvatures: follow the barrier's path down, curvatures and multipliers moving in turn."""
    N = solved.saddle.N
    if len(N) == 0 or solved.iterate.value >= enough:
        return solved
    W, c = local.W[N], local.c[N]
    best, now, kappa = solved, solved, solved.saddle.kappa
    z = local.a[N] + W @ now.point
    nu = curvature.fitting_barrier(W, -now.iterate.multiplier * c, z, kappa[N])
    last = barrier * abs(solved.iterate.value) / local.W.shape[1]
    for _ in range(LEVELS):
        nu, kappa, z = max(DESCENT * nu, last), kappa.copy(), local.a[N] + W @ now.point
        kappa[N] = curvature.newton(W, -now.iterate.multiplier * c, z, kappa[N], nu)
        saddle = Saddle(local, now.saddle.kinds, kappa)
        now = Solved(saddle, saddle.solve(now.iterate, enough, rounds=2, steps=4))
        best = now if now.iterate.value > best.iterate.value else best
        if nu <= last or best.iterate.value >= enough:
            break
    return best
