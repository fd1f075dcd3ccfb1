"""What gradient flow is biased to: how far a network is from a KKT point, KKT points, and the largest margin."""

from brittle.common.ending import Status
from brittle.kkt.any_width.checker import CheckedMargin
from brittle.kkt.any_width.checker import check as check_margin
from brittle.kkt.any_width.gap import MarginGap, gap
from brittle.kkt.any_width.largest import LargestMargin, largest
from brittle.kkt.any_width.proof import MarginProof
from brittle.kkt.deep_kkt import DeepKKTResidual, deep_residual
from brittle.kkt.path import PathNetwork, along_flow, moment
from brittle.kkt.residual import KKTResidual, residual
from brittle.kkt.solve import KKTPoint, compress, follow, solve, solve_many

__all__ = [
    "CheckedMargin",
    "DeepKKTResidual",
    "KKTPoint",
    "KKTResidual",
    "LargestMargin",
    "MarginGap",
    "MarginProof",
    "PathNetwork",
    "Status",
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
