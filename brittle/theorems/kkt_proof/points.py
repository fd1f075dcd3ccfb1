"""Several KKT points of one data set: the theorems speak of every one."""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from brittle.networks import TwoLayer
from brittle.theorems.comparison import Comparison, Promise, at_most, promise_at_most
from brittle.theorems.instance import Facts, Instance

LARGEST_ELSEWHERE = "largest margin after it at the other KKT points"


@dataclass(frozen=True, eq=False)
class OtherPoints(Facts):
    """`networks`: further KKT points of the same data, from other starts."""

    networks: tuple[TwoLayer, ...]


def others(instance: Instance) -> tuple[Instance, ...]:
    """The same data at the other points."""
    facts = instance.known(OtherPoints)
    return () if facts is None else tuple(Instance(instance.data, network) for network in facts.networks)


def other_distances(instance: Instance, tolerance: float) -> Iterator[Comparison]:
    """They are KKT points too."""
    if points := others(instance):
        farthest = max(point.kkt_distance for point in points)
        yield at_most("distance of the others from a KKT point", farthest, tolerance)


def other_promises(instance: Instance) -> list[Promise]:
    """The same perturbation takes the same examples to margin ≤ -1 there, each point being scaled to margin 1."""
    return [promise_at_most(LARGEST_ELSEWHERE, -1)] if others(instance) else []


def other_measures(instance: Instance, moved: Tensor, y: Tensor) -> dict[str, float]:
    """The largest margin of the moved examples there, in units of each point's own margin."""
    margins = [float(p.two_layer.margins(moved, y).max()) / p.smallest_margin for p in others(instance)]
    return {LARGEST_ELSEWHERE: max(margins)} if margins else {}
