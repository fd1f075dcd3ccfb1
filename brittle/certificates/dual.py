"""The dual bound of a two-layer network at one dual point per example."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from brittle.certificates.base import Certificate, Claim, Question
from brittle.certificates.local import Local
from brittle.certificates.pairs import TwoLayerMargins
from brittle.certificates.root import Solved, closed_form, first_iterate, initial_kinds, refine
from brittle.certificates.rounding import never_flips, proven_radius
from brittle.common.errors import require_count
from brittle.networks import Network


@dataclass(frozen=True)
class Dual(Certificate):
    """Curvatures in closed form, recentred `passes` times; `refined` follows the barrier's path to the best ones."""

    method: ClassVar[str] = "dual"

    refined: bool = False
    passes: int = 2

    def __post_init__(self) -> None:
        require_count("passes", self.passes)

    def _prepare(self, network: Network) -> Claim:
        margins = TwoLayerMargins.of(network, self.method)
        return lambda question: self._claim(margins, question)

    def _claim(self, margins: TwoLayerMargins, question: Question) -> float:
        radius = np.inf
        for local in margins.locals(question):
            if never_flips(local, initial_kinds(local)):
                radius = min(radius, local.ball)
                continue
            solved = self._solve(local, margins, question)
            question.shorten(margins.lift(solved.point))
            radius = min(radius, proven_radius(local, solved.saddle.dual_point(solved.iterate)))
        return float(radius)

    def _solve(self, local: Local, margins: TwoLayerMargins, question: Question) -> Solved:
        enough = 0.5 * local.reach**2 * 1.001
        solved = closed_form(local, first_iterate(local, margins.start(question)), self.passes, enough)
        return refine(local, solved, enough=enough) if self.refined else solved
