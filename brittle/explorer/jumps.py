"""From points to a network at once, without watching the flow: each way is a button of the laboratory."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Generator

from brittle.explorer.clock import Clock
from brittle.margin import KKTPoint, KKTResidual, follow, largest, residual, solve
from brittle.networks import TwoLayer, as_two_layer
from brittle.settings import Data
from brittle.training import MaximumRadius, Steps

REMEMBERED = 8  # landings
GAP = 1e-3  # that is proved of the largest margin
LONG, SHORT = 150, 30  # steps for the radius: from anywhere, and after a point was moved


@dataclass(frozen=True, eq=False)
class Landed:
    """The `network` that a jump on these `data` led to, its `residual` if known, and what else there is to `say` of it.

    `point` is the KKT point that it is, if it is one: it can be followed while points move.
    """

    network: TwoLayer
    data: Data
    residual: KKTResidual | None
    say: dict[str, Any]
    point: KKTPoint | None = None


Start = Callable[[], TwoLayer]  # a network that classifies the points, however long it takes to find one
Jump = Callable[[Start, Data, Clock, Landed | None, bool], Landed | None]


@dataclass(frozen=True, eq=False)
class Memory:
    """Where the last jumps led, by the weights: whoever moves a point goes on from there."""

    landed: OrderedDict[bytes, Landed] = field(default_factory=OrderedDict)

    def keep(self, landed: Landed) -> None:
        self.landed[_key(landed.network)] = landed
        while len(self.landed) > REMEMBERED:
            self.landed.popitem(last=False)

    def find(self, network: TwoLayer) -> Landed | None:
        """The jump that led to exactly this network."""
        return self.landed.get(_key(network))


def _key(network: TwoLayer) -> bytes:
    return b"".join(each.contiguous().numpy().tobytes() for each in (network.W, network.b, network.v))


def kkt_point(start: Start, data: Data, clock: Clock, last: Landed | None, patient: bool) -> Landed | None:
    """The last KKT point, followed to where the points are now; else, if `patient`, the one near the start."""
    point, way = None, "followed"
    if last is not None and last.point is not None and last.data.X.shape == data.X.shape:
        point = follow(last.point, last.data, data)
    if point is None and not patient and last is not None:
        return None
    if point is None:
        point, way = solve(start(), data, watch=clock), "solved"
    say = {"status": point.status.value, "way": way, "rounds": point.rounds}
    return Landed(point.network, data, point.residual, say, point)


def largest_margin(start: Start, data: Data, clock: Clock, last: Landed | None, patient: bool) -> Landed | None:
    """The KKT point of the largest margin over all widths, with its proof; who does not wait follows the last one."""
    if not patient and last is not None:
        return kkt_point(start, data, clock, last, patient)
    found = largest(data, gap=GAP, seconds=clock.left, clock=time.thread_time)
    point = solve(found.network, data, watch=clock)
    network = point.network if point.normalised_margin >= found.normalised_margin * (1 - 1e-9) else found.network
    measured = residual(network, data)
    say = {"way": "largest", "status": found.status.value, "upper": found.upper}
    say["share"] = measured.normalised_margin / found.upper
    return Landed(network, data, measured, say, point if network is point.network else None)


def for_the_radius(start: Start, data: Data, clock: Clock, last: Landed | None, patient: bool) -> Landed | None:
    """Trained on for every point's distance from the boundary, up to what the data allow: what hardening does."""
    steps = LONG if patient or last is None else SHORT
    regime = MaximumRadius(until=Steps(steps))
    made = regime.train(start(), data, Generator().manual_seed(0), watch=clock).network
    return Landed(as_two_layer(made, "what hardening made"), data, None, {"way": "radius", "steps": steps})


JUMPS: dict[str, tuple[str, Jump]] = {
    "kkt": ("Jump to the KKT point", kkt_point),
    "largest": ("Largest margin", largest_margin),
    "radius": ("Harden", for_the_radius),
}
