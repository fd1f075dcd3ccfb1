"""The dual bound of a two-layer network at one dual point per example."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from brittle.certificates.base import Certificate, Example, LowerBound
from brittle.certificates.dual_bound import initial_kinds, never_flips, proven_radius
from brittle.certificates.dual_start import Solved, closed_form, first_iterate, refine, trim
from brittle.certificates.margins import Rival, TwoLayerMargins
from brittle.networks import Network


@dataclass(frozen=True)
class Dual(Certificate):
    """Curvatures in closed form, before and after trimming; `refined` follows the barrier's path to the best ones."""

    method: ClassVar[str] = "dual"

    refined: bool = False

    def prepare(self, network: Network) -> LowerBound:
        margins = TwoLayerMargins.of(network, self.method)
        return lambda example: self._claim(margins, example)

    def _claim(self, margins: TwoLayerMargins, example: Example) -> float:
        return min((rival.unit * self._radius(rival) for rival in margins.rivals(example)), default=np.inf)

    def _radius(self, rival: Rival) -> float:
        model = rival.model
        if never_flips(model, initial_kinds(model)):
            return model.ball
        enough = 0.5 * model.reach**2 * 1.001
        solved = closed_form(model, first_iterate(model, rival.start), enough=enough)
        solved = self._improve(solved, rival.shorten(solved.point), enough)
        rival.shorten(solved.point)
        return proven_radius(solved.saddle.model, solved.saddle.dual_point(solved.iterate))

    def _improve(self, solved: Solved, radius: float, enough: float) -> Solved:
        if self.refined:
            return refine(solved, radius, enough=enough)
        solved = trim(solved, radius)
        found = closed_form(solved.saddle.model, solved.iterate, enough=enough)
        return found if found.iterate.value > solved.iterate.value else solved
