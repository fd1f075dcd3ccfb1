"""λ of a network: as much curvature as its Hessian bears, the same for all examples."""

import math

import numpy as np
import torch
from scipy.sparse import linalg as sparse_linalg
from torch import Tensor

from brittle.certificates.deep_dual.chain import Chain
from brittle.certificates.deep_dual.definite import Curvatures, chain_floor, cholesky_floor
from brittle.certificates.deep_dual.lagrangian import Point, hessian
from brittle.certificates.scales import Array

LAST = 1.6  # times the last layer's λ, where only norms are known; below 2, at which H may be singular
LARGEST = 8192  # neurons of a network whose Hessian is factored: half a gigabyte
ROOM = 0.03  # the smallest eigenvalue of the scaled Hessian that is aimed at
HALVINGS = 7
RETREAT = 0.98  # of the stretch, if its proof fails


def of_network(chain: Chain) -> Curvatures:
    """λ_k = s^{k-1}/(‖W_1‖²···‖W_k‖²) with the largest s that is proved; where none is, what the norms prove."""
    plain = [1 / product**2 for product in np.cumprod([norm or 1.0 for norm in chain.norms])]
    last = [*plain[:-1], plain[-1] * LAST]
    found = _stretched(chain, plain) if len(plain) > 1 and sum(chain.widths) <= LARGEST else None
    return found or Curvatures(_tensors(last), chain_floor(chain.norms, last))


def _stretched(chain: Chain, plain: list[float]) -> Curvatures | None:
    weights = [each.matrix.numpy() for each in chain.maps]
    stretch = _largest_stretch(chain, plain)
    while stretch > 1:
        values = _powers(plain, stretch)
        floor = cholesky_floor(weights, [np.asarray(lam) for lam in values], 0.5 * ROOM)
        if floor > 0:
            return Curvatures(_tensors(values), floor)
        stretch *= RETREAT
    return None


def _powers(plain: list[float], stretch: float) -> list[float]:
    return [lam * stretch**place for place, lam in enumerate(plain)]


def _largest_stretch(chain: Chain, plain: list[float]) -> float:
    """An estimate, by bisection."""
    low, high = 1.0, 4.0
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        if smallest_eigenvalue(chain, _tensors(_powers(plain, middle))) >= ROOM:
            low = middle
        else:
            high = middle
    return low


def smallest_eigenvalue(chain: Chain, curvatures: tuple[Tensor, ...]) -> float:
    """An estimate of that of the scaled Hessian, by Lanczos' method."""
    sizes = [chain.maps[0].inputs, *chain.widths]
    scales = [torch.ones((), dtype=torch.float64), *(lam.rsqrt() for lam in curvatures)]

    def product(vector: Array) -> Array:
        parts = torch.split(torch.from_numpy(np.ascontiguousarray(vector).reshape(-1)), sizes)
        delta, *hidden = (scale * part[None] for scale, part in zip(scales, parts, strict=True))
        image = hessian(chain, curvatures, Point(delta, tuple(hidden)))
        whole = [scale * part[0] for scale, part in zip(scales, (image.delta, *image.hidden), strict=True)]
        return torch.cat(whole).numpy()

    operator = sparse_linalg.LinearOperator((sum(sizes),) * 2, matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(sum(sizes))
    try:
        values = sparse_linalg.eigsh(operator, k=1, which="SA", tol=1e-2, v0=start, return_eigenvectors=False)
    except sparse_linalg.ArpackNoConvergence:
        return -math.inf
    return float(values[0])


def _tensors(values: list[float]) -> tuple[Tensor, ...]:
    return tuple(torch.tensor(value, dtype=torch.float64) for value in values)
