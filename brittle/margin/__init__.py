"""What gradient flow is biased to: how far a network is from a KKT point, and KKT points themselves."""

from brittle.common.ending import Ending
from brittle.margin.compress import compress
from brittle.margin.deep_kkt import DeepKKTResidual, deep_residual
from brittle.margin.kkt import KKTResidual, residual
from brittle.margin.path import Moment, along_flow, moment
from brittle.margin.solve import KKTPoint, solve, solve_many

__all__ = [
    "DeepKKTResidual",
    "Ending",
    "KKTPoint",
    "KKTResidual",
    "Moment",
    "along_flow",
    "compress",
    "deep_residual",
    "moment",
    "residual",
    "solve",
    "solve_many",
]
