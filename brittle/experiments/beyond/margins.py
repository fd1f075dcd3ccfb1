"""Networks of different margins on the same data: the largest one of all, KKT points, and what gradient flow passes."""

import math
from typing import NamedTuple

from torch import Generator

from brittle.attacks import Universal
from brittle.certificates import Exact
from brittle.data import Clusters, Data, Setting, Sphere
from brittle.experiments.cell import Point
from brittle.kkt import LargestMargin, Status, largest
from brittle.networks import TwoLayer

GAP = 1e-6  # proved, of the largest margin
RADIUS_GAP = 1e-3  # relative, of the radii
SLACK = 0.1  # an example is on the margin if q ≤ 1.1 min q
HOURS = 1e5  # seconds: the sizes of the presets end the search, not a clock
CLUSTERS = 4


def draw_data(law: str, dim: int, examples: int, seed: int) -> Data:
    """The data of a seed: the same for all starts."""
    setting: Setting = Clusters(dim, clusters=CLUSTERS) if law == "clusters" else Sphere(dim)
    return setting.sample(examples, Generator().manual_seed(seed))


class Withstands(NamedTuple):
    """What a network withstands on its examples; direction: that flips all on the margin at once, None if none does."""

    mean: float
    least: float
    direction: float | None
    exact: bool  # whether every radius is known up to the gap

    @classmethod
    def of(cls, network: TwoLayer, data: Data) -> "Withstands":
        """By proved radii, and by the direction of vardi2022."""
        radii = Exact(gap=RADIUS_GAP).bound(network, data)
        size = Universal(margin_slack=SLACK).run(network, data).smallest
        return cls(
            float(radii.lower.mean()),
            float(radii.lower.min()),
            size if math.isfinite(size) else None,
            bool(radii.exact.all()),
        )


class Largest(NamedTuple):
    """The network of largest margin on some data, and what it withstands."""

    data: Data
    found: LargestMargin
    withstands: Withstands

    @classmethod
    def on(cls, data: Data) -> "Largest":
        """Searched until the gap is proved."""
        found = largest(data, gap=GAP, seconds=HOURS)
        return cls(data, found, Withstands.of(found.network, data))

    @property
    def reached(self) -> bool:
        """Whether all that is said of it is proved."""
        return self.found.status is Status.REACHED and self.withstands.exact

    def beside(self, name: str, network: TwoLayer) -> Point:
        """Another network's margin, radii and direction as shares of this one's; all named alike."""
        mine, other = self.withstands, Withstands.of(network, self.data)
        sizes = (mine.direction, other.direction)
        margin = float(network.margins(self.data.X, self.data.y).min() / network.squared_norm)
        return {
            f"{name}_share": margin / self.found.normalised_margin,
            f"{name}_radius": other.mean / mine.mean,
            f"{name}_least": other.least / mine.least,
            f"{name}_direction": None if sizes[0] is None or sizes[1] is None else sizes[1] / sizes[0],
            f"{name}_exact": other.exact,
        }
