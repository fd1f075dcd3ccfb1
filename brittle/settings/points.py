"""Small sets of points that one can draw, and points that somebody hands over."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Generator

from brittle.common.errors import require_not_negative
from brittle.common.parts import option, unasked
from brittle.settings.base import Data, GivenSet, Truth


@dataclass(frozen=True)
class Given(GivenSet):
    """The examples of `data` itself.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Data([[0.0, 1.0], [1.0, 0.0]], [-1, 1])
        >>> bt.settings.Given(data).sample().X.tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """

    name: ClassVar = "given"

    data: Data = field(metadata=unasked("The examples.", "File takes those of a file"))

    def load(self) -> Data:
        return self.data


@dataclass(frozen=True)
class Line7(GivenSet):
    """(i/3 - 1)·(1, 1) for i = 0..6 with the labels -, +, -, +, -, +, - (melamed2023 figure 2).

    Examples:
        >>> import brittle as bt
        >>> bt.settings.Line7().sample().y.tolist()
        [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]
    """

    name: ClassVar = "line7"

    @property
    def in_span_offered(self) -> bool:
        return True

    def load(self) -> Data:
        i = torch.arange(7, dtype=torch.float64)
        side = 0.5**0.5
        basis = torch.tensor([[side], [side]], dtype=torch.float64)
        complement = torch.tensor([[side], [-side]], dtype=torch.float64)
        truth = Truth(dim=2, basis=basis, complement=complement, codimension=1)
        return Data(torch.stack([i / 3 - 1, i / 3 - 1], 1), 2 * (i % 2) - 1, truth=truth)

    def draw(self, examples: int | None, rng: Generator, test: int | None, in_span: bool) -> Data:
        data = super().draw(examples, rng, test, in_span)
        if not in_span:
            return data
        basis = data.truth.basis
        assert basis is not None
        truth = Truth(dim=2, basis=torch.ones(1, 1, dtype=torch.float64), codimension=1)
        X_test = None if data.X_test is None else data.X_test @ basis
        return replace(data, X=data.X @ basis, X_test=X_test, truth=truth)


@dataclass(frozen=True)
class Grid25(GivenSet):
    """{0, ¼, ½, ¾, 1}² at the height ½; + where the parities of the two indices agree (melamed2023 figure 3).

    At the height 0 (figure 5) the plane is a linear subspace; elsewhere it misses the origin, and the points span R³.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Grid25(height=0.0).sample()
        >>> data.X.shape, int((data.y > 0).sum())
        (torch.Size([25, 3]), 13)
    """

    name: ClassVar = "grid25"

    height: float = field(default=0.5, metadata=option("Of the plane over the origin.", check=require_not_negative))

    @property
    def in_span_offered(self) -> bool:
        return self.height > 0  # nothing is left out in the span then

    def load(self) -> Data:
        i, j = torch.meshgrid(torch.arange(5), torch.arange(5), indexing="ij")
        i, j = i.flatten(), j.flatten()
        X = torch.stack([i / 4, j / 4, torch.full((25,), self.height)], 1).double()
        axes = torch.eye(3, dtype=torch.float64)
        offset = self.height * axes[2] if self.height else None
        truth = Truth(dim=3, basis=axes[:, :2].clone(), complement=axes[:, 2:].clone(), codimension=1, offset=offset)
        return Data(X, torch.where((i + j) % 2 == 0, 1.0, -1.0).double(), truth=truth)
