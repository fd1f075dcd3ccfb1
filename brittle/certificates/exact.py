"""The radius itself, by branch and bound on a dual bound: that of two layers, or that of all layers."""

import math
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from brittle.certificates.base import Certificate, LowerBound
from brittle.certificates.branch_and_bound import BranchAndBound
from brittle.certificates.deep_dual import DeepDual
from brittle.certificates.deep_exact import asked, enclosed
from brittle.certificates.dual_bound import initial_kinds, never_flips
from brittle.certificates.dual_start import closed_form, first_iterate, refine
from brittle.certificates.example import Enclosure, Example
from brittle.certificates.layers import Layers
from brittle.certificates.margins import RivalMargin, TwoLayerMargins
from brittle.certificates.relaxation import Relaxation
from brittle.common.errors import require_between, require_count, require_positive
from brittle.common.parts import option
from brittle.common.time_limit import TimeLimitReached, time_is_up
from brittle.networks import Network

QUICK = 5e8  # multiplications: a relaxation that takes about a second


@dataclass(frozen=True)
class Exact(Certificate):
    """Stops at the relative `gap`, or after `seconds` or `nodes` per example with the gap that is left (anytime).

    What time cuts short depends on the machine; what `nodes` cut short does not. The root of every rival is always
    looked at.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(4).sample(4)
        >>> robust = bt.networks.nearly_orthogonal(data.X, data.y)
        >>> found = bt.certificates.Exact().bound(robust.network, data)
        >>> [round(radius, 6) for radius in found.lower.tolist()]
        [1.414212, 1.414212, 1.414212, 1.414212]
    """

    name: ClassVar[str] = "exact"

    gap: float = field(default=1e-6, metadata=option("The relative gap to reach."))
    seconds: float = field(default=60.0, metadata=option("Time for one example; the gap that is left is shown."))
    nodes: int | None = field(
        default=None, metadata=option("Branches for one example; any number unless given.", check=require_count)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_between("gap", self.gap, 1e-9, 0.5)
        require_positive("seconds", self.seconds)

    @property
    def _gap(self) -> float:
        return self.gap * (1 + 1e-6)

    def prepare(self, network: Network) -> LowerBound:
        if network.depth is not None and network.depth > 2:
            dual = DeepDual.of(network, self.name, refined=False, boxed=False)
            return partial(self._enclose_deep, Layers.of(network, self.name), dual, Relaxation().prepare(network))
        return partial(self._enclose, TwoLayerMargins.of(network, self.name))

    def _enclose_deep(
        self, layers: Layers, dual: DeepDual, relaxed: LowerBound, example: Example, enclosure: Enclosure
    ) -> Enclosure:
        """At least what the quick dual proves, and what the relaxation proves where that is quick too."""
        deadline = time.perf_counter() + self.seconds
        enclosure = dual.enclose(example, enclosure)
        if enclosure.lower >= asked(enclosure, self.gap):
            return enclosure
        margins = layers.around(example.x, enclosure.ball, example.y)
        with suppress(TimeLimitReached):  # what was proved until then holds
            enclosure = enclosed(margins, example, enclosure, self.gap, partial(_expired, deadline), self._most)
            closed = enclosure.lower >= asked(enclosure, self.gap)
            if not closed and (enclosure.lower <= 0 or layers.work <= QUICK):
                enclosure = relaxed(example, enclosure)
        return enclosure

    def _enclose(self, margins: TwoLayerMargins, example: Example, enclosure: Enclosure) -> Enclosure:
        deadline = time.perf_counter() + self.seconds
        radii, rivals = [], list(margins.rivals(example.y))
        for place, rival in enumerate(rivals):
            margin = margins.over(rival, example, enclosure.ball)
            fair = enclosure.nodes + (self._most - enclosure.nodes) / (len(rivals) - place)
            radius, enclosure = self._radius(margin, enclosure, deadline, fair)
            radii.append(margin.unit * radius)
        return enclosure.proven(min(radii))

    @property
    def _most(self) -> float:
        return math.inf if self.nodes is None else self.nodes

    def _radius(
        self, margin: RivalMargin, enclosure: Enclosure, deadline: float, nodes: float
    ) -> tuple[float, Enclosure]:
        """What is proved of this margin, in its unit, and the enclosure after further attacks."""
        model = margin.model
        if never_flips(model, initial_kinds(model)):
            return model.ball, enclosure
        enough = 0.5 * (model.reach * (1 - 0.5 * self.gap)) ** 2
        depth = 0.1 * self.gap * float(model.values(np.zeros(len(model.q))))
        start = closed_form(model, first_iterate(model, margin.start(enclosure)), enough)
        if start.value < enough:  # otherwise the known flip is as short as any
            enclosure = margin.attacked(enclosure, start.point)
        root = refine(start, margin.ball(enclosure) * (1 - self.gap), min(1e-4, self.gap), enough)
        return BranchAndBound(margin, self.gap, depth, deadline, nodes).run(root, enclosure)


def _expired(deadline: float) -> bool:
    return time.perf_counter() > deadline or time_is_up()
