"""The point of a polyhedron that is nearest to the origin: Lawson and Hanson's reduction to non-negative least squares.

min ‖δ‖ subject to Aδ ≥ h. With E = [Aᵀ; hᵀ] and e the last unit vector, the residual r = e - Eν of min ‖Eν - e‖ over
ν ≥ 0 gives δ = -r_{1..d} / r_{d+1}; it vanishes exactly where there is no such δ.
"""

import contextlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EMPTY = 1e-12  # residual below which the polyhedron is taken for empty
ITERATIONS = 30  # per inequality, ten times scipy's own limit
EVEN = 1e-2  # of a triangular factor's largest diagonal entry: smaller ones are inaccurate after squaring


class LeastDistance(NamedTuple):
    """point (d,): the shortest δ, None where none is found; `lower`: what ‖δ‖ is at least, infinite if none is there.

    `lower` = h·ν/‖Aᵀν‖ holds for any ν ≥ 0, and so does not depend on the accuracy of the least squares. Where numbers
    overflow nothing is found, and `lower` is 0.

    Examples:
        >>> import numpy as np
        >>> from brittle.geometry import least_distance
        >>> found = least_distance(np.array([[1.0, 1.0]]), np.array([2.0]))
        >>> found.point.round(6).tolist(), round(found.lower, 6)
        ([1.0, 1.0], 1.414214)
    """

    point: Floats | None
    lower: float

    @property
    def distance(self) -> float:
        """‖δ‖, infinite where there is none; 0, which claims nothing, where numbers overflow."""
        return self.lower if self.point is None else float(np.linalg.norm(self.point))


def least_distance(A: Floats, h: Floats) -> LeastDistance:
    """The shortest δ with Aδ ≥ h, for A (k, d) and h (k,).

    Examples:
        >>> import numpy as np
        >>> from brittle.geometry import least_distance
        >>> corner = least_distance(np.eye(2), np.array([3.0, 4.0]))
        >>> round(float(np.linalg.norm(corner.point)), 6)
        5.0
        >>> least_distance(np.array([[1.0], [-1.0]]), np.array([1.0, 1.0])).point is None
        True
    """
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(A, axis=1)
        lengths[lengths == 0] = 1.0
        A, h = A / lengths[:, None], h / lengths
    if not all(np.isfinite(each).all() for each in (lengths, A, h)):
        return LeastDistance(None, 0.0)
    scale = h.max(initial=0.0)
    if scale <= 0:
        return LeastDistance(np.zeros(A.shape[1]), 0.0)
    from scipy.optimize import nnls  # here, because data are sampled without waiting for SciPy

    both = np.zeros((A.shape[1] + 1, len(h) + 1))  # E and e, side by side
    both[:-1, :-1], both[-1, :-1], both[-1, -1] = A.T, h / scale, 1.0
    turned = _triangle(both)  # no more rows than columns
    nu, misfit = nnls(turned[:, :-1], turned[:, -1], maxiter=ITERATIONS * len(h))
    if misfit < EMPTY:
        return LeastDistance(None, float("inf"))
    normal, lift = A.T @ nu, float(h @ nu)
    size = float(np.linalg.norm(normal))
    return LeastDistance(normal * (scale / (1 - lift / scale)), max(lift, 0.0) / size if size > 0 else 0.0)


def _triangle(E: Floats) -> Floats:
    """R with RᵀR = EᵀE. Where E is tall its product is quicker than QR, and as good unless columns nearly depend."""
    if len(E) > 2 * E.shape[1]:
        with contextlib.suppress(np.linalg.LinAlgError):
            R = np.linalg.cholesky(E.T @ E).T.astype(np.float64, copy=False)
            if R.diagonal().min() > EVEN * R.diagonal().max():
                return R
    factor: Floats = np.linalg.qr(E, mode="r")  # type: ignore[assignment]  # mode "r" gives one array
    return factor
