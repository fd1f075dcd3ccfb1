"""Data on a linear subspace in general position (melamed2023)."""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import require, require_count, require_not_negative
from brittle.common.parts import Given, not_an_option, option
from brittle.data.arrays import DIM, require_room
from brittle.data.base import Data, DataInfo, GivenSet, Setting
from brittle.data.files import File
from brittle.data.orthogonal import Gaussian, Sphere
from brittle.data.span import orthonormal


@dataclass(frozen=True)
class GivenPoints(GivenSet):
    """The examples of `data` itself.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Data([[0.0, 1.0], [1.0, 0.0]], [-1, 1])
        >>> bt.data.GivenPoints(data).sample().X.tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """

    name: ClassVar = "given"

    data: Data = field(metadata=not_an_option("The examples.", "File takes those of a file"))

    def load(self) -> Data:
        return self.data


@dataclass(frozen=True)
class Line7(GivenSet):
    """(i/3 - 1)·(1, 1) for i = 0..6 with the labels -, +, -, +, -, +, - (melamed2023 figure 2).

    Examples:
        >>> import brittle as bt
        >>> bt.data.Line7().sample().y.tolist()
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
        truth = DataInfo(dim=2, basis=basis, complement=complement, codimension=1)
        return Data(torch.stack([i / 3 - 1, i / 3 - 1], 1), 2 * (i % 2) - 1, truth=truth)

    def draw(self, examples: int | None, rng: Generator, test: int | None, in_span: bool) -> Data:
        data = super().draw(examples, rng, test, in_span)
        if not in_span:
            return data
        basis = data.truth.basis
        assert basis is not None
        truth = DataInfo(dim=2, basis=torch.ones(1, 1, dtype=torch.float64), codimension=1)
        X_test = None if data.X_test is None else data.X_test @ basis
        return replace(data, X=data.X @ basis, X_test=X_test, truth=truth)


@dataclass(frozen=True)
class Grid25(GivenSet):
    """{0, ¼, ½, ¾, 1}² at the height ½; + where the parities of the two indices agree (melamed2023 figure 3).

    At the height 0 (figure 5) the plane is a linear subspace; elsewhere it misses the origin, and the points span R³.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Grid25(height=0.0).sample()
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
        truth = DataInfo(dim=3, basis=axes[:, :2].clone(), complement=axes[:, 2:].clone(), codimension=1, offset=offset)
        return Data(X, torch.where((i + j) % 2 == 0, 1.0, -1.0).double(), truth=truth)


LARGEST_EXPLICIT_DIM = 6000  # beyond it a basis of P⊥ costs more than the data; `Truth.basis` is enough to project


def _inner(word: str, given: Given) -> Setting:
    if word == Line7.name:
        return Line7()
    law = {Sphere.name: Sphere, Gaussian.name: Gaussian}.get(word)
    if law is not None:
        return law(given["dim"] - given["codimension"])
    require(Path(word).is_file(), f"--inner is {word!r}; it must be sphere, gaussian, line7 or a data file")
    return File(word)


@dataclass(frozen=True)
class Subspace(Setting):
    """Samples of `inner`, a setting of R^(d-ℓ), laid into R^d by a random rotation.

    `inner` is the uniform law on the sphere of radius √(d-ℓ) unless given: any setting whose samples have d - ℓ
    columns will do, `Gaussian` and `GivenPoints` among them.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Subspace(dim=20, codimension=15).sample(30, torch.Generator().manual_seed(0))
        >>> int(torch.linalg.matrix_rank(data.X)), data.truth.complement.shape
        (5, torch.Size([20, 15]))
    """

    name: ClassVar = "subspace"

    dim: int = field(metadata=DIM)
    codimension: int = field(
        metadata=option("The number of dimensions ℓ that the data leave out.", check=partial(require_count, least=0))
    )
    inner: Setting | None = field(
        default=None, metadata=option("sphere, gaussian, line7 or a data file.", kind=str, read=_inner)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        fits = self.codimension < self.dim
        require(fits, f"codimension is {self.codimension}; it must be below the dimension {self.dim}")

    @property
    def law(self) -> Setting:
        return Sphere(self.dim - self.codimension) if self.inner is None else self.inner

    @property
    def finite(self) -> bool:
        return self.law.finite

    def draw(self, examples: int | None, rng: Generator, test: int | None, in_span: bool) -> Data:
        law = self.law
        data = law.sample(examples, rng, test=test, in_span=in_span and law.in_span_offered)
        room = self.dim - self.codimension
        require(data.dim == room, f"inner gives points of R^{data.dim}; the subspace has the dimension {room}")
        if in_span:
            return replace(data, truth=self._truth(data.truth, torch.eye(data.columns, dtype=torch.float64), None))
        require_room(len(data), self.dim, "sample in the span instead (in_span=True, --in-span), or take fewer")
        basis, complement = self._bases(rng)
        X_test = None if data.X_test is None else data.X_test @ basis.T
        return Data(data.X @ basis.T, data.y, X_test, data.y_test, self._truth(data.truth, basis, complement))

    def _bases(self, rng: Generator) -> tuple[Tensor, Tensor | None]:
        inside = self.dim - self.codimension
        if self.dim > LARGEST_EXPLICIT_DIM:
            return orthonormal(self.dim, inside, rng), None
        # Q = H·diag(±1) with the reflectors of a thin factorisation: its first columns are the uniform basis of P.
        Q, R = torch.linalg.qr(torch.randn(self.dim, inside, generator=rng, dtype=torch.float64), mode="complete")
        return Q[:, :inside] * R.diagonal().sign(), Q[:, inside:].clone()

    def _truth(self, inner: DataInfo, basis: Tensor, complement: Tensor | None) -> DataInfo:
        """P as this setting knows it; what the inner setting knows of its vectors is carried over."""
        means = None if inner.means is None else inner.means @ basis.T
        return replace(
            inner,
            dim=self.dim,
            means=means,
            basis=basis,
            complement=complement,
            codimension=self.codimension,
            offset=None,
            image=None,
        )
