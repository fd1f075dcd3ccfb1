"""Orthogonal and almost orthogonal points of norm √d."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import InputError, require, require_between
from brittle.common.parts import option
from brittle.settings.base import Data, Setting, Truth
from brittle.settings.checks import DIM, require_room
from brittle.settings.span import orthonormal
from brittle.settings.sphere import divided


@dataclass(frozen=True)
class Orthogonal(Setting):
    """x_i = √d e_i; the first half (the larger one) is labelled +1, the second half -1 (vardi2022 5.1).

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(4).sample(4)
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
        return Data(X, halves(examples), truth=Truth(dim=self.dim, radius=self.dim**0.5, coherence=0.0))


@dataclass(frozen=True)
class AlmostOrthogonal(Setting):
    """Norm √d and random inner products of which the largest is `coherence`; labels as in `Orthogonal`.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> from brittle.geometry import largest_product
        >>> data = bt.settings.AlmostOrthogonal(dim=100, coherence=2.0).sample(8, torch.Generator().manual_seed(0))
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
        return divided(X, y, examples, Truth(dim=self.dim, radius=self.dim**0.5, coherence=self.coherence))

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
