"""One step along the gradient (wang2022): the smallest |η| for which x + η ∇N(x) flips."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from brittle.attacks.base import Attack, AttackResult, Attempt, Target
from brittle.attacks.ray import along
from brittle.attacks.restriction import FREE, LIMIT, SUBSPACE, Restriction


@dataclass(frozen=True, eq=False)
class GradientStepResult(AttackResult):
    """step (n,): η, infinite where no step flips; gradient_norms (n,): ‖∇N(x)‖. The norms are |η|·‖∇N(x)‖.

    With class numbers N is the margin, the label's logit minus the largest other one.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(4).sample(4)
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
        >>> data = bt.settings.Orthogonal(4).sample(4)
        >>> found = bt.attacks.GradientStep().run(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> bool(((found.step.abs() * found.gradient_norms - found.norms).abs() < 1e-6).all())
        True
    """

    name: ClassVar = "gradient-step"
    result: ClassVar[type[AttackResult]] = GradientStepResult

    subspace: Restriction = field(default=FREE, metadata=SUBSPACE)
    limit: float = field(default=torch.inf, metadata=LIMIT)

    def propose(self, target: Target) -> Attempt:
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
