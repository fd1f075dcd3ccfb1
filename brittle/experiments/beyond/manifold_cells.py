"""Data on a curved manifold: how large is the gradient off its tangent space, and how near a flip along it?

A change in this file makes every finished cell of the family stale: claims and drawings live in `manifold_figures`.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from brittle.attacks import first_flip
from brittle.data import Data
from brittle.data.span import orthonormal
from brittle.experiments.beyond.trained import gradients, train_first_layer
from brittle.experiments.cell import Cell, Point
from brittle.geometry import unit_rows


class Sample(NamedTuple):
    """`points` (n, s) of norm √s; `tangents` (n, s, k), orthonormal columns; `angles` (n,), the first coordinate."""

    points: Tensor
    tangents: Tensor
    angles: Tensor


def curve(span: int, count: int, rng: Generator) -> Sample:
    """(cos θ, sin θ, cos 2θ, sin 2θ, ...): one dimension, and it spans everything."""
    angles = 2 * math.pi * torch.rand(count, generator=rng, dtype=torch.float64)
    j = torch.arange(1, span // 2 + 1, dtype=torch.float64)
    turned = angles[:, None] * j
    points = math.sqrt(2) * torch.cat([turned.cos(), turned.sin()], 1)
    tangents = torch.cat([-j * turned.sin(), j * turned.cos()], 1)
    return Sample(points, (tangents / tangents.norm(dim=1, keepdim=True))[:, :, None], angles)


def torus(span: int, count: int, rng: Generator) -> Sample:
    """A product of s/2 circles: half as many dimensions as it spans."""
    angles = 2 * math.pi * torch.rand(count, span // 2, generator=rng, dtype=torch.float64)
    points = math.sqrt(2) * torch.cat([angles.cos(), angles.sin()], 1)
    tangents = torch.cat([torch.diag_embed(-angles.sin()), torch.diag_embed(angles.cos())], 1)
    return Sample(points, tangents, angles[:, 0])


def sphere(span: int, count: int, rng: Generator) -> Sample:
    """All but one dimension of what it spans."""
    points = torch.randn(count, span, generator=rng, dtype=torch.float64)
    points *= math.sqrt(span) / points.norm(dim=1, keepdim=True)
    tangents = torch.linalg.qr(points[:, :, None], mode="complete").Q[:, :, 1:]
    return Sample(points, tangents, torch.atan2(points[:, 1], points[:, 0]) % (2 * math.pi))


MANIFOLDS = {"curve": curve, "torus": torus, "sphere": sphere}


@dataclass(frozen=True, kw_only=True)
class ManifoldCell(Cell):
    """Gradients at the training examples, along T, across T within the span and off the span, and flips across T.

    Examples are labelled by the half circle that their first angle lies on.
    """

    family = "beyond/manifold"
    manifold: str  # one of MANIFOLDS
    dim: int  # d
    span: int  # s, of the manifold: even, at most d
    examples: int  # n
    width: int  # m
    seed: int  # of data and start

    def measure(self) -> Point:
        rng = Generator().manual_seed(self.seed)
        sample = MANIFOLDS[self.manifold](self.span, self.examples, rng)
        frame = orthonormal(self.dim, self.span, rng)
        data = Data(sample.points @ frame.T, torch.where(sample.angles < math.pi, 1.0, -1.0).double())
        training = train_first_layer(data, self.width, rng)
        network = training.network
        slopes = gradients(network, data.X)
        tangents = frame @ sample.tangents
        along = (tangents @ (tangents.mT @ slopes[:, :, None]))[:, :, 0]
        across, inside = slopes - along, slopes @ frame @ frame.T
        off = (slopes - inside).norm(dim=1)
        flips = first_flip(network, data.X, data.y, -data.y[:, None] * unit_rows(across)) / data.X.norm(dim=1)
        active = (network.preactivations(data.X) >= 0).double().sum(1)
        promised = (active * (self.dim - self.span) / (2 * self.width * self.dim)).sqrt()
        return {
            "reached": training.reached,
            "steps": training.steps,
            "tangent_dimensions": sample.tangents.shape[2],
            "along": float(along.norm(dim=1).mean()),
            "across_in_span": float((inside - along).norm(dim=1).mean()),
            "off_span": float(off.mean()),
            "over_promised": float((off / promised).mean()) if self.span < self.dim else None,
            "flip": float(flips.median()),
            "flipped": float(flips.isfinite().double().mean()),
        }

    def cost(self) -> float:
        return 0.3 + 4e-6 * self.width * self.dim
