"""Data near a subspace, as pictures are: how large is the gradient off it?

A change in this file makes every finished cell of the family stale: claims and drawings live in `noise_figures`.
"""

from dataclasses import dataclass

import torch
from torch import Generator

from brittle.common.errors import require_value
from brittle.data import Data, Subspace
from brittle.experiments.beyond.trained import gradients, train_first_layer
from brittle.experiments.cell import Cell, Point
from brittle.geometry import unit_rows


@dataclass(frozen=True, kw_only=True)
class NoiseCell(Cell):
    """Mean ‖Π_P⊥ ∇N‖ and ‖Π_P ∇N‖ over the training examples, and how far the weights off P moved."""

    family = "beyond/noise"
    dim: int  # d
    inside: int  # dimensions of P
    examples: int  # n
    width: int  # of the network
    noise: float  # length of every example's part off P, beside that on P
    seed: int  # of data and start

    def measure(self) -> Point:
        rng = Generator().manual_seed(self.seed)
        clean = Subspace(self.dim, self.dim - self.inside).sample(self.examples, rng)
        off = require_value(clean.truth.complement, "the subspace is known with its complement")
        away = unit_rows(torch.randn(self.examples, off.shape[1], generator=rng, dtype=torch.float64))
        lengths = self.noise * clean.X.norm(dim=1, keepdim=True)
        data = Data(clean.X + lengths * away @ off.T, clean.y)
        training = train_first_layer(data, self.width, rng)
        network, start = training.network, require_value(training.network.start, "a start that is drawn is kept")
        slopes = gradients(network, data.X)
        outside = slopes @ off
        return {
            "reached": training.reached,
            "steps": training.steps,
            "off": float(outside.norm(dim=1).mean()),
            "on": float((slopes - outside @ off.T).norm(dim=1).mean()),
            "moved": float(((network.W - start.W) @ off).norm() / (start.W @ off).norm()),
        }

    def cost(self) -> float:
        return 0.1 + 1e-7 * self.examples * self.width * self.dim
