"""Curved manifolds in R^s: samples of norm √s with an orthonormal basis of the tangent space at each."""

import math
from typing import NamedTuple

import torch
from torch import Generator, Tensor


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
