"""What the data look like to the theorems: dimensions, angles, balance, clusters."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy
import torch
from scipy import sparse
from threadpoolctl import threadpool_limits
from torch import Generator, Tensor

from brittle.common.errors import InputError
from brittle.common.result import Result
from brittle.data import Data
from brittle.geometry import Basis, nearest_rivals, rank_of

MOST_PAIRED = 4000  # examples whose pairwise angles are measured; more are sampled evenly
MOST_CLUSTERS = 12
CLUSTER_DIRECTIONS = 30  # leading singular directions in which groups are looked for: k means span fewer than k
SHARES = (0.90, 0.95, 0.99)
BLOCK = 2**22  # numbers that are worked on at a time: no copy of all examples is made
PLACES = 4  # random sums that every example is part of
CHECKS = 8  # random sums of all examples that must lie in the span
IN_SPAN = 1e-9  # of the length of such a sum may lie off it


@dataclass(frozen=True, eq=False)
class Geometry(Result):
    """Measured on the training examples.

    Where `rows` is less than the `examples`, the dimensions are those of so many random sums of examples. Of the rank
    that is the truth if `span_known`, which further sums of all examples confirm; otherwise the rank is at least that.
    """

    examples: int
    columns: int
    dim: int
    rows: int
    span_known: bool
    rank: int
    codimension: int | None  # of the linear span, in the columns that the network sees; None where it is not known
    affine_rank: int
    effective_dimensions: dict[str, int]  # principal components for a share of the variance
    norm_mean: float
    norm_spread: float  # largest over smallest
    paired: int  # examples whose pairwise products were measured
    largest_product: float  # p after rescaling to mean square norm d
    largest_cosine: float
    label_balance: float  # share of the rarest label
    example_limit: float  # vardi2022/4.1: (d + 1)/(3 (p + 1))
    nearly_orthogonal: bool
    clusters: int  # 1 where no grouping stands out
    cluster_silhouette: float
    duplicates: int
    basis: Tensor | None  # (columns, rank), orthonormal: spans the examples; None where the span is not known

    def content(self) -> dict[str, Any]:
        """Everything but the basis, which is as long as the data."""
        return {name: value for name, value in super().content().items() if name != "basis"}


class RandomSums(NamedTuple):
    """Random sums Y = SX (r, columns) of the examples with ‖Yu‖² ≈ ‖Xu‖², and S1 (r,); X itself if r = n."""

    Y: Tensor
    weights: Tensor

    @property
    def spectrum(self) -> tuple[Tensor, Tensor]:
        """Singular values and right singular vectors."""
        _, scale, Vh = torch.linalg.svd(self.Y, full_matrices=False)
        return scale, Vh

    def centred(self, mean: Tensor) -> Tensor:
        """Singular values of the same sums of x - mean."""
        values: Tensor = torch.linalg.svdvals(self.Y - self.weights[:, None] * mean)
        return values


def geometry(data: Data, rows: int | None = None, paired: int = MOST_PAIRED) -> Geometry:
    """The span is found from `rows` random sums of the examples, or from all of them; angles are those of `paired`."""
    X, rng = data.X, torch.Generator().manual_seed(0)
    rows = len(data) if rows is None else min(rows, len(data))
    sums = RandomSums(X, torch.ones(len(X), dtype=X.dtype)) if rows == len(data) else random_sums(X, rows, rng)
    scale, Vh = sums.spectrum
    rank, centred = rank_of(scale), sums.centred(X.mean(0))
    basis = Vh[:rank].T.clone()
    known = rows == len(data) or rank == data.columns or spans(basis, X, rng)
    norms = torch.linalg.vector_norm(X, dim=1)
    some = X[:: -(-len(X) // max(2, min(paired, MOST_PAIRED)))]
    product, cosine = _largest_products(some, data.dim)
    limit = (data.dim + 1) / (3 * (product + 1))
    clusters, silhouette = _clusters(X[:: -(-len(X) // 1000)] @ Vh[:CLUSTER_DIRECTIONS].T)
    counts = torch.unique(data.y, return_counts=True)[1]
    return Geometry(
        examples=len(data),
        columns=data.columns,
        dim=data.dim,
        rows=rows,
        span_known=known,
        rank=rank,
        codimension=data.columns - rank if known else None,
        affine_rank=rank_of(centred),
        effective_dimensions={f"{share:.0%}": _effective(centred, share) for share in SHARES},
        norm_mean=float(norms.mean()),
        norm_spread=float(norms.max() / norms.min()) if norms.min() > 0 else float("inf"),
        paired=len(some),
        largest_product=product,
        largest_cosine=cosine,
        label_balance=float(counts.min() / len(data)) if len(counts) > 1 else 0.0,
        example_limit=limit,
        nearly_orthogonal=len(data) <= limit,
        clusters=clusters,
        cluster_silhouette=silhouette,
        duplicates=len(data) - len({digest for block in _blocks(X) for digest in _digests(block)}),
        basis=basis if known else None,
    )


def random_sums(X: Tensor, rows: int, rng: Generator) -> RandomSums:
    """Every example goes into PLACES of the sums, with random signs: one pass over the examples, for any `rows`."""
    Y = torch.zeros(rows, X.shape[1], dtype=torch.float64)
    weights = torch.zeros(rows, dtype=torch.float64)
    for block in _blocks(X):
        for _ in range(PLACES):
            places = torch.randint(rows, (len(block),), generator=rng)
            signs = torch.randint(2, (len(block),), generator=rng) * (2 / PLACES**0.5) - 1 / PLACES**0.5
            Y.index_add_(0, places, block * signs[:, None])
            weights.index_add_(0, places, signs.double())
    return RandomSums(Y, weights)


def spans(basis: Tensor, X: Tensor, rng: Generator) -> bool:
    """Whether the basis spans all examples: if not, a random sum of them lies off it with probability one."""
    sums = torch.zeros(CHECKS, X.shape[1], dtype=torch.float64)
    for block in _blocks(X):
        sums += torch.randn(CHECKS, len(block), generator=rng, dtype=torch.float64) @ block
    return bool((Basis(basis).off(sums).norm(dim=1) <= IN_SPAN * sums.norm(dim=1)).all())


def _blocks(X: Tensor) -> Iterator[Tensor]:
    return (block.double() for block in torch.split(X, max(1, BLOCK // X.shape[1])))


def _digests(block: Tensor) -> Iterator[bytes]:
    """Of every row; zero has no sign here."""
    return (hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in (block + 0.0).numpy())


def _effective(scale: Tensor, share: float) -> int:
    variance = scale.square().cumsum(0)
    if variance[-1] == 0:
        return 0
    return min(int((variance < share * variance[-1]).sum()) + 1, len(scale))


def _largest_products(X: Tensor, dim: int) -> tuple[float, float]:
    """max |<x_i, x_j>| once the mean square norm is d, and max |cos|, over pairs i ≠ j."""
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
    groups, silhouette = cluster_examples(X)
    return int(groups.max()) + 1, silhouette


def cluster_examples(X: Tensor) -> tuple[Tensor, float]:
    """The groups (n,) with the best silhouette, numbered from 0, and that silhouette; one where none reaches 0.5."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    points = X.numpy()
    most = min(MOST_CLUSTERS, len(torch.unique(torch.from_numpy(points), dim=0)) - 1)
    best, highest = torch.zeros(len(X), dtype=torch.int64), 0.0
    for count in range(2, most + 1):
        with threadpool_limits(1):  # sums round differently with more
            groups = KMeans(count, n_init=3, random_state=0).fit_predict(points)
        score = float(silhouette_score(points, groups))
        if score > highest:
            best, highest = torch.from_numpy(groups).long(), score
    return (best if highest >= 0.5 else torch.zeros_like(best)), highest


# How far from the boundary the data allow any network to keep its examples.
#
# Two rightly classified examples of different classes at distance d have radii r_i + r_j ≤ d: a boundary lies between
# them. So ρ_i, half the distance to the nearest example of another class, is a fair yardstick. A single example may
# have more, at the cost of its rival; the mean of all cannot exceed the linear program max Σ r_i with r_i + r_j ≤
# d_ij.


MOST_PAIRS = 100_000  # of examples of different classes in the linear program


@dataclass(frozen=True, eq=False)
class NearestNeighbourLimit(Result):
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

    def proving(self, proved: Tensor | None) -> "NearestNeighbourLimit":
        """With what is proved of the first audited examples."""
        return replace(self, proved_share=None if proved is None else share_of(proved, self.radii))


def limit(data: Data, audited: Data, norms: Tensor) -> NearestNeighbourLimit | None:
    """For the `audited` examples with these radii; None where the training data have one class only."""
    try:
        distances, rivals = nearest_rivals(audited.X, audited.y, data.X, data.y)
    except InputError:
        return None
    radii = distances / 2
    return NearestNeighbourLimit(
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
