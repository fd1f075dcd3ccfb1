"""Training for the radius that the layers' norms prove: every example's margin over the network's Lipschitz constant.

A change of the input by δ changes the last hidden layer by at most ‖δ‖ Π‖W_l‖, so that no perturbation shorter than

    r_i = m_i / (‖w_y - w_j‖ Π_{l<L} ‖W_l‖)

puts class j in front, with rows w of the last layer (‖w‖ for one logit). The objective is that of `MaximumRadius` with
this bound in the place of the distance: mean_i (1 - r_i/(κρ_i))₊². What it gives back has layers of norm 1.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import require
from brittle.data.base import Data
from brittle.networks.affine import Affine, Dense
from brittle.networks.base import Network
from brittle.networks.deep import as_layered
from brittle.networks.layered import Layered
from brittle.training.descent import Batches
from brittle.training.guarded import TINY, GuardedObjective, GuardedRun, GuardedTrainer, attainable
from brittle.training.normal_form import NormalForm, TrainingForm, scale_layer
from brittle.training.objective import margins_of

FIRST, FOLLOWED = 50, 2  # power iterations: at the start, and in every step


@dataclass(frozen=True)
class LipschitzMargin(GuardedTrainer):
    """Adam on the margin over the product of the layers' norms, with the schedule and the guard of `GuardedTrainer`.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> rng, data = torch.Generator().manual_seed(0), bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> hard = bt.training.LipschitzMargin(until=bt.training.Steps(20)).train(start, data, rng).network
        >>> hard.accuracy(data.X, data.y)
        1.0
    """

    name: ClassVar = "lipschitz-margin"

    def guarded(self, form: TrainingForm, data: Data, batches: Batches) -> GuardedRun:
        kind = form.network.description["kind"]
        require(isinstance(form, NormalForm), f"{self.name} needs dense or convolutional layers; this is a {kind}")
        return LipschitzRun(form, data, self, batches)


class UnitObjective(GuardedObjective):
    """Gives networks back with layers of norm 1."""

    def network(self, theta: Tensor) -> Network:
        return with_unit_norms(as_layered(super().network(theta), "this training"))


class LipschitzRun(GuardedRun):
    """With the direction that a layer stretches most, for every layer but the last."""

    kind = UnitObjective

    def __init__(self, form: TrainingForm, data: Data, regime: GuardedTrainer, batches: Batches) -> None:
        super().__init__(form, data, regime, batches)
        self.limits, _ = attainable(self.objective.X, self.objective.y)
        self.shapes = as_layered(form.network, regime.name).layers
        self.directions = [_random(layer, batches.rng) for layer in self.shapes[:-1]]
        self._follow(FIRST)
        self.first = self.kappa = min(regime.target, max(0.05, self.share(torch.arange(len(data)))))

    def arrays(self) -> dict[str, Tensor]:
        return {**super().arrays(), "directions": torch.cat(self.directions)}

    def restore_arrays(self, arrays: dict[str, Tensor]) -> None:
        super().restore_arrays(arrays)
        self.directions = list(torch.split(arrays["directions"], [len(each) for each in self.directions]))

    def layers(self, theta: Tensor) -> list[Affine]:
        """Autograd passes through."""
        numbers = list(self.objective.parameters(theta).values())
        return [
            layer.with_parameters(*pair)
            for layer, pair in zip(self.shapes, zip(numbers[::2], numbers[1::2], strict=True), strict=True)
        ]

    def share(self, rows: Tensor) -> float:
        return float((self.proved(self.theta, rows) / self.limits[rows]).median())

    def ascent(self, rows: Tensor) -> Tensor:
        self._follow(FOLLOWED)
        aims = self.kappa * self.limits[rows]
        with torch.enable_grad():
            theta = self.theta.detach().requires_grad_(True)
            reached = self.proved(theta, rows) / aims
            weights = (1 - reached.detach()).clamp(0, 2) / len(rows)
            gradient: Tensor = torch.autograd.grad((weights * reached).sum(), theta)[0]
        return gradient

    def proved(self, theta: Tensor, rows: Tensor) -> Tensor:
        """r of these examples, against the class that is ahead of the others, negative where it leads."""
        X, y, layers = self.objective.X[rows], self.objective.y[rows], self.layers(theta)
        logits = self.objective.logits_at(theta, X)
        stretch = torch.ones(())
        for layer, direction in zip(layers, self.directions, strict=False):
            stretch = stretch * layer.linear(direction[None]).norm()
        return margins_of(logits, y)[0] / (stretch * _lengths(layers[-1].matrix, logits, y)).clamp(min=TINY)

    def _follow(self, rounds: int) -> None:
        """v ← AᵀAv/‖AᵀAv‖ for every layer A."""
        layers = self.layers(self.theta)
        for place, layer in enumerate(layers[:-1]):
            v = self.directions[place]
            for _ in range(rounds):
                v = layer.transpose(layer.linear(v[None]))[0]
                v = v / v.norm().clamp(min=TINY)
            self.directions[place] = v


def _random(layer: Affine, rng: Generator) -> Tensor:
    v = torch.randn(layer.inputs, generator=rng).to(layer.dtype)
    direction: Tensor = v / v.norm()
    return direction


def _lengths(rows: Tensor, logits: Tensor, y: Tensor) -> Tensor:
    """‖w_y - w_j‖ for the class j that is ahead of the others, ‖w‖ for one logit."""
    differences = rows
    if logits.ndim > 1 and logits.shape[1] > 1:
        others = logits.detach().scatter(1, y[:, None], -torch.inf).argmax(1)
        differences = rows[y] - rows[others]
    lengths: Tensor = differences.norm(dim=1)
    return lengths


def with_unit_norms(network: Layered) -> Layered:
    """The same decisions by layers of norm 1, a last one of several outputs included; zero layers stay."""
    layers, carried = [], 1.0
    for layer in network.layers:
        norm = operator_norm(layer)
        carried /= norm
        layers.append(scale_layer(layer, 1 / norm, carried))
    return network.with_layers(layers, network.start)


def operator_norm(layer: Affine) -> float:
    """‖A‖, 1 for a layer of zeros; that of a convolution by power iteration, to a few digits."""
    if isinstance(layer, Dense):
        return float(torch.linalg.matrix_norm(layer.matrix.double(), 2)) or 1.0
    v = _random(layer, torch.Generator().manual_seed(0))
    for _ in range(FIRST):
        v = layer.transpose(layer.linear(v[None]))[0]
        v = v / v.norm().clamp(min=TINY)
    return float(layer.linear(v[None]).norm()) or 1.0
