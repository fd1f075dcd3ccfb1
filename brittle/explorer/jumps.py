"""From points to a network at once, without watching the flow: each way is a button of the laboratory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from brittle.explorer.clock import Clock
from brittle.margin import KKTResidual, solve
from brittle.networks import TwoLayer
from brittle.settings import Data


@dataclass(frozen=True, eq=False)
class Landed:
    """The `network` that a jump led to, its `residual`, and what else there is to `say` of it."""

    network: TwoLayer
    residual: KKTResidual
    say: dict[str, Any]


Jump = Callable[[TwoLayer, Data, Clock], Landed]


def kkt_point(start: TwoLayer, data: Data, clock: Clock) -> Landed:
    """The KKT point near the patterns of a network that classifies the points."""
    point = solve(start, data, watch=clock)
    return Landed(point.network, point.residual, {"status": point.status.value, "rounds": point.rounds})


JUMPS: dict[str, tuple[str, Jump]] = {"kkt": ("Jump to the KKT point", kkt_point)}
