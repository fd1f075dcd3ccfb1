"""One step along the gradient (wang2022): the smallest |η| for which x + η ∇N(x) flips."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from brittle.attacks.base import Attack, AttackResult, Attempt, Target
from brittle.attacks.ray import along
from brittle.attacks.restriction import FREE, Restriction


@dataclass(frozen=True, eq=False)
class GradientStepResult(AttackResult):
    """step (n,): η, infinite where no step flips; gradient_norms (n,): ‖∇N(x)‖. The norms are |η|·‖∇N(x)‖.

    With class numbers N is the margin, the label's logit minus the largest other one.
    """

    step: Tensor
    gradient_norms: Tensor


@dataclass(frozen=True)
class GradientStep(Attack[GradientStepResult]):
    """Looks both ways along the gradient, since N need not be monotone there, and takes the nearer flip."""

    result: ClassVar[type[AttackResult]] = GradientStepResult

    subspace: Restriction = FREE
    limit: float = torch.inf

    def _run(self, target: Target) -> Attempt:
        gradients = self.subspace.project(target.network.margin_gradients(target.X, target.y).double())
        lengths = gradients.norm(dim=1)
        down, up = along(target, -gradients, self.limit), along(target, gradients, self.limit)
        sizes = torch.stack([_size(target, down), _size(target, up)])
        nearest = sizes.argmin(0)[:, None] == 1
        sign = torch.where(nearest[:, 0], 1.0, -1.0) * (target.y if target.data.binary else 1.0)
        step = sign * sizes.min(0).values / torch.where(lengths > 0, lengths, 1.0)
        already = target.network.margins(target.X, target.y) < 0
        return Attempt(
            torch.where(nearest, up.perturbations, down.perturbations),
            torch.where(nearest, up.direction, down.direction),
            {"step": torch.where(already, 0.0, step), "gradient_norms": lengths},
        )


def _size(target: Target, attempt: Attempt) -> Tensor:
    """The length of what flips, infinite where nothing did."""
    flipped = target.network.margins(target.X + attempt.perturbations, target.y) < 0
    return torch.where(flipped, attempt.perturbations.norm(dim=1), torch.inf)
