"""The radius itself, by branch and bound on the dual bound."""

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from brittle.certificates.base import Certificate, Example, LowerBound
from brittle.certificates.branch_and_bound import Tree
from brittle.certificates.dual_bound import initial_kinds, never_flips
from brittle.certificates.dual_start import closed_form, first_iterate, refine
from brittle.certificates.margins import Rival, TwoLayerMargins
from brittle.common.errors import require_between, require_positive
from brittle.networks import Network


@dataclass(frozen=True)
class Exact(Certificate):
    """Stops at the relative `gap`, or after `seconds` per example with the gap that is left (anytime)."""

    method: ClassVar[str] = "exact"

    gap: float = 1e-6
    seconds: float = 60.0

    def __post_init__(self) -> None:
        require_between("gap", self.gap, 1e-9, 0.5)
        require_positive("seconds", self.seconds)

    @property
    def _gap(self) -> float:
        return self.gap * (1 + 1e-6)

    def prepare(self, network: Network) -> LowerBound:
        margins = TwoLayerMargins.of(network, self.method)
        return lambda example: self._claim(margins, example)

    def _claim(self, margins: TwoLayerMargins, example: Example) -> float:
        deadline = time.perf_counter() + self.seconds
        return min((rival.unit * self._radius(rival, deadline) for rival in margins.rivals(example)), default=np.inf)

    def _radius(self, rival: Rival, deadline: float) -> float:
        model = rival.model
        if never_flips(model, initial_kinds(model)):
            return model.ball
        enough = 0.5 * (model.reach * (1 - 0.5 * self.gap)) ** 2
        depth = 0.1 * self.gap * float(model.values(np.zeros(len(model.q))))
        solved = closed_form(model, first_iterate(model, rival.start), enough)
        solved = refine(solved, rival.shorten(solved.point) * (1 - self.gap), min(1e-4, self.gap), enough)
        return Tree(self.gap, depth, deadline, rival.shorten).grow(solved)
