"""What rounding costs the certificates; the unit roundoff and γ_n are those of `geometry`.

A glossary of the error terms, which have one name in all files. Each is a bound that holds in real arithmetic.

model
    sizes     (k,) at least ‖w_j‖
    slips     (k,) how far a neuron's input in the model may be from that in the network, anywhere in the ball
    rest      (m,) how far w_j·δ may be from its value in the basis of the span, per length of δ
    stretch   how much longer than δ its coordinates ε may be: a basis is orthonormal up to rounding
    lost      (k,) how far an output weight may be off that would have fallen below the floats
    error     how far the network's margin may lie below the model's, anywhere in the ball

dual point
    slip      how far a sum of products may be off: γ_n times the sum of their absolute values
    off       at least ‖p - Ax‖, the residual of a computed solution x of Ax = p
    slant     how far a computed product Av may be off, per length of v
    spread    at least w·A⁻¹w
    σ, ς      A ⪰ σI is proved if A - (σ + ς)I has a Cholesky factor: ς pays for the rounding of A and of the factor
"""

import numpy as np

from brittle.certificates.scales import Array
from brittle.geometry.rounding import ROUNDOFF as ROUNDOFF
from brittle.geometry.rounding import SMALLEST as SMALLEST
from brittle.geometry.rounding import SQUARES as SQUARES
from brittle.geometry.rounding import UNDERFLOW as UNDERFLOW
from brittle.geometry.rounding import gamma as gamma


def length(vector: Array) -> float:
    """‖vector‖ or a little more: its squares may fall below the floats."""
    return float(np.linalg.norm(vector)) + SQUARES
