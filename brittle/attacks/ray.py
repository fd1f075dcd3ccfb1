"""One ray per example: the exact first flip along a given direction, or against the gradient."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from brittle.attacks.base import Attack, AttackResult, Attempt, Target
from brittle.attacks.flips import first_flip_of_right, step_past
from brittle.attacks.restriction import FREE, LIMIT, SUBSPACE, Restriction
from brittle.common.errors import require
from brittle.common.parts import unasked
from brittle.geometry import unit_rows


@dataclass(frozen=True)
class Ray(Attack[AttackResult]):
    """Moves each example along its ray until it flips, no farther than `limit` and the box.

    `direction`: (dim,) or (n, dim), scaled to unit length; None for the direction in which the margin falls fastest.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(4).sample(4)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> found = bt.attacks.Ray(direction=-data.X).run(network, data)  # towards the origin
        >>> [round(norm, 4) for norm in found.norms.tolist()]
        [2.0, 2.0, 2.0, 2.0]
    """

    name: ClassVar = "ray"

    direction: Tensor | None = field(
        default=None, metadata=unasked("Where the rays go.", "a tensor of your own; the command line follows gradients")
    )
    subspace: Restriction = field(default=FREE, metadata=SUBSPACE)
    limit: float = field(default=torch.inf, metadata=LIMIT)

    def propose(self, target: Target) -> Attempt:
        if self.direction is None:
            rays = -target.network.margin_gradients(target.X, target.y)
        else:
            shape, right = tuple(self.direction.shape), tuple(target.X.shape)
            require(shape in (right, right[1:]), f"direction has shape {shape}; {right[1:]} or {right} is needed")
            rays = self.direction.double().expand_as(target.X)
        found = along(target, self.subspace.project(rays), self.limit)
        return Attempt(found.perturbations, found.direction)


def along(target: Target, rays: Tensor, limit: float | Tensor) -> Attempt:
    """The shortest flip along each ray and its `sizes` (n,): perturbation 0 and size infinity where there is none."""
    rays = unit_rows(rays)
    limits = target.limits(rays, limit)
    right = (target.margins >= 0).nonzero()[:, 0]
    X, y, rays_right, limits = target.X[right], target.y[right], rays[right], limits[right]
    flips = first_flip_of_right(target.network, X, y, rays_right, limits)
    sizes = torch.zeros(len(rays), dtype=torch.float64)
    sizes[right] = step_past(target.network, X, y, rays_right, flips, limits)
    return Attempt(torch.where(sizes.isfinite(), sizes, 0.0)[:, None] * rays, rays, {"sizes": sizes})
