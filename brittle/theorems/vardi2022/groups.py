"""vardi2022's reading of the shared proof: every example is a group of its own."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.common.errors import require, require_between
from brittle.data import AlmostOrthogonal, Data, DataInfo, Orthogonal, Sphere
from brittle.data.orthogonal import halves
from brittle.networks import TwoLayer
from brittle.networks.constructions import nearly_orthogonal, orthogonal_kkt, smaller_norm
from brittle.theorems.comparison import Comparison, at_least, at_most
from brittle.theorems.helpers import kkt_network
from brittle.theorems.instance import Instance
from brittle.theorems.kkt_proof import RADIUS_TOLERANCE, Groups, OtherPoints, ProofConstants


@dataclass(frozen=True)
class ExampleConstants(ProofConstants):
    """Groups of one example: Δ = 0, and k is the number m of examples."""

    inverse_share: ClassVar = 3
    spread: ClassVar[float] = 0.0
    before: ClassVar[float] = 1.0  # Lemma C.1: every example is on the margin

    @property
    def mass(self) -> float:
        """Lemma C.2: mc/((cc'+1)(d+1))."""
        c = self.balance
        return self.groups * c / ((c * self.share + 1) * self.within)

    @property
    def least_room(self) -> float:
        """Lemma C.5: d/3."""
        return self.dim / 3

    @property
    def longest(self) -> float:
        """Lemma C.9, rounded as in the paper: 18√2·√(d/m)/c."""
        return 18 * math.sqrt(2 * self.dim / self.groups) / self.balance


@dataclass(frozen=True, eq=False)
class ExampleGroups(Groups):
    """Every example is its own centre."""

    @property
    def centres(self) -> Tensor:
        """x_i, (n, columns)."""
        return self.data.X

    @property
    def labels(self) -> Tensor:
        """y_i, (n,)."""
        return self.data.y

    @property
    def constants(self) -> ExampleConstants:
        """The numbers of the proof of Theorem 4.1."""
        return ExampleConstants(self.dim, len(self.data), self.coherence, self.balance)


def on_the_sphere(groups: ExampleGroups) -> Comparison:
    """‖x_i‖ = √d."""
    return at_most("relative deviation of ‖x‖ from √d", groups.radius_error, RADIUS_TOLERANCE)


def geometry(groups: ExampleGroups) -> Iterator[Comparison]:
    """What Theorem 4.1 supposes of the data."""
    yield on_the_sphere(groups)
    yield at_least("examples of the rarer label", groups.rarer, 1)
    yield at_most("examples", len(groups.data), groups.constants.limit)


# The instances on which the theorems of vardi2022 are checked by default, and its two constructions.


def orthogonal_instance(dim: int, examples: int) -> Instance:
    """x_i = √d e_i, half of each label, at the KKT point that is known in closed form."""
    data = Orthogonal(dim).sample(examples)
    return Instance(data, orthogonal_kkt(data.X, data.y).network)


def almost_orthogonal_instance(
    dim: int, examples: int, coherence: float, rng: Generator, *, balance: float = 0.5, starts: int = 1
) -> Instance:
    """Norm √d and inner products up to `coherence`, at KKT points that are solved for from so many starts."""
    data = AlmostOrthogonal(dim, coherence).sample(examples, rng, in_span=True)
    data = replace(data, y=shares(examples, balance))
    network, *others = [kkt_network(data, rng) for _ in range(starts)]
    return Instance(data, network, OtherPoints(tuple(others)))


def make_surrounded_instance(
    dim: int, examples: int, coherence: float, rng: Generator, *, balance: float = 0.5
) -> Instance:
    """Almost orthogonal examples, each with three longer ones round it that a KKT point has beyond its margin."""
    core = AlmostOrthogonal(dim, coherence).sample(examples, rng, in_span=True)
    y, columns = shares(examples, balance).repeat(4), 4 * examples
    X = torch.nn.functional.pad(core.X, (0, columns - examples)).repeat(4, 1)
    longer = 1.3 + torch.rand(columns - examples, 1, generator=rng, dtype=torch.float64)
    aside = torch.randn(columns - examples, columns - examples, generator=rng, dtype=torch.float64)
    X[examples:] *= longer
    X[examples:, examples:] = 0.5 * math.sqrt(dim) * torch.nn.functional.normalize(aside, dim=1)
    data = Data(X, y, truth=DataInfo(dim=dim))
    return Instance(data, kkt_network(data, rng))


def shares(examples: int, balance: float) -> Tensor:
    """Labels, (examples,): this share of them -1, as nearly as their number allows and at least one."""
    require_between("balance", balance, 0, 0.5)
    negative = min(max(1, round(balance * examples)), examples // 2)
    return torch.cat([torch.ones(examples - negative), -torch.ones(negative)]).double()


def sphere_instance(dim: int, examples: int, rng: Generator) -> Instance:
    """Points of the sphere sampled in their span, half of each label, at a KKT point that is solved for."""
    data = Sphere(dim).sample(examples, rng, in_span=True)
    data = replace(data, y=halves(examples))
    return Instance(data, kkt_network(data, rng))


def sphere_at_its_limit(dim: int, rng: Generator) -> Data:
    """As many points of the sphere as Theorem 4.1 admits, sampled in their span, half of each label."""
    more, fit = _more_than_fit(dim), 0
    while fit == 0 or (fit == more and more < dim):
        data = Sphere(dim).sample(more, rng, in_span=True)
        gram = (data.X @ data.X.T).fill_diagonal_(0).abs()
        largest = gram.tril().amax(1).cummax(0).values  # p of the first 1, 2, 3, ... points
        fit = int((torch.arange(1, more + 1) <= (dim + 1) / (3 * (largest + 1))).sum())
        require(fit >= 2, f"dim is {dim}; two points of the sphere do not meet vardi2022/4.1 there: take more")
        more = more if fit < more else min(dim, 2 * more)
    return Data(data.X[:fit, :fit], halves(fit), truth=data.truth)


def _more_than_fit(dim: int) -> int:
    """n = (d+1)/(3(p+1)) with p = √(4 d ln n), the largest of n²/2 inner products of deviation √d; and a third more."""
    count = math.sqrt(dim) / 3
    for _ in range(20):
        count = math.sqrt(dim) / (3 * math.sqrt(4 * math.log(max(3.0, count))))
    return min(dim, math.ceil(1.3 * count) + 10)


def robust_network(data: Data) -> TwoLayer:
    """Theorem 3.1."""
    return nearly_orthogonal(data.X, data.y).network


def fragile_network(data: Data) -> TwoLayer:
    """N' of section 5.1."""
    return smaller_norm(data.X, data.y).network
