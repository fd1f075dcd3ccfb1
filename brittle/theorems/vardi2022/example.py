"""Example 1: how long the perturbation of Theorem 4.1 is as d grows."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Generator

from brittle.settings import Data, Orthogonal
from brittle.theorems.base import ScalingClaim
from brittle.theorems.comparison import Comparison
from brittle.theorems.instance import Facts, Instance
from brittle.theorems.scaling import Scaling, fitted
from brittle.theorems.vardi2022.groups import ExampleGroups, geometry
from brittle.theorems.vardi2022.instances import sphere_at_its_limit
from brittle.theorems.witness import Witness


@dataclass(frozen=True, eq=False)
class TwoSweeps(Facts):
    """`spheres` filled to their limits and `orthogonal` examples, each in several dimensions."""

    spheres: tuple[Data, ...]
    orthogonal: tuple[Data, ...]


@dataclass(frozen=True)
class Lengths(ScalingClaim, id="vardi2022/Ex1"):
    """‖z‖ depends on the examples alone: orthogonal ones (n = d/3), and the sphere filled to its limit, in the span.

    Default: spheres in the dimensions `dims`, orthogonal examples in `orthogonal_dims`.
    """

    claim: ClassVar = "‖z‖ = O(1) for n = Θ(d) almost orthogonal examples, Õ(d^{1/4}) for random ones at the limit"
    applies_to: ClassVar = "nearly orthogonal examples of norm √d"

    dims: tuple[int, ...] = (10**5, 10**6, 10**7)
    orthogonal_dims: tuple[int, ...] = (100, 300, 900)

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from geometry(ExampleGroups(instance.data))

    def witness(self, instance: Instance) -> Witness:
        length, data = ExampleGroups(instance.data).length, instance.data
        return Witness({"n": len(data), "‖z‖": length, "‖z‖/√d": length / math.sqrt(data.dim)})

    def scaling(self, instance: Instance) -> tuple[Scaling, ...]:
        sweeps = instance.known(TwoSweeps)
        if sweeps is None:
            return ()
        orthogonal = [ExampleGroups(data).length for data in sweeps.orthogonal]
        random = [ExampleGroups(data).length / math.log(len(data)) ** 0.25 for data in sweeps.spheres]
        dims = [data.dim for data in sweeps.spheres]
        return (
            fitted("‖z‖, orthogonal, n = d/3", "d", 0.0, self.orthogonal_dims, orthogonal),
            fitted("‖z‖/ln(n)^(1/4), sphere at its limit", "d", 0.25, dims, random),
        )

    def default(self, rng: Generator) -> Instance:
        spheres = tuple(sphere_at_its_limit(dim, rng) for dim in self.dims)
        orthogonal = tuple(Orthogonal(dim).sample(dim // 3 // 2 * 2, in_span=True) for dim in self.orthogonal_dims)
        return Instance(spheres[-1], facts=TwoSweeps(spheres, orthogonal))
