"""The examples that Lemmas A.12 and D.2 admit form polytopes; their worst points, by linear programs.

x belongs to cluster r if <x, x_i> is in [d-Δ, d+Δ] for the examples x_i of it and in [-p-Δ, p+Δ] for all others. To
minimise Σ c_j φ(w_j·x + b_j) there, a term with c_j > 0 is convex, and one with c_j < 0 is the smaller of c_j (w_j·x +
b_j) and 0: one linear program for every choice among those.
"""

import itertools

import numpy as np
import scipy
import torch
from torch import Tensor

from brittle.networks import TwoLayer
from brittle.theorems.frei2023.groups import ClusterGroups

MANY = 8  # concave neurons; more have too many choices


def worst_in_clusters(network: TwoLayer, groups: ClusterGroups, sign: int) -> tuple[Tensor, Tensor]:
    """For every cluster r the point of its polytope at which sign y_r N is smallest, (k, columns), and y_r.

    Rows of NaN where the network has too many neurons to be sure.
    """
    points = [_worst(network, groups, r, sign * float(groups.labels[r])) for r in range(len(groups))]
    return torch.stack(points), groups.labels


def _worst(network: TwoLayer, groups: ClusterGroups, cluster: int, sign: float) -> Tensor:
    """Where sign N is smallest in the polytope of the cluster."""
    c = sign * network.v.double()
    concave = torch.nonzero(c < 0)[:, 0].tolist()
    if len(concave) > MANY:
        return torch.full_like(groups.centres[0], torch.nan)
    found = [_minimum(network, groups, cluster, c, list(chosen)) for chosen in _subsets(concave)]
    values = [float(c @ network.preactivations(x[None]).relu()[0]) for x in found]
    return found[int(np.argmin(values))]


def _subsets(items: list[int]) -> itertools.chain[tuple[int, ...]]:
    return itertools.chain.from_iterable(itertools.combinations(items, size) for size in range(len(items) + 1))


def _minimum(network: TwoLayer, groups: ClusterGroups, cluster: int, c: Tensor, chosen: list[int]) -> Tensor:
    """The minimum of Σ_{c_j > 0} c_j t_j + Σ_{j chosen} c_j (w_j·x + b_j) over x and t_j ≥ max(0, w_j·x + b_j)."""
    convex = torch.nonzero(c > 0)[:, 0]
    basis = torch.linalg.qr(groups.data.X.T).Q  # at a KKT point the output depends on x in their span alone
    W, b = network.W.double() @ basis, network.b.double()
    columns, extra = W.shape[1], len(convex)
    gram, (low, high) = groups.data.X @ basis, _box(groups, cluster)
    objective = torch.cat([c[chosen] @ W[chosen], c[convex]]).numpy()
    blank = torch.zeros(len(gram), extra, dtype=torch.float64)
    rows = torch.cat([torch.cat([W[convex], -torch.eye(extra, dtype=torch.float64)], 1), torch.cat([gram, blank], 1)])
    rows = torch.cat([rows, torch.cat([-gram, blank], 1)])
    limits = torch.cat([-b[convex], high, -low])
    bounds = [(None, None)] * columns + [(0, None)] * extra
    solved = scipy.optimize.linprog(objective, rows.numpy(), limits.numpy(), bounds=bounds, method="highs")
    assert solved.status == 0, solved.message
    x: Tensor = basis @ torch.from_numpy(solved.x[:columns])
    return x


def _box(groups: ClusterGroups, cluster: int) -> tuple[Tensor, Tensor]:
    """The least and the largest <x, x_i> of the cluster's polytope, (n,) each."""
    own, delta = groups.cluster == cluster, groups.constants.spread
    low = torch.where(own, groups.dim - delta, -groups.coherence - delta).double()
    high = torch.where(own, groups.dim + delta, groups.coherence + delta).double()
    return low, high
