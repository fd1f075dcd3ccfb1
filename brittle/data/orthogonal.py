"""Orthogonal and almost orthogonal points of norm √d."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import InputError, require, require_between, require_positive
from brittle.common.parts import option
from brittle.data.arrays import DIM, require_room
from brittle.data.base import Data, DataInfo, Setting
from brittle.data.span import gaussians, orthonormal, to_norm


@dataclass(frozen=True)
class Sphere(Setting):
    """x uniform on the sphere of radius √d (or `radius`), labels uniform ±1 (vardi2022 6).

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Sphere(dim=100).sample(5, torch.Generator().manual_seed(0))
        >>> [round(norm, 6) for norm in data.X.norm(dim=1).tolist()]
        [10.0, 10.0, 10.0, 10.0, 10.0]
    """

    name: ClassVar = "sphere"

    dim: int = field(metadata=DIM)
    radius: float | None = field(default=None, metadata=option("The radius, √d unless given.", check=require_positive))

    def draw(self, examples: int | None, rng: Generator, test: int | None, in_span: bool) -> Data:
        assert examples is not None
        assert test is not None
        radius = self.dim**0.5 if self.radius is None else self.radius
        X = to_norm(gaussians(examples + test, self.dim, rng, in_span=in_span), radius)
        return split_rows(X, random_signs(len(X), rng), examples, DataInfo(dim=self.dim, radius=radius))


@dataclass(frozen=True)
class Gaussian(Setting):
    """x ~ N(0, variance·I) with variance 1/d unless given, labels uniform ±1.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Gaussian(dim=400).sample(3, torch.Generator().manual_seed(0))
        >>> data.X.shape, data.truth.dim
        (torch.Size([3, 400]), 400)
    """

    name: ClassVar = "gaussian"

    dim: int = field(metadata=DIM)
    variance: float | None = field(
        default=None, metadata=option("Of each coordinate, 1/d unless given.", check=require_positive)
    )

    def draw(self, examples: int | None, rng: Generator, test: int | None, in_span: bool) -> Data:
        assert examples is not None
        assert test is not None
        deviation = (1 / self.dim if self.variance is None else self.variance) ** 0.5
        X = gaussians(examples + test, self.dim, rng, in_span=in_span) * deviation
        return split_rows(X, random_signs(len(X), rng), examples, DataInfo(dim=self.dim, noise=deviation))


def split_rows(X: Tensor, y: Tensor, examples: int, truth: DataInfo) -> Data:
    """The first `examples` rows to train on, the others to test on."""
    if len(X) == examples:
        return Data(X, y, truth=truth)
    return Data(X[:examples], y[:examples], X[examples:], y[examples:], truth)


def random_signs(count: int, rng: Generator) -> Tensor:
    return torch.randint(0, 2, (count,), generator=rng).double() * 2 - 1


@dataclass(frozen=True)
class Orthogonal(Setting):
    """x_i = √d e_i; the first half (the larger one) is labelled +1, the second half -1 (vardi2022 5.1).

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> (data.X @ data.X.T).diagonal().tolist(), data.y.tolist()
        ([4.0, 4.0, 4.0, 4.0], [1.0, 1.0, -1.0, -1.0])
    """

    name: ClassVar = "orthogonal"

    dim: int = field(metadata=DIM)

    def _draws(self, examples: int | None, test: int | None) -> bool:
        return False

    def draw(self, examples: int | None, rng: Generator, test: int | None, in_span: bool) -> Data:
        assert examples is not None
        require(
            examples <= self.dim, f"examples is {examples}; at most {self.dim} points of R^{self.dim} are orthogonal"
        )
        require(test == 0, "Orthogonal is one fixed set of points: it has no test examples")
        columns = examples if in_span else self.dim
        require_room(examples, columns, "sample in the span instead (in_span=True, --in-span), or take fewer")
        X = torch.eye(examples, columns, dtype=torch.float64) * self.dim**0.5
        return Data(X, halves(examples), truth=DataInfo(dim=self.dim, radius=self.dim**0.5, coherence=0.0))


@dataclass(frozen=True)
class AlmostOrthogonal(Setting):
    """Norm √d and random inner products of which the largest is `coherence`; labels as in `Orthogonal`.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> from brittle.geometry import largest_product
        >>> data = bt.data.AlmostOrthogonal(dim=100, coherence=2.0).sample(8, torch.Generator().manual_seed(0))
        >>> round(largest_product(data.X), 6)
        2.0
    """

    name: ClassVar = "almost-orthogonal"

    dim: int = field(metadata=DIM)
    coherence: float = field(default=1.0, metadata=option("The largest inner product of two examples."))

    def __post_init__(self) -> None:
        super().__post_init__()
        require_between("coherence", self.coherence, 0, self.dim)

    def draw(self, examples: int | None, rng: Generator, test: int | None, in_span: bool) -> Data:
        assert examples is not None
        assert test is not None
        count = examples + test
        require(
            count <= self.dim, f"{count} examples were asked for; at most {self.dim} are almost orthogonal in R^dim"
        )
        X = self._factor(count, rng)
        if not in_span:
            X = X @ orthonormal(self.dim, count, rng).T
        y = torch.cat([halves(examples), halves(test)])
        return split_rows(X, y, examples, DataInfo(dim=self.dim, radius=self.dim**0.5, coherence=self.coherence))

    def _factor(self, count: int, rng: Generator) -> Tensor:
        """L with LLᵀ = d·I + p·S, where S is symmetric, uniform in [-1, 1] and scaled to attain 1."""
        require_room(count, count, "take fewer")
        S = (2 * torch.rand(count, count, generator=rng, dtype=torch.float64) - 1).tril(-1)
        S = S / S.abs().max() if count > 1 else S
        gram = self.coherence * (S + S.T)
        gram.diagonal().fill_(self.dim)
        L: Tensor
        L, failed = torch.linalg.cholesky_ex(gram)
        if failed:
            raise InputError(
                f"coherence is {self.coherence}; {count} such vectors do not fit into R^{self.dim}: take less"
            )
        return L


def halves(count: int) -> Tensor:
    positive = (count + 1) // 2
    return torch.cat([torch.ones(positive), -torch.ones(count - positive)]).double()
