"""What gradient flow is biased to: how far a network is from a KKT point, KKT points, and the largest margin."""

from brittle.common.ending import Ending
from brittle.margin.any_width.checker import CheckedMargin
from brittle.margin.any_width.checker import check as check_margin
from brittle.margin.any_width.gap import MarginGap, gap
from brittle.margin.any_width.largest import LargestMargin, largest
from brittle.margin.any_width.proof import MarginProof
from brittle.margin.compress import compress
from brittle.margin.deep_kkt import DeepKKTResidual, deep_residual
from brittle.margin.follow import follow
from brittle.margin.kkt import KKTResidual, residual
from brittle.margin.path import Moment, along_flow, moment
from brittle.margin.solve import KKTPoint, solve, solve_many

__all__ = [
    "CheckedMargin",
    "DeepKKTResidual",
    "Ending",
    "KKTPoint",
    "KKTResidual",
    "LargestMargin",
    "MarginGap",
    "MarginProof",
    "Moment",
    "along_flow",
    "check_margin",
    "compress",
    "deep_residual",
    "follow",
    "gap",
    "largest",
    "moment",
    "residual",
    "solve",
    "solve_many",
]
