"""Clusters: Gaussian noise round a few long, nearly orthogonal means (frei2023 2)."""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import require, require_between, require_count, require_not_negative
from brittle.common.parts import option
from brittle.data.arrays import DIM, require_room
from brittle.data.base import Data, DataInfo, Setting
from brittle.data.span import bartlett, gaussians, orthonormal, to_norm
from brittle.geometry import largest_product


@dataclass(frozen=True)
class Clusters(Setting):
    """x = μ_q + σξ with ‖μ_q‖ = √d, q uniform, ξ ~ N(0, I), and the label of the cluster.

    The means are uniform on the sphere where `random_means`; otherwise any two of them are at one angle, of the given
    `cosine`. `balance` is the share of the clusters that carry the rarer label, -1, as nearly as their number allows
    and at least one.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Clusters(dim=50, clusters=4, noise=0.5).sample(20, torch.Generator().manual_seed(0))
        >>> data.truth.means.shape, data.truth.mean_labels.tolist()
        (torch.Size([4, 50]), [1.0, 1.0, -1.0, -1.0])
    """

    name: ClassVar = "clusters"

    dim: int = field(metadata=DIM)
    clusters: int = field(default=2, metadata=option("How many, k.", check=partial(require_count, least=2)))
    noise: float = field(
        default=1.0, metadata=option("Standard deviation σ round each mean.", check=require_not_negative)
    )
    balance: float = field(
        default=0.5,
        metadata=option("Share of the clusters labelled -1.", check=partial(require_between, low=0, high=0.5)),
    )
    random_means: bool = field(
        default=False,
        metadata=option("Means uniform on the sphere, or orthogonal.", "--random-means/--orthogonal-means"),
    )
    cosine: float = field(
        default=0.0,
        metadata=option(
            "Cosine of the angle between any two means.", check=partial(require_between, low=0, high=0.999)
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            not (self.random_means and self.cosine), f"cosine is {self.cosine}; the angles of random means are random"
        )
        fits = self.random_means or self.clusters <= self.dim
        require(fits, f"clusters is {self.clusters}; at most {self.dim} means are orthogonal in R^{self.dim}")

    @property
    def mean_labels(self) -> Tensor:
        negative = min(max(1, round(self.balance * self.clusters)), self.clusters // 2)
        return torch.cat([torch.ones(self.clusters - negative), -torch.ones(negative)]).double()

    def draw(self, examples: int | None, rng: Generator, test: int | None, in_span: bool) -> Data:
        assert examples is not None
        assert test is not None
        if not in_span:
            require_room(
                examples + test, self.dim, "sample in the span instead (in_span=True, --in-span), or take fewer"
            )
        means = self._means(rng, in_span)
        cluster = torch.randint(self.clusters, (examples + test,), generator=rng)
        rank = means.shape[1]
        X = means[cluster] + self.noise * gaussians(len(cluster), rank, rng, in_span=False)
        if in_span:
            rest = self.noise * bartlett(len(cluster), self.dim - rank, rng)
            X = torch.cat([X, rest], 1)
            means = torch.nn.functional.pad(means, (0, rest.shape[1]))
        return self._data(X, cluster, means, examples)

    def _means(self, rng: Generator, in_span: bool) -> Tensor:
        """(k, d), or (k, k) coordinates in their span."""
        length: float = self.dim**0.5
        if self.random_means:
            return to_norm(gaussians(self.clusters, self.dim, rng, in_span=in_span), length)
        gram = torch.full((self.clusters, self.clusters), self.cosine, dtype=torch.float64).fill_diagonal_(1.0)
        factor: Tensor = torch.linalg.cholesky(gram) * length
        return factor if in_span else factor @ orthonormal(self.dim, self.clusters, rng).T

    def _data(self, X: Tensor, cluster: Tensor, means: Tensor, examples: int) -> Data:
        y, held = self.mean_labels[cluster], len(X) > examples
        truth = DataInfo(
            dim=self.dim,
            coherence=largest_product(means) if self.random_means else self.cosine * self.dim,
            means=means,
            mean_labels=self.mean_labels,
            cluster=cluster[:examples],
            cluster_test=cluster[examples:] if held else None,
            noise=self.noise,
        )
        X_test, y_test = (X[examples:], y[examples:]) if held else (None, None)
        return Data(X[:examples], y[:examples], X_test, y_test, truth)
