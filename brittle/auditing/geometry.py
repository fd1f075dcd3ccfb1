"""What the data look like to the theorems: dimensions, angles, balance, clusters."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brittle.common.result import Result
from brittle.geometry import rank_of
from brittle.settings import Data

LARGEST_GRAM = 4000  # examples whose pairwise angles are measured; more are sampled evenly
MOST_CLUSTERS = 12
CLUSTER_DIRECTIONS = 30  # leading singular directions in which groups are looked for: k means span fewer than k
SHARES = (0.90, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class Geometry(Result):
    """Measured on the training examples; `basis` (columns, rank) spans them."""

    examples: int
    columns: int
    dim: int
    rank: int
    codimension: int  # of the linear span, in the columns that the network sees
    affine_rank: int
    effective_dimensions: dict[str, int]  # principal components for a share of the variance
    norm_mean: float
    norm_spread: float  # largest over smallest
    largest_product: float  # p after rescaling to mean square norm d
    largest_cosine: float
    label_balance: float  # share of the rarest label
    example_limit: float  # vardi2022/4.1: (d + 1)/(3 (p + 1))
    nearly_orthogonal: bool
    clusters: int  # 1 where no grouping stands out
    cluster_silhouette: float
    duplicates: int
    basis: Tensor

    def content(self) -> dict[str, Any]:
        """Everything but the basis, which is as long as the data."""
        return {name: value for name, value in super().content().items() if name != "basis"}


def geometry(data: Data) -> Geometry:
    X, y = data.X, data.y
    scale, Vh = _spectrum(X)
    rank = rank_of(scale)
    centred, _ = _spectrum(X - X.mean(0))
    norms = torch.linalg.vector_norm(X, dim=1)
    product, cosine = _largest_products(X, data.dim)
    limit = (data.dim + 1) / (3 * (product + 1))
    clusters, silhouette = _clusters(X @ Vh[:CLUSTER_DIRECTIONS].T)
    counts = torch.unique(y, return_counts=True)[1]
    return Geometry(
        examples=len(data),
        columns=data.columns,
        dim=data.dim,
        rank=rank,
        codimension=data.columns - rank,
        affine_rank=rank_of(centred),
        effective_dimensions={f"{share:.0%}": _effective(centred, share) for share in SHARES},
        norm_mean=float(norms.mean()),
        norm_spread=float(norms.max() / norms.min()) if norms.min() > 0 else float("inf"),
        largest_product=product,
        largest_cosine=cosine,
        label_balance=float(counts.min() / len(data)) if len(counts) > 1 else 0.0,
        example_limit=limit,
        nearly_orthogonal=len(data) <= limit,
        clusters=clusters,
        cluster_silhouette=silhouette,
        duplicates=len(data) - len(torch.unique(X, dim=0)),
        basis=Vh[:rank].T.clone(),
    )


def _spectrum(X: Tensor) -> tuple[Tensor, Tensor]:
    """Singular values and right singular vectors."""
    _, scale, Vh = torch.linalg.svd(X, full_matrices=False)
    return scale, Vh


def _effective(scale: Tensor, share: float) -> int:
    variance = scale.square().cumsum(0)
    if variance[-1] == 0:
        return 0
    return min(int((variance < share * variance[-1]).sum()) + 1, len(scale))


def _largest_products(X: Tensor, dim: int) -> tuple[float, float]:
    """max |<x_i, x_j>| once the mean square norm is d, and max |cos|, over pairs i ≠ j."""
    step = -(-len(X) // LARGEST_GRAM)
    X = X[::step]
    gram = X @ X.T
    squares = gram.diagonal().clone()
    if len(X) < 2 or squares.mean() == 0:
        return 0.0, 0.0
    gram.fill_diagonal_(0)
    lengths = squares.sqrt().clamp_min(torch.finfo(X.dtype).tiny)
    cosines = gram / lengths[:, None] / lengths
    return float(gram.abs().max() * dim / squares.mean()), float(cosines.abs().max())


def _clusters(X: Tensor) -> tuple[int, float]:
    """The number of groups with the best silhouette, and that silhouette; 1 where none reaches 0.5."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    points = X[:: -(-len(X) // 1000)].numpy()
    most = min(MOST_CLUSTERS, len(torch.unique(torch.from_numpy(points), dim=0)) - 1)
    best = (1, 0.0)
    for count in range(2, most + 1):
        groups = KMeans(count, n_init=3, random_state=0).fit_predict(points)
        score = float(silhouette_score(points, groups))
        best = max(best, (count, score), key=lambda pair: pair[1])
    return best if best[1] >= 0.5 else (1, best[1])
