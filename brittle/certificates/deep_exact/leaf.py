"""A branch without free neurons is a polyhedron, and its flips are as far away as the nearest of its points.

At every flip the forms satisfy f ≤ e and l - e ≤ z ≤ u + e with the slips e: Aε ≥ h. For any ν ≥ 0 then
h·ν ≤ ν·Aε ≤ ‖Aᵀν‖‖ε‖, whoever found ν: where the interior point stops short, because the margin is nearly constant or
the polyhedron empty, non-negative least squares find a good one at once (`geometry.least_distance`).
"""

import numpy as np
from scipy.optimize import nnls

from brittle.certificates.deep_exact.problem import SdpProblem
from brittle.certificates.rounding import SQUARES, UNDERFLOW, Array, gamma

ITERATIONS = 30  # per inequality


def leaf_floor(problem: SdpProblem) -> float:
    """A floor under ½‖ε‖² at every flip of a branch whose neurons are all settled; infinity where there is none."""
    A, h = inequalities(problem)
    normal, lift = _judged(A, h, multipliers(A, h))
    if not lift > 0:
        return 0.0
    with np.errstate(over="ignore", divide="ignore"):
        return float(0.5 * (lift / normal) ** 2 * (1 - gamma(8)))


def inequalities(problem: SdpProblem) -> tuple[Array, Array]:
    """Aε ≥ h, with h rounded down."""
    assert problem.n == 0
    rows, heights, slips = problem.rows[:, :-1], problem.rows[:, -1], problem.slips
    A = np.vstack([-rows[:1], rows[1:], -rows[1:]])
    ends = np.concatenate([[0.0], problem.low, -problem.high])
    signed = np.concatenate([heights[:1], -heights[1:], heights[1:]])
    slack = np.concatenate([slips[:1], slips[1:], slips[1:]])
    return A, ends + signed - slack - gamma(6) * (np.abs(ends) + np.abs(signed) + slack) - UNDERFLOW


def multipliers(A: Array, h: Array) -> Array:
    """Those of the nearest point, or of a contradiction; any that are not negative would be valid."""
    lengths = np.linalg.norm(A, axis=1)
    lengths[lengths == 0] = 1.0
    heights = h / lengths
    scale = heights.max(initial=0.0)
    good = 0 < scale < np.inf and bool(np.isfinite(heights).all())
    if not good:
        return np.zeros(len(h))
    target = np.append(np.zeros(A.shape[1]), 1.0)
    try:
        nu, _ = nnls(np.vstack([(A / lengths[:, None]).T, heights / scale]), target, maxiter=ITERATIONS * len(h))
    except RuntimeError:  # it did not converge
        return np.zeros(len(h))
    return np.asarray(np.maximum(nu / lengths, 0.0))


def _judged(A: Array, h: Array, nu: Array) -> tuple[float, float]:
    """‖Aᵀν‖ from above and h·ν from below, -infinity where they are no numbers."""
    count, size = A.shape
    share = gamma(count + 4)
    normal, error = nu @ A, share * (nu @ np.abs(A))
    length = (np.linalg.norm(normal) + np.linalg.norm(error)) * (1 + gamma(size + 8)) + SQUARES
    lift = h @ nu - share * (np.abs(h) @ nu) - UNDERFLOW
    good = bool(np.isfinite(length) and np.isfinite(lift))
    return (float(length), float(lift)) if good else (1.0, -np.inf)
