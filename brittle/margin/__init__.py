"""What gradient flow is biased to: how far a network is from a KKT point, and KKT points themselves."""

from brittle.margin.compress import compress
from brittle.margin.kkt import KKTResidual, residual
from brittle.margin.path import Moment, along_flow, moment
from brittle.margin.solve import KKTPoint, Status, solve, solve_many

__all__ = [
    "KKTPoint",
    "KKTResidual",
    "Moment",
    "Status",
    "along_flow",
    "compress",
    "moment",
    "residual",
    "solve",
    "solve_many",
]
