"""The dual bound at one dual point per example and rival."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from brittle.certificates.base import Certificate, Claim, Question
from brittle.certificates.deep_dual import DeepDual
from brittle.certificates.pairs import Rival, TwoLayerMargins
from brittle.certificates.root import Solved, closed_form, first_iterate, initial_kinds, refine, trim
from brittle.certificates.rounding import never_flips, proven_radius
from brittle.networks import Network


@dataclass(frozen=True)
class Dual(Certificate):
    """Two layers: curvatures in closed form, before and after trimming; `refined` follows the barrier's path to others.

    More layers: one curvature for each layer, and `refined` one for each neuron of a small network. With `boxed` only
    flips inside the box count (`bounds` of `bound`): lower bounds are higher, and hold there alone.
    """

    method: ClassVar[str] = "dual"

    refined: bool = False
    boxed: bool = False

    def prepare(self, network: Network) -> Claim:
        if self.boxed or network.depth != 2:
            return DeepDual.of(network, self.method, self.refined, self.boxed).radius
        margins = TwoLayerMargins.of(network, self.method)
        return lambda question: self._claim(margins, question)

    def _claim(self, margins: TwoLayerMargins, question: Question) -> float:
        return min((rival.unit * self._radius(rival) for rival in margins.rivals(question)), default=np.inf)

    def _radius(self, rival: Rival) -> float:
        local = rival.local
        if never_flips(local, initial_kinds(local)):
            return local.ball
        enough = 0.5 * local.reach**2 * 1.001
        solved = closed_form(local, first_iterate(local, rival.start), enough=enough)
        solved = self._improve(solved, rival.shorten(solved.point), enough)
        rival.shorten(solved.point)
        return proven_radius(solved.saddle.local, solved.saddle.dual_point(solved.iterate))

    def _improve(self, solved: Solved, radius: float, enough: float) -> Solved:
        if self.refined:
            return refine(solved, radius, enough=enough)
        solved = trim(solved, radius)
        found = closed_form(solved.saddle.local, solved.iterate, enough=enough)
        return found if found.iterate.value > solved.iterate.value else solved
