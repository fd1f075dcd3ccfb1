"""Example 1: how long the perturbation of Theorem 4.1 is as d grows."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Generator

from brittle.settings import Orthogonal
from brittle.theorems.base import Comparison, Instance, Promise, Theorem, Witness
from brittle.theorems.scaling import Scaling, fitted
from brittle.theorems.vardi2022.instances import sphere_at_its_limit
from brittle.theorems.vardi2022.sizes import Sizes, geometry


@dataclass(frozen=True)
class Lengths(Theorem):
    """‖z‖ depends on the examples alone: orthogonal ones (n = d/3), and the sphere filled to its limit, in the span."""

    id: ClassVar = "vardi2022/Ex1"
    claim: ClassVar = "‖z‖ = O(1) for n = Θ(d) almost orthogonal examples, Õ(d^{1/4}) for random ones at the limit"
    applies_to: ClassVar = "nearly orthogonal examples of norm √d"
    explicit_constants: ClassVar = False

    dims: tuple[int, ...] = (10**5, 10**6, 10**7)
    orthogonal_dims: tuple[int, ...] = (100, 300, 900)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from geometry(Sizes(instance.data))

    def bound(self, instance: Instance) -> list[Promise]:
        return []

    def witness(self, instance: Instance) -> Witness:
        sizes = Sizes(instance.data)
        return Witness({"n": sizes.examples, "‖z‖": length(sizes), "‖z‖/√d": length(sizes) / math.sqrt(sizes.dim)})

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        if "spheres" not in instance.facts:
            return ()
        spheres, orthogonal = ([Sizes(each) for each in instance.facts[name]] for name in ("spheres", "orthogonal"))
        d = [sizes.dim for sizes in spheres]
        random = [length(sizes) / math.sqrt(math.sqrt(math.log(sizes.examples))) for sizes in spheres]
        return (
            fitted("‖z‖, orthogonal, n = d/3", "d", 0.0, self.orthogonal_dims, [length(each) for each in orthogonal]),
            fitted("‖z‖/ln(n)^(1/4), sphere at its limit", "d", 0.25, d, random),
        )

    def default(self, rng: Generator) -> Instance:
        spheres = [sphere_at_its_limit(dim, rng) for dim in self.dims]
        orthogonal = [Orthogonal(dim).sample(dim // 3 // 2 * 2, in_span=True) for dim in self.orthogonal_dims]
        return Instance(spheres[-1], facts={"spheres": spheres, "orthogonal": orthogonal})


def length(sizes: Sizes) -> float:
    return (sizes.opening + sizes.crossing) * float(torch.linalg.vector_norm(sizes.direction))
