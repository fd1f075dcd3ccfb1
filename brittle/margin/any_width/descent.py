"""Slopes of a node by spectral projected gradients (Birgin, Martínez, Raydan 2000), with a falling barrier."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from brittle.margin.any_width.proof import Array
from brittle.margin.any_width.relaxation import Relaxation, Value

MEMORY = 3  # potentials of so many steps back may be exceeded
SHORTEST, LONGEST = 1e-8, 1e4  # step lengths
WINDOW = 6  # steps over which progress is measured
DECREASE = 1e-4


@dataclass(frozen=True)
class Effort:
    """How hard a node is tried: so many steps at each of so many barriers, from the barrier first·(D - θ)/f on.

    progress: a stage ends where the bound falls by less than this share of what is missing in a few steps
    """

    steps: int
    stages: int
    first: float
    progress: float


ROOT = Effort(steps=150, stages=5, first=1.0, progress=2e-3)
BRANCH = Effort(steps=4, stages=3, first=0.3, progress=0.05)


class Exclusion(NamedTuple):
    """Patterns with the other sign of an own example lie below the threshold, by this value."""

    sign: int
    by: Value


class Outcome(NamedTuple):
    """The value of lowest bound, and for own examples by their number the sign that is left to them."""

    best: Value
    excluded: dict[int, Exclusion]


class Descent:
    """One node under way; it closes as soon as its bound is at most the threshold."""

    def __init__(self, program: Relaxation, threshold: float, effort: Effort) -> None:
        self.program, self.threshold, self.effort = program, threshold, effort
        self.best: Value | None = None
        self.excluded: dict[int, Exclusion] = {}

    def run(self, V: Array, y: Array, bound: float) -> Outcome | None:
        """From slopes and curvatures whose bound is known (inf if not); None if numbers are out of reach."""
        V, count = self.program.feasible(V), max(1, len(self.program.free))
        nu = self.effort.first * min(max(bound - self.threshold, 1e-6), 0.3) / count
        for _ in range(self.effort.stages):
            value = self._note(self.program.at(V, y, nu))
            if value is None:
                break
            value = self._stage(value, nu)
            V, y = value.V, value.y
            missing = self._missing
            if missing <= 0 or missing > 1.2 * nu * count * (1 if self.effort is BRANCH else 50):
                break
            nu = min(0.2 * nu, 0.3 * missing / count)
            if nu * count < 1e-10:
                break
        return None if self.best is None else Outcome(self.best, self.excluded)

    @property
    def _missing(self) -> float:
        return np.inf if self.best is None else self.best.bound - self.threshold

    def _note(self, value: Value | None) -> Value | None:
        """Remember the lowest bound and every sign that is excluded."""
        if value is None:
            return None
        if self.best is None or value.bound < self.best.bound:
            self.best = value
        settled = value.excluded(self.threshold)
        for place in np.flatnonzero(settled):
            self.excluded.setdefault(int(self.program.free[place]), Exclusion(int(settled[place]), value))
        return value

    def _stage(self, value: Value, nu: float) -> Value:
        """Steps at one barrier."""
        size = float(np.abs(value.V).max(initial=0.0)) + 1e-3
        rate = 0.5 * size / max(1e-9, float(np.abs(value.gradient).max(initial=0.0)))
        recent, bounds = [value.potential], [value.bound]
        for _ in range(self.effort.steps):
            if self._missing <= 0:
                break
            after = self._step(value, rate, max(recent[-MEMORY:]), nu)
            if after is None:
                break
            moved, turned = after.V - value.V, after.gradient - value.gradient
            curvature = float((moved * turned).sum())
            rate = min(LONGEST, max(SHORTEST, float((moved * moved).sum()) / curvature)) if curvature > 0 else LONGEST
            value = after
            recent.append(value.potential)
            bounds.append(value.bound)
            if len(bounds) > WINDOW:
                fallen = min(bounds[: -WINDOW + 1]) - min(bounds)
                if fallen < self.effort.progress * max(self._missing, 1e-9):
                    break
        return value

    def _step(self, value: Value, rate: float, level: float, nu: float) -> Value | None:
        """Along the projected gradient, shorter until the potential is low enough."""
        way = self.program.feasible(value.V - rate * value.gradient) - value.V
        slope = float((way * value.gradient).sum())
        if slope > -1e-15:
            return None
        length = 1.0
        while length > 1e-4:
            after = self._note(self.program.at(value.V + length * way, value.y, nu))
            if after is not None and after.potential <= level + DECREASE * length * slope:
                return after
            length *= 0.3
        return None
