"""The dual bound at one dual point per example and rival."""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from brittle.certificates import dual_bound
from brittle.certificates.base import Certificate, LowerBound
from brittle.certificates.deep_dual import DeepDual
from brittle.certificates.dual_bound import LARGEST, Kind, initial_kinds, never_flips
from brittle.certificates.example import Example, RadiusInterval
from brittle.certificates.margins import LocalModel, RivalMargin, TwoLayerMargins
from brittle.certificates.rounding import Array
from brittle.certificates.saddle import Saddle, SaddleIterate, SolvedSaddle
from brittle.certificates.settled_signs import trim
from brittle.common.parts import option
from brittle.common.time_limit import check_time
from brittle.networks import Network

ROOM = 0.9  # of I that the closed-form curvatures may fill
LEVELS = 30  # of the barrier, at most
DESCENT = 0.3  # from level to level
STEPS = np.linspace(0, 1, 65)  # on the way to the attack's point
BARRIER = 1e-4  # what the barrier may cost of F


def first_iterate(model: LocalModel, epsilon: Array) -> SaddleIterate:
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
    return SaddleIterate(-np.inf, mu, mu * np.where(model.c > 0, model.c * (z > 0), 0.0), epsilon)


def solve_closed_form(model: LocalModel, start: SaddleIterate, enough: float = np.inf) -> SolvedSaddle:
    """Curvatures in closed form around the start's point, then multipliers."""
    kinds = initial_kinds(model)
    N = np.flatnonzero(Kind.CONCAVE.among(kinds))
    W, kappa = model.W[N], np.zeros(len(kinds))
    kappa[N] = dual_bound.choose_curvatures(W, -start.multiplier * model.c[N], model.a[N] + W @ start.point, ROOM)
    saddle = Saddle.attempt(model, kinds, kappa)
    if saddle is None:  # numbers beyond any sense: curvatures whose trace is small enough
        kappa[N] = 0.5 / (len(N) * model.sizes[N] ** 2)
        saddle = Saddle.at(model, kinds, kappa)
    return SolvedSaddle(saddle, saddle.solve(start, enough, rounds=3, steps=6, tolerance=1e-5))


def trim_neurons(start: SolvedSaddle, radius: float, enough: float = np.inf) -> SolvedSaddle:
    """Without the neurons whose sign flips ‖δ‖ ≤ radius share, with curvatures for the others where that is better."""
    smaller = trim(start, radius)
    again = solve_closed_form(smaller.model, smaller.iterate, enough)
    return again if again.value > smaller.value else smaller


def refine(solved: SolvedSaddle, radius: float, barrier: float = BARRIER, enough: float = np.inf) -> SolvedSaddle:
    """Optimal curvatures for flips ‖δ‖ ≤ radius: follow the barrier's path down.

    On every level neurons whose sign is settled leave, then curvatures and multipliers move. A level on which the value
    falls, with more rounds too, is left for the next one.
    """
    best = trim_neurons(solved, radius, enough)
    now, nu, last = best, np.inf, barrier * abs(solved.value) / len(solved.point)
    for _ in range(LEVELS):
        check_time()
        N, _, c, kappa_N = now.saddle.concave
        if len(N) == 0 or nu <= last or best.value >= enough:
            break
        W, C, z = now.model.W[N], -now.iterate.multiplier * c, now.concave_inputs
        nu = max(DESCENT * _next_barrier(nu, dual_bound.fitting_barrier(W, C, z, kappa_N)), last)
        kappa = now.saddle.curvatures.copy()
        kappa[N] = dual_bound.newton(W, C, z, kappa_N, nu)
        saddle = Saddle.at(now.model, now.saddle.kinds, kappa)
        iterate = saddle.solve(now.iterate, enough, rounds=2, steps=4)
        if iterate.value < best.value:
            iterate = saddle.solve(iterate, enough, rounds=8, steps=8)
        best = SolvedSaddle(saddle, iterate) if iterate.value > best.value else best
        now = trim(best, radius)
    return best


def _next_barrier(nu: float, fitting: float) -> float:
    """The barrier that fits the curvatures, if it is lower; a negative one says nothing but at the start."""
    return min(nu, fitting) if fitting > 0 or nu == np.inf else nu


@dataclass(frozen=True)
class Dual(Certificate):
    """Two layers: curvatures in closed form, before and after trimming; `refined` follows the barrier's path to others.

    More layers: one curvature for each layer, and `refined` one for each neuron of a small network. With `boxed` only
    flips inside the box count (`bounds` of `bound`): lower bounds are higher, and hold there alone.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(8).sample(8)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> found = bt.certificates.Dual().bound(network, data)
        >>> bool((found.lower > 0).all()), round(float(found.ratio.mean()), 3)
        (True, 1.0)
    """

    name: ClassVar[str] = "dual"

    refined: bool = field(default=False, metadata=option("Better bounds, a few times slower."))
    boxed: bool = field(default=False, metadata=option("Flips outside --bounds do not count.", "--boxed"))

    def prepare(self, network: Network) -> LowerBound:
        if self.boxed or network.depth != 2:
            return DeepDual.of(network, self.name, self.refined, self.boxed).enclose
        return partial(self._enclose, TwoLayerMargins.of(network, self.name))

    def _enclose(self, margins: TwoLayerMargins, example: Example, enclosure: RadiusInterval) -> RadiusInterval:
        radii = []
        for rival in margins.rivals(example.y):
            margin = margins.over(rival, example, enclosure.ball)
            radius, enclosure = self._radius(margin, enclosure)
            radii.append(margin.unit * radius)
        return enclosure.proven(min(radii))

    def _radius(self, margin: RivalMargin, enclosure: RadiusInterval) -> tuple[float, RadiusInterval]:
        """What is proved of this margin, in its unit, and the enclosure after further attacks."""
        model = margin.model
        if never_flips(model, initial_kinds(model)):
            return model.ball, enclosure
        enough = 0.5 * model.reach**2 * 1.001
        start = solve_closed_form(model, first_iterate(model, margin.start(enclosure)), enough)
        if (radius := start.proven_radius) >= model.ball:  # nothing is left to attack or to improve
            return radius, enclosure
        enclosure = margin.attacked(enclosure, start.point)
        solved = self._improve(start, margin.ball(enclosure), enough)
        return solved.proven_radius, margin.attacked(enclosure, solved.point)

    def _improve(self, start: SolvedSaddle, radius: float, enough: float) -> SolvedSaddle:
        return refine(start, radius, enough=enough) if self.refined else trim_neurons(start, radius, enough)
