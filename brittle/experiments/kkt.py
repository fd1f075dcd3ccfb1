"""The KKT point of the max-margin problem to which a start leads, for the figures of several papers."""

from brittle.data import Data
from brittle.kkt import KKTPoint, solve
from brittle.networks import TwoLayer
from brittle.training import Flow, LogLoss


def kkt_point_from(start: TwoLayer, data: Data) -> KKTPoint:
    """The start is walked to log-loss -3 only: its activation patterns are all that the solver takes from it."""
    return solve(Flow(until=LogLoss(-3.0), tolerance=3e-3).train(start, data).network, data)
