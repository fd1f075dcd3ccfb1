"""How often a network can be wrong on a cluster at most, in closed form.

Only the part of the noise in the span of the weights, σ times a standard normal vector of R^rank, moves the output. A
radius within which the sign at the mean is certified makes the error a tail of the χ² law.
"""

import scipy
import torch
from torch import Tensor

from brittle.certificates import Lipschitz
from brittle.geometry import rank_of
from brittle.networks import TwoLayer
from brittle.settings import Data
from brittle.theorems.intervals import clopper_pearson


def largest_wrong_share(network: TwoLayer, centres: Tensor, labels: Tensor, noise: float) -> float:
    """An upper bound on P[y N(centre + σξ) ≤ 0], a centre being drawn at random."""
    correct = network.margins(centres, labels) > 0
    if noise == 0 or not bool(correct.any()):
        return float((~correct).double().mean())
    radii = torch.zeros(len(labels), dtype=torch.float64)
    radii[correct] = Lipschitz().bound(network, Data(centres[correct], labels[correct])).lower.double()
    rank = rank_of(torch.linalg.svdvals(network.W))
    return float(scipy.stats.chi2.sf((radii / noise).square().numpy(), rank).mean())


def judged_share(counted: int, trials: int, at_most: float, allowed: float) -> float:
    """The lower end of the counted interval where it exceeds what is allowed, whatever the upper bound says; else the
    upper bound where it suffices; else NaN."""
    low, _ = clopper_pearson(counted, trials)
    if low > allowed:
        return low
    return at_most if at_most <= allowed else float("nan")
