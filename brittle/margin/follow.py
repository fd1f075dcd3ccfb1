"""A KKT point followed while the examples move: the same active set first, and no program is solved again."""

import time
from dataclasses import replace

import torch
from torch import Tensor

from brittle.common.ending import Ending
from brittle.common.errors import require, require_positive
from brittle.margin.candidate import Candidate, Slope
from brittle.margin.columns import realised
from brittle.margin.convex_concave import finish
from brittle.margin.examples import Examples, gather
from brittle.margin.kkt import Homogeneous, KKTResidual, homogeneous, residual
from brittle.margin.neurons import Neurons
from brittle.margin.solve import KKTPoint, as_network
from brittle.settings import Data

NEGLIGIBLE = 1e-9  # of the largest multiplier


def follow(point: KKTPoint, before: Data, after: Data, *, tolerance: float = 1e-9) -> KKTPoint | None:
    """The KKT point on `after` that Newton's method reaches from a `point` on `before`, the same examples elsewhere.

    None where it reaches none: examples moved too far, or the active set changed too much; `solve` finds one then.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(4).sample(4)
        >>> point = bt.margin.solve(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> moved = bt.settings.Data(1.001 * data.X, data.y)
        >>> found = bt.margin.follow(point, data, moved)
        >>> found is None or found.residual.stationarity < 1e-9
        True
    """
    require_positive("tolerance", tolerance)
    same = before.X.shape == after.X.shape
    require(same, f"before has examples of shape {tuple(before.X.shape)} and after {tuple(after.X.shape)}")
    began, biases = time.perf_counter(), point.residual.biases
    old = homogeneous(point.network, before, biases)
    examples = gather(homogeneous(point.network, after, biases).X, after.y)
    if len(examples.X) < len(after) or not bool((before.y == after.y).all()):
        return None
    finished = finish(_candidate(old, point.residual, examples, after.y))
    if not finished.converged:
        return None
    network = as_network(finished.candidate.neurons.nonzero(), examples, biases)
    if network is None:
        return None
    measured = residual(network, after, biases=biases)
    if max(measured.stationarity, measured.complementarity) > tolerance:
        return None
    return replace(
        point,
        network=network,
        residual=measured,
        status=Ending.SOLVED,
        rounds=0,
        steps=0,
        seconds=time.perf_counter() - began,
    )


def _candidate(old: Homogeneous, known: KKTResidual, examples: Examples, y: Tensor) -> Candidate:
    """Multipliers, lengths and slopes of the old point, in the units of the new examples.

    There u_g = μ_g Σ c_gi x̃_i/unit with c_gᵀKc_g = 1, so that μ_g = ‖u_g‖√unit and λ is √unit times what it was.
    """
    neurons = Neurons.of(old.weights)
    Z, root = old.X @ neurons.U.T, examples.unit**0.5
    columns = realised(Z, neurons.signs, y)
    slopes = torch.where(Z.T > 0, int(Slope.ON), int(Slope.OFF))
    lam = root * known.multipliers
    t = torch.where(slopes == Slope.ON, lam, 0.0)
    rows, which = known.kinks.T
    slopes[which, rows] = int(Slope.KINK)
    t[which, rows] = known.slopes * lam[rows]
    carried = lam > NEGLIGIBLE * lam.max()
    return Candidate(examples, columns, lam, root * neurons.U.norm(dim=1), t, carried, slopes)
