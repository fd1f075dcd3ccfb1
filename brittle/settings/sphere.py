"""Points without structure: uniform on a sphere, and Gaussian."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import require_positive
from brittle.common.parts import option
from brittle.settings.base import Data, Setting, Truth
from brittle.settings.checks import DIM
from brittle.settings.span import gaussians, to_norm


@dataclass(frozen=True)
class Sphere(Setting):
    """x uniform on the sphere of radius √d (or `radius`), labels uniform ±1 (vardi2022 6).

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Sphere(dim=100).sample(5, torch.Generator().manual_seed(0))
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
        return divided(X, random_signs(len(X), rng), examples, Truth(dim=self.dim, radius=radius))


@dataclass(frozen=True)
class Gaussian(Setting):
    """x ~ N(0, variance·I) with variance 1/d unless given, labels uniform ±1.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Gaussian(dim=400).sample(3, torch.Generator().manual_seed(0))
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
        return divided(X, random_signs(len(X), rng), examples, Truth(dim=self.dim, noise=deviation))


def divided(X: Tensor, y: Tensor, examples: int, truth: Truth) -> Data:
    """The first `examples` rows to train on, the others to test on."""
    if len(X) == examples:
        return Data(X, y, truth=truth)
    return Data(X[:examples], y[:examples], X[examples:], y[examples:], truth)


def random_signs(count: int, rng: Generator) -> Tensor:
    return torch.randint(0, 2, (count,), generator=rng).double() * 2 - 1
