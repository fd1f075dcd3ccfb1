"""From an attack to a dual point: the start, and rounds of better curvatures and better multipliers."""

import numpy as np

from brittle.certificates import curvature
from brittle.certificates.dual_bound import LARGEST, Kind, initial_kinds
from brittle.certificates.neighbourhood import LocalModel
from brittle.certificates.saddle import Iterate, Saddle, Solved
from brittle.certificates.scales import Array
from brittle.certificates.settled_signs import trim
from brittle.common.time_limit import check_time

ROOM = 0.9  # of I that the closed-form curvatures may fill
LEVELS = 30  # of the barrier, at most
DESCENT = 0.3  # from level to level
STEPS = np.linspace(0, 1, 65)  # on the way to the attack's point
BARRIER = 1e-4  # what the barrier may cost of F


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
    N = np.flatnonzero(Kind.CONCAVE.among(kinds))
    W, kappa = model.W[N], np.zeros(len(kinds))
    kappa[N] = curvature.closed_form(W, -start.multiplier * model.c[N], model.a[N] + W @ start.point, ROOM)
    saddle = Saddle.attempt(model, kinds, kappa)
    if saddle is None:  # numbers beyond any sense: curvatures whose trace is small enough
        kappa[N] = 0.5 / (len(N) * model.sizes[N] ** 2)
        saddle = Saddle.at(model, kinds, kappa)
    return Solved(saddle, saddle.solve(start, enough, rounds=3, steps=6, tolerance=1e-5))


def trimmed(start: Solved, radius: float, enough: float = np.inf) -> Solved:
    """Without the neurons whose sign flips ‖δ‖ ≤ radius share, with curvatures for the others where that is better."""
    smaller = trim(start, radius)
    again = closed_form(smaller.model, smaller.iterate, enough)
    return again if again.value > smaller.value else smaller


def refine(solved: Solved, radius: float, barrier: float = BARRIER, enough: float = np.inf) -> Solved:
    """Optimal curvatures for flips ‖δ‖ ≤ radius: follow the barrier's path down.

    On every level neurons whose sign is settled leave, then curvatures and multipliers move. A level on which the value
    falls, with more rounds too, is left for the next one.
    """
    best = trimmed(solved, radius, enough)
    now, nu, last = best, np.inf, barrier * abs(solved.value) / len(solved.point)
    for _ in range(LEVELS):
        check_time()
        N, _, c, kappa_N = now.saddle.concave
        if len(N) == 0 or nu <= last or best.value >= enough:
            break
        W, C, z = now.model.W[N], -now.iterate.multiplier * c, now.concave_inputs
        nu = max(DESCENT * _next_barrier(nu, curvature.fitting_barrier(W, C, z, kappa_N)), last)
        kappa = now.saddle.curvatures.copy()
        kappa[N] = curvature.newton(W, C, z, kappa_N, nu)
        saddle = Saddle.at(now.model, now.saddle.kinds, kappa)
        iterate = saddle.solve(now.iterate, enough, rounds=2, steps=4)
        if iterate.value < best.value:
            iterate = saddle.solve(iterate, enough, rounds=8, steps=8)
        best = Solved(saddle, iterate) if iterate.value > best.value else best
        now = trim(best, radius)
    return best


def _next_barrier(nu: float, fitting: float) -> float:
    """The barrier that fits the curvatures, if it is lower; a negative one says nothing but at the start."""
    return min(nu, fitting) if fitting > 0 or nu == np.inf else nu
