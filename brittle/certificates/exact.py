"""The radius itself, by branch and bound on the dual bound."""

import time
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from brittle.certificates.base import Certificate, Claim, Question
from brittle.certificates.pairs import Rival, TwoLayerMargins
from brittle.certificates.root import closed_form, first_iterate, initial_kinds, refine
from brittle.certificates.rounding import never_flips
from brittle.certificates.tree import Tree
from brittle.common.errors import require_between, require_positive
from brittle.common.parts import option
from brittle.networks import Network


@dataclass(frozen=True)
class Exact(Certificate):
    """Stops at the relative `gap`, or after `seconds` per example with the gap that is left (anytime)."""

    name: ClassVar[str] = "exact"

    gap: float = field(default=1e-6, metadata=option("The relative gap to reach."))
    seconds: float = field(default=60.0, metadata=option("Time for one example; the gap that is left is shown."))

    def __post_init__(self) -> None:
        require_between("gap", self.gap, 1e-9, 0.5)
        require_positive("seconds", self.seconds)

    @property
    def _gap(self) -> float:
        return self.gap * (1 + 1e-6)

    def prepare(self, network: Network) -> Claim:
        margins = TwoLayerMargins.of(network, self.name)
        return lambda question: self._claim(margins, question)

    def _claim(self, margins: TwoLayerMargins, question: Question) -> float:
        deadline = time.perf_counter() + self.seconds
        return min((rival.unit * self._radius(rival, deadline) for rival in margins.rivals(question)), default=np.inf)

    def _radius(self, rival: Rival, deadline: float) -> float:
        local = rival.local
        if never_flips(local, initial_kinds(local)):
            return local.ball
        enough = 0.5 * (local.reach * (1 - 0.5 * self.gap)) ** 2
        depth = 0.1 * self.gap * float(local.values(np.zeros(len(local.q))))
        solved = closed_form(local, first_iterate(local, rival.start), enough)
        solved = refine(solved, rival.shorten(solved.point) * (1 - self.gap), min(1e-4, self.gap), enough)
        return Tree(self.gap, depth, deadline, rival.shorten).grow(solved)
