"""The radius itself, by branch and bound on a dual bound: that of two layers, or that of all layers."""

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from brittle.certificates.base import Certificate, Claim, Question, lengths
from brittle.certificates.deep_exact import proven_radius
from brittle.certificates.layers import Layers
from brittle.certificates.pairs import Rival, TwoLayerMargins
from brittle.certificates.relaxation import Relaxation
from brittle.certificates.root import closed_form, first_iterate, initial_kinds, refine
from brittle.certificates.rounding import never_flips
from brittle.certificates.scales import Array
from brittle.certificates.tree import Tree
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

    def prepare(self, network: Network) -> Claim:
        if network.depth is not None and network.depth > 2:
            layers, relaxed = Layers.of(network, self.method), Relaxation().prepare(network)
            return lambda question: self._deep_claim(layers, question) or relaxed(question)
        margins = TwoLayerMargins.of(network, self.method)
        return lambda question: self._claim(margins, question)

    def _claim(self, margins: TwoLayerMargins, question: Question) -> float:
        deadline = time.perf_counter() + self.seconds
        return min((rival.unit * self._radius(rival, deadline) for rival in margins.rivals(question)), default=np.inf)

    def _deep_claim(self, layers: Layers, question: Question) -> float:
        deadline = time.perf_counter() + self.seconds
        margins = layers.around(question.x, question.ball, question.y)

        def shorten(directions: Array) -> float:
            rows = directions.reshape(len(directions), len(question.x))
            return question.shorten(torch.from_numpy(np.ascontiguousarray(rows)))

        known = bool(question.flip.any()) and float(lengths(question.flip[None])) <= question.ball
        return proven_radius(margins, question.ball, known, self.gap, lambda: time.perf_counter() > deadline, shorten)

    def _radius(self, rival: Rival, deadline: float) -> float:
        local = rival.local
        if never_flips(local, initial_kinds(local)):
            return local.ball
        enough = 0.5 * (local.reach * (1 - 0.5 * self.gap)) ** 2
        depth = 0.1 * self.gap * float(local.values(np.zeros(len(local.q))))
        solved = closed_form(local, first_iterate(local, rival.start), enough)
        solved = refine(solved, rival.shorten(solved.point) * (1 - self.gap), min(1e-4, self.gap), enough)
        return Tree(self.gap, depth, deadline, rival.shorten).grow(solved)
