"""The dual bound at one dual point per example and rival."""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from brittle.certificates.base import Certificate, LowerBound
from brittle.certificates.deep_dual import DeepDual
from brittle.certificates.dual_bound import initial_kinds, never_flips
from brittle.certificates.dual_start import closed_form, first_iterate, refine, trimmed
from brittle.certificates.example import Enclosure, Example
from brittle.certificates.margins import RivalMargin, TwoLayerMargins
from brittle.certificates.saddle import Solved
from brittle.common.parts import option
from brittle.networks import Network


@dataclass(frozen=True)
class Dual(Certificate):
    """Two layers: curvatures in closed form, before and after trimming; `refined` follows the barrier's path to others.

    More layers: one curvature for each layer, and `refined` one for each neuron of a small network. With `boxed` only
    flips inside the box count (`bounds` of `bound`): lower bounds are higher, and hold there alone.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(8).sample(8)
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

    def _enclose(self, margins: TwoLayerMargins, example: Example, enclosure: Enclosure) -> Enclosure:
        radii = []
        for rival in margins.rivals(example.y):
            margin = margins.over(rival, example, enclosure.ball)
            radius, enclosure = self._radius(margin, enclosure)
            radii.append(margin.unit * radius)
        return enclosure.proven(min(radii))

    def _radius(self, margin: RivalMargin, enclosure: Enclosure) -> tuple[float, Enclosure]:
        """What is proved of this margin, in its unit, and the enclosure after further attacks."""
        model = margin.model
        if never_flips(model, initial_kinds(model)):
            return model.ball, enclosure
        enough = 0.5 * model.reach**2 * 1.001
        start = closed_form(model, first_iterate(model, margin.start(enclosure)), enough)
        if (radius := start.proven_radius) >= model.ball:  # nothing is left to attack or to improve
            return radius, enclosure
        enclosure = margin.attacked(enclosure, start.point)
        solved = self._improve(start, margin.ball(enclosure), enough)
        return solved.proven_radius, margin.attacked(enclosure, solved.point)

    def _improve(self, start: Solved, radius: float, enough: float) -> Solved:
        return refine(start, radius, enough=enough) if self.refined else trimmed(start, radius, enough)
