"""From an attack to a dual point: the start, and rounds of better curvatures and better multipliers."""

from dataclasses import dataclass, replace

import numpy as np

from brittle.certificates import curvature
from brittle.certificates.dual_bound import LARGEST, Kind, initial_kinds
from brittle.certificates.neighbourhood import LocalModel
from brittle.certificates.saddle import Iterate, Saddle
from brittle.certificates.scales import Array
from brittle.certificates.settled_signs import settled_signs

ROOM = 0.9  # of I that the closed-form curvatures may fill
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


def first_iterate(model: LocalModel, epsilon: Array) -> Iterate:
    """Where the margin first vanishes on the way to the attack's point, with μ from its slope there: ε = -μ∇f."""
    way = model.values(STEPS[:, None] * epsilon)
    fallen = np.flatnonzero(way <= 0.02 * way[0])
    mu = 0.0
    if len(fallen) and fallen[0] > 0:
        here, slope = STEPS[fallen[0]], (way[fallen[0] - 1] - way[fallen[0]]) * (len(STEPS) - 1)
        epsilon = here * epsilon
        mu = float(epsilon @ epsilon / (here * slope))
    if not 0 < mu <= LARGEST:
        gradient = model.q + (model.c * (model.a > 0)) @ model.W
        size = gradient @ gradient
        most = model.reach**2 / max(float(way[0]), 1e-100)  # more than the ball can ask for
        mu = min(float(way[0] / size), most) if size > 0 and way[0] > 0 else min(1.0, most)
        epsilon = -mu * gradient
    z = model.a + model.W @ epsilon
    return Iterate(-np.inf, mu, mu * np.where(model.c > 0, model.c * (z > 0), 0.0), epsilon)


def closed_form(model: LocalModel, start: Iterate, enough: float = np.inf) -> Solved:
    """Curvatures in closed form around the start's point, then multipliers."""
    kinds = initial_kinds(model)
    N = np.flatnonzero(kinds == Kind.CONCAVE)
    W, kappa = model.W[N], np.zeros(len(kinds))
    kappa[N] = curvature.closed_form(W, -start.multiplier * model.c[N], model.a[N] + W @ start.point, ROOM)
    saddle = Saddle(model, kinds, kappa)
    if not saddle.feasible:  # numbers beyond any sense: curvatures whose trace is small enough
        kappa[N] = 0.5 / (len(N) * model.sizes[N] ** 2)
        saddle = Saddle(model, kinds, kappa)
    return Solved(saddle, saddle.solve(start, enough, rounds=3, steps=6, tolerance=1e-5))


def refine(solved: Solved, radius: float, barrier: float = BARRIER, enough: float = np.inf) -> Solved:
    """Optimal curvatures for flips ‖δ‖ ≤ radius: follow the barrier's path down.

    On every level neurons whose sign is settled leave, then curvatures and multipliers move.
    """
    best = now = trim(solved, radius)
    nu, last = np.inf, barrier * abs(solved.iterate.value) / len(solved.point)
    for _ in range(LEVELS):
        model, N = now.saddle.model, now.saddle.N
        if len(N) == 0 or nu <= last or best.iterate.value >= enough:
            break
        W, C, z = model.W[N], -now.iterate.multiplier * model.c[N], model.a[N] + model.W[N] @ now.point
        kappa = now.saddle.kappa.copy()
        nu = max(DESCENT * min(nu, curvature.fitting_barrier(W, C, z, kappa[N])), last)
        kappa[N] = curvature.newton(W, C, z, kappa[N], nu)
        saddle = Saddle(model, now.saddle.kinds, kappa)
        now = Solved(saddle, saddle.solve(now.iterate, enough, rounds=2, steps=4))
        best = now if now.iterate.value > best.iterate.value else best
        now = trim(now, radius)
    return best


def trim(solved: Solved, radius: float) -> Solved:
    """The same dual point without the neurons whose sign all flips ‖δ‖ ≤ radius of the branch share."""
    saddle, now = solved.saddle, solved.iterate
    signs = settled_signs(saddle.model, saddle.dual_point(now), radius)
    keep = signs == 0
    if keep.all():
        return solved
    model = replace(saddle.model, ball=radius).folded(signs > 0, signs < 0)
    smaller = Saddle(model, saddle.kinds[keep], saddle.kappa[keep], saddle.depth)
    return Solved(smaller, replace(smaller.evaluate(now.multiplier, now.slopes[keep]), point=now.point))
