"""Data on a linear subspace in general position (melamed2023)."""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import require, require_count
from brittle.common.parts import Given, option
from brittle.settings.base import Data, Setting, Truth
from brittle.settings.checks import DIM, require_room
from brittle.settings.files import File
from brittle.settings.points import Line7
from brittle.settings.span import orthonormal
from brittle.settings.sphere import Gaussian, Sphere

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
    columns will do, `Gaussian` and `Given` points among them.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Subspace(dim=20, codimension=15).sample(30, torch.Generator().manual_seed(0))
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

    def _truth(self, inner: Truth, basis: Tensor, complement: Tensor | None) -> Truth:
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
