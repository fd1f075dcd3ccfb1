"""One ray per example: the exact first flip along a given direction, or against the gradient."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from brittle.attacks.base import Attack, AttackResult, AttackTarget, Attempt
from brittle.attacks.flips import first_flip_of_right, step_past
from brittle.attacks.restriction import FREE, LIMIT, SUBSPACE, Restriction
from brittle.common.errors import require
from brittle.common.parts import not_an_option
from brittle.geometry import unit_rows


@dataclass(frozen=True)
class Ray(Attack[AttackResult]):
    """Moves each example along its ray until it flips, no farther than `limit` and the box.

    `direction`: (dim,) or (n, dim), scaled to unit length; None for the direction in which the margin falls fastest.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> found = bt.attacks.Ray(direction=-data.X).run(network, data)  # towards the origin
        >>> [round(norm, 4) for norm in found.norms.tolist()]
        [2.0, 2.0, 2.0, 2.0]
    """

    name: ClassVar = "ray"

    direction: Tensor | None = field(
        default=None,
        metadata=not_an_option("Where the rays go.", "a tensor of your own; the command line follows gradients"),
    )
    subspace: Restriction = field(default=FREE, metadata=SUBSPACE)
    limit: float = field(default=torch.inf, metadata=LIMIT)

    def propose(self, target: AttackTarget) -> Attempt:
        if self.direction is None:
            rays = -target.network.margin_gradients(target.X, target.y)
        else:
            shape, right = tuple(self.direction.shape), tuple(target.X.shape)
            require(shape in (right, right[1:]), f"direction has shape {shape}; {right[1:]} or {right} is needed")
            rays = self.direction.double().expand_as(target.X)
        found = along(target, self.subspace.project(rays), self.limit)
        return Attempt(found.perturbations, found.direction)


def along(target: AttackTarget, rays: Tensor, limit: float | Tensor) -> Attempt:
    """The shortest flip along each ray and its `sizes` (n,): perturbation 0 and size infinity where there is none."""
    rays = unit_rows(rays)
    limits = target.limits(rays, limit)
    right = (target.margins >= 0).nonzero()[:, 0]
    X, y, rays_right, limits = target.X[right], target.y[right], rays[right], limits[right]
    flips = first_flip_of_right(target.network, X, y, rays_right, limits)
    sizes = torch.zeros(len(rays), dtype=torch.float64)
    sizes[right] = step_past(target.network, X, y, rays_right, flips, limits)
    return Attempt(torch.where(sizes.isfinite(), sizes, 0.0)[:, None] * rays, rays, {"sizes": sizes})


# One step along the gradient (wang2022): the smallest |η| for which x + η ∇N(x) flips.


@dataclass(frozen=True, eq=False)
class GradientStepResult(AttackResult):
    """step (n,): η, infinite where no step flips; gradient_norms (n,): ‖∇N(x)‖. The norms are |η|·‖∇N(x)‖.

    With class numbers N is the margin, the label's logit minus the largest other one.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> found = bt.attacks.GradientStep().run(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> found.gradient_norms.shape
        torch.Size([4])
    """

    step: Tensor
    gradient_norms: Tensor


@dataclass(frozen=True)
class GradientStep(Attack[GradientStepResult]):
    """Looks both ways along the gradient, since N need not be monotone there, and takes the nearer flip.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(4).sample(4)
        >>> found = bt.attacks.GradientStep().run(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> bool(((found.step.abs() * found.gradient_norms - found.norms).abs() < 1e-6).all())
        True
    """

    name: ClassVar = "gradient-step"
    result: ClassVar[type[AttackResult]] = GradientStepResult

    subspace: Restriction = field(default=FREE, metadata=SUBSPACE)
    limit: float = field(default=torch.inf, metadata=LIMIT)

    def propose(self, target: AttackTarget) -> Attempt:
        gradients = self.subspace.project(target.network.margin_gradients(target.X, target.y).double())
        lengths = gradients.norm(dim=1)
        down = along(target, -gradients, self.limit)
        sizes = _sizes(down)
        up = along(target, gradients, torch.minimum(sizes, torch.tensor(self.limit, dtype=torch.float64)))
        turned = (_sizes(up) < sizes)[:, None]
        sign = torch.where(turned[:, 0], 1.0, -1.0) * (target.y if target.data.binary else 1.0)
        step = sign * torch.minimum(sizes, _sizes(up)) / torch.where(lengths > 0, lengths, 1.0)
        return Attempt(
            torch.where(turned, up.perturbations, down.perturbations),
            torch.where(turned, up.direction, down.direction),
            {"step": step, "gradient_norms": lengths},
        )


def _sizes(attempt: Attempt) -> Tensor:
    """The lengths of what flips: 0 where the example is misclassified, infinite where nothing flips."""
    sizes: Tensor = attempt.further["sizes"]
    return sizes
