"""The last digits of the stationarity problem: least squares on the variables that are off their bounds.

At an exact KKT point every bound's multiplier vanishes, and an interior point stalls at ‖θ - Σ λ_i g_i‖ ~ 1e-8. Once
the variables on their bounds are known, one linear system gives the rest to machine precision.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.margin.arrow import ArrowVector
from brittle.margin.interior_point import longest_step
from brittle.margin.stationarity import Misfit, Stationarity

BOUND = 1e-6  # a variable below this share of the largest multiplier is tried at zero
NOISE = 1e-14  # relative size of the residual at which there is nothing left to gain
STALLS = 3  # steps without a gain of a tenth
REFINEMENTS = 3  # of the linear system's solution
FIXED = 1e8  # weight that holds a multiplier at zero, in units of the quadratic form


class ActiveBounds(NamedTuple):
    """Variables that are held at a bound: off (N,) at λ = 0; zero (K,) at s = 0; full (K,) at s = λ."""

    off: Tensor
    zero: Tensor
    full: Tensor


class Descent(NamedTuple):
    """x: where a least-squares step led; blocked: it met a bound on the way."""

    x: ArrowVector
    blocked: bool


class Pulls(NamedTuple):
    """Which variables the misfit wants larger or smaller: lam_up (N,), s_up and s_down (K,)."""

    lam_up: Tensor
    s_up: Tensor
    s_down: Tensor


@dataclass(frozen=True, eq=False)
class State:
    """x and its bounds; best: the best point so far; least: the norm of its misfit; stalls: steps that gained little.

    done: there is nothing left to gain.
    """

    x: ArrowVector
    bounds: ActiveBounds
    best: ArrowVector
    least: float
    stalls: int = 0
    done: bool = False


@dataclass(frozen=True, eq=False)
class Polish:
    """An active-set method for the stationarity problem; `scale` is ‖θ‖."""

    problem: Stationarity
    scale: float

    @property
    def _rows(self) -> Tensor:
        """The example of every kink."""
        return self.problem.kinks[:, 0]

    def start(self, x: ArrowVector) -> State:
        """With every variable at the bound that it is close to."""
        small = BOUND * float(x.lam.max())
        bounds = ActiveBounds(x.lam <= small, x.s <= small, x.lam[self._rows] - x.s <= small)
        return State(x, bounds, x, self.problem.misfit(x).norm)

    def step(self, state: State) -> State:
        """Least squares on the free variables, then the bounds that the misfit suggests."""
        rows, off = self._rows, state.bounds.off
        zero = (state.bounds.zero & ~state.bounds.full) | off[rows]
        full = state.bounds.full & ~zero
        begun = ArrowVector(torch.where(off, 0.0, state.x.lam), state.x.s)
        x, blocked = self._descend(begun, ActiveBounds(off, zero, full))
        misfit = self.problem.misfit(x)
        stalls = 0 if misfit.norm < 0.9 * state.least else state.stalls + 1
        if misfit.norm < state.least:
            state = replace(state, best=x, least=misfit.norm)
        pulls = self._pulls(misfit)
        released = (off & pulls.lam_up).any() | (zero & pulls.s_up).any() | (full & pulls.s_down).any()
        done = misfit.norm <= NOISE * self.scale or stalls == STALLS or not (blocked or bool(released))
        bounds = ActiveBounds(
            (off & ~pulls.lam_up) | (x.lam <= 0),
            (zero | (x.s <= 0)) & ~pulls.s_up,
            (full | (x.s >= x.lam[rows])) & ~pulls.s_down,
        )
        return replace(state, x=x, bounds=bounds, stalls=stalls, done=done)

    def run(self, x: ArrowVector, limit: int = 12) -> ArrowVector:
        """A feasible point that explains θ at least as well."""
        state = self.start(x)
        for _ in range(limit):
            state = self.step(state)
            if state.done:
                break
        return state.best

    def _pulls(self, misfit: Misfit) -> Pulls:
        """Derivatives beyond the noise; a λ may rise together with the s at its kinks."""
        noise, (lam, s) = 1e-3 * misfit.norm, misfit.inner
        return Pulls(lam.index_add(0, self._rows, s.clamp(min=0)) > noise, s > noise, s < -noise)

    def _descend(self, x: ArrowVector, bounds: ActiveBounds) -> Descent:
        """The least-squares step on the free variables, cut where the first bound is met."""
        off, zero, full = bounds
        rows, neurons = self.problem.kinks.T
        active = self.problem.active.clone()
        active[rows[full], neurons[full]] = True
        place = torch.nonzero(~(zero | full))[:, 0]
        place = place[self.problem.order(self.problem.kinks[place])]
        reduced = replace(self.problem, active=active, kinks=self.problem.kinks[place])
        arrow, index = reduced.arrow(), rows[place]
        weight = float(arrow.head.diagonal().max()) * (1e-15 + FIXED * off.to(x.lam.dtype))
        none = torch.zeros(len(place), dtype=x.lam.dtype)
        factored, blocked = arrow.factor(weight, none, none), False
        for _ in range(REFINEMENTS):
            lam, t = x.lam, x.s[place]
            inner = reduced.misfit(ArrowVector(lam, t)).inner
            dlam, dt = factored.solve(ArrowVector(torch.where(off, 0.0, inner.lam), inner.s))
            dlam = torch.where(off, 0.0, dlam)
            length = longest_step([lam, t, lam[index] - t], [dlam, dt, dlam[index] - dt])
            blocked = length < 1
            lam = (lam + length * dlam).clamp(min=0)
            s = torch.where(full, lam[rows], torch.where(zero, 0.0, x.s))
            x = ArrowVector(lam, s.index_copy(0, place, torch.minimum((t + length * dt).clamp(min=0), lam[index])))
            if blocked:
                break
        return Descent(x, blocked)
