"""Where a perturbation may lie: everywhere, on a subspace, off it, or in chosen pixels."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.common.errors import require
from brittle.common.kinds import check_kinds, require_kind
from brittle.common.parts import not_an_option, option
from brittle.data import Data
from brittle.geometry import rank_of


@dataclass(frozen=True, eq=False)
class Restriction:
    """The span of `basis` (dim, r), or its orthogonal complement where `off`; `basis` None is the whole space.

    Columns need not be orthonormal; `pixels` makes one from a mask.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> floor = bt.attacks.Restriction(torch.eye(3)[:, :2])
        >>> floor.project(torch.tensor([[1.0, 2.0, 3.0]]).double()).tolist()
        [[1.0, 2.0, 0.0]]
    """

    basis: Tensor | None = None
    off: bool = False

    def __post_init__(self) -> None:
        if self.basis is None:
            require(not self.off, "the complement of the whole space is empty: give a basis")
            return
        shape = tuple(self.basis.shape)
        require(len(shape) == 2 and shape[1] <= shape[0], f"basis has shape {shape}; (dim, r) with r ≤ dim is needed")
        object.__setattr__(self, "basis", _orthonormal(self.basis.double()))

    @property
    def free(self) -> bool:
        return self.basis is None

    def project(self, vectors: Tensor) -> Tensor:
        """Orthogonal projection of every row; done twice, since the first leaves a remainder of rounding."""
        if self.basis is None:
            return vectors
        require(
            vectors.shape[-1] == len(self.basis),
            f"the subspace lies in {len(self.basis)} dimensions and the examples have {vectors.shape[-1]}",
        )
        for _ in range(2):
            on = (vectors @ self.basis) @ self.basis.T
            vectors = vectors - on if self.off else on
        return vectors


FREE = Restriction()
SUBSPACE = not_an_option("Where perturbations may lie.", "--subspace and --basis, with the data at hand")


def _check_limit(name: str, value: float) -> None:
    require_kind(name, value, float)
    require(value >= 0, f"{name} is {value!r}; it must be a number of at least 0")


LIMIT = option("No perturbation longer than this.", check=_check_limit)


@check_kinds
def pixels(mask: Tensor) -> Restriction:
    """Perturbations in the marked features only.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> corner = bt.attacks.pixels(torch.tensor([[True, False], [False, False]]))
        >>> corner.project(torch.ones(1, 4).double()).tolist()
        [[1.0, 0.0, 0.0, 0.0]]
    """
    marked = mask.reshape(-1).bool()
    return Restriction(torch.eye(len(marked), dtype=torch.float64)[:, marked])


@check_kinds
def restriction_for(data: Data, side: str) -> Restriction:
    """`on` or `off` the subspace that the data are known to lie on, or `free`.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> off = bt.attacks.restriction_for(bt.data.Line7().sample(), "off")
        >>> off.project(torch.tensor([[1.0, 1.0]]).double()).abs().max().item() < 1e-12
        True
    """
    require(side in ("on", "off", "free"), f"subspace is {side!r}; on, off or free is needed")
    if side == "free":
        return FREE
    require(data.truth.basis is not None, f"subspace is {side!r}, and these data have no known basis")
    return Restriction(data.truth.basis, off=side == "off")


def _orthonormal(basis: Tensor) -> Tensor:
    """The basis itself where it is orthonormal already, otherwise one of the same span."""
    require(bool(basis.isfinite().all()), "basis holds NaN or infinity")
    gram = basis.T @ basis
    if torch.allclose(gram, torch.eye(len(gram), dtype=gram.dtype), rtol=0, atol=1e-14):
        return basis
    left: Tensor
    left, values, _ = torch.linalg.svd(basis, full_matrices=False)
    return left[:, : rank_of(values)]
