"""What gradient flow is biased to: how far a network is from a KKT point, and KKT points themselves."""

from brittle.common.ending import Ending
from brittle.margin.compress import compress
from brittle.margin.follow import follow
from brittle.margin.kkt import KKTResidual, residual
from brittle.margin.path import Moment, along_flow, moment
from brittle.margin.solve import KKTPoint, solve, solve_many

__all__ = [
    "Ending",
    "KKTPoint",
    "KKTResidual",
    "Moment",
    "along_flow",
    "compress",
    "follow",
    "moment",
    "residual",
    "solve",
    "solve_many",
]
