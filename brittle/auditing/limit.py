"""How far from the boundary the data allow any network to keep its examples.

Two rightly classified examples of different classes at distance d have radii r_i + r_j ≤ d: a boundary lies between
them. So ρ_i, half the distance to the nearest example of another class, is a fair yardstick. A single example may have
more, at the cost of its rival; the mean of all cannot exceed the linear program max Σ r_i with r_i + r_j ≤ d_ij.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy
import torch
from scipy import sparse
from torch import Tensor

from brittle.common.errors import InputError
from brittle.common.result import Result
from brittle.geometry import nearest_rivals
from brittle.settings import Data

MOST_PAIRS = 100_000  # of examples of different classes in the linear program


@dataclass(frozen=True, eq=False)
class Limit(Result):
    """What the data allow the audited examples.

    `radii` are ρ of each, `rivals` the training examples they are nearest to among those of other classes. `mean` is
    the largest mean radius that any network can have on them, None where they are too many for the linear program.
    `share` is the median of attacked radii over ρ, `proved_share` that of proved ones, None without proofs.
    """

    radii: Tensor
    rivals: Tensor
    median: float
    mean: float | None
    share: float
    proved_share: float | None

    def proving(self, proved: Tensor | None) -> "Limit":
        """With what is proved of the first audited examples."""
        return replace(self, proved_share=None if proved is None else share_of(proved, self.radii))


def limit(data: Data, audited: Data, norms: Tensor) -> Limit | None:
    """For the `audited` examples with these radii; None where the training data have one class only."""
    try:
        distances, rivals = nearest_rivals(audited.X, audited.y, data.X, data.y)
    except InputError:
        return None
    radii = distances / 2
    return Limit(
        radii=radii,
        rivals=rivals,
        median=float(radii.median()),
        mean=largest_mean(audited.X, audited.y, distances),
        share=share_of(norms, radii),
        proved_share=None,
    )


def share_of(norms: Tensor, radii: Tensor) -> float:
    """The median of the ratios; an example that coincides with a rival has nothing to share."""
    some = radii[: len(norms)] > 0
    return float((norms[some] / radii[: len(norms)][some]).median()) if bool(some.any()) else 0.0


def largest_mean(X: Tensor, y: Tensor, distances: Tensor) -> float | None:
    """The linear program's value over the number of examples; no radius exceeds the distance to the nearest rival."""
    first, second = torch.nonzero(torch.triu(y[:, None] != y), as_tuple=True)
    if len(first) > MOST_PAIRS:
        return None
    if not len(first):
        return float(distances.mean())
    apart = (X[first] - X[second]).norm(dim=1).numpy()
    pairs = np.repeat(np.arange(len(first)), 2)
    members = torch.stack([first, second], 1).reshape(-1).numpy()
    rows = sparse.coo_array((np.ones(len(members)), (pairs, members)), (len(first), len(X)))
    bounds = np.stack([np.zeros(len(X)), distances.numpy()], 1)
    found = scipy.optimize.linprog(-np.ones(len(X)), A_ub=rows.tocsr(), b_ub=apart, bounds=bounds)
    return float(-found.fun) / len(X) if found.success else None
