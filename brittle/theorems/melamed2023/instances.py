"""Data on a subspace P and a network trained on them, as the paper sets it up; everything off P is a Gaussian."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Generator, Tensor

from brittle.data import Data, Subspace
from brittle.data.span import bartlett
from brittle.geometry import Basis
from brittle.networks import Kaiming, TwoLayer
from brittle.theorems.comparison import Comparison, at_least, at_most
from brittle.theorems.instance import Facts, Instance
from brittle.training import Logistic, Steps
from brittle.training.descent import GradientDescent

ON_SUBSPACE = 1e-9  # relative
KNOWN_START, KNOWN_STEPS = "starts that are known", "training steps that are known"


@dataclass(frozen=True)
class SubspaceTraining(Facts):
    """How the network was trained: from w ~ N(0, β² I), where `beta` is β, in `steps` of rate η, which is `rate`, with
    (λ/2)‖W‖² added to the loss, where `decay` is λ."""

    beta: float
    rate: float
    decay: float
    steps: int

    @property
    def product(self) -> float:
        """ηλ."""
        return self.rate * self.decay

    @property
    def shrinkage(self) -> float:
        """(1-ηλ)^T: how much shorter it leaves the weights off P."""
        return float((1 - self.product) ** self.steps)


UNKNOWN = SubspaceTraining(beta=math.nan, rate=math.nan, decay=math.nan, steps=0)


@dataclass(frozen=True)
class SubspaceRecipe:
    """Sizes and training of a default instance: w ~ N(0, β² I) with β = 1/√d unless `beta` is given, outputs ±1/√m.

    `examples` and `tests` points of a subspace of R^`dim` of this `codimension`; a network of this `width`; `rate`,
    `decay` and `steps` as in `SubspaceTraining`.
    """

    dim: int
    codimension: int
    width: int
    examples: int = 20
    tests: int = 5
    beta: float | None = None
    rate: float = 0.01
    decay: float = 0.0
    steps: int = 100

    @property
    def deviation(self) -> float:
        """β."""
        return self.dim**-0.5 if self.beta is None else self.beta

    def instance(self, rng: Generator) -> Instance:
        """Sampled in the span: n coordinates hold the data, m more hold the weights off P, whose Gram law is known."""
        inside = Subspace(self.dim, self.codimension).sample(self.examples, rng, test=self.tests, in_span=True)
        data = _with_room(inside, min(self.width, self.codimension))
        start = Kaiming(beta=self.deviation).draw(data.columns, self.width, rng, ambient=self.dim)
        W = start.W.clone()
        W[:, inside.columns :] = self.deviation * bartlett(self.width, self.codimension, rng)
        start = TwoLayer(W, start.b, start.v)
        descent = GradientDescent(
            Steps(self.steps), Logistic("sum"), rate=self.rate, layers="first", biases=False, decay=self.decay
        )
        network = descent.train(replace(start, start=start), data).network
        return Instance(data, network, SubspaceTraining(self.deviation, self.rate, self.decay, self.steps))


def _with_room(data: Data, columns: int) -> Data:
    """The same points with further columns of zeros, which belong to P⊥."""
    assert data.X_test is not None
    inside = data.columns
    axes = torch.eye(inside + columns, dtype=torch.float64)
    X, X_test = (torch.nn.functional.pad(points, (0, columns)) for points in (data.X, data.X_test))
    truth = replace(data.truth, basis=axes[:, :inside].clone(), complement=axes[:, inside:].clone())
    return replace(data, X=X, X_test=X_test, truth=truth)


@dataclass(frozen=True, eq=False)
class OffSubspace:
    """An `instance` seen from P⊥; P is what the data know of it, else the span of the examples."""

    instance: Instance

    @cached_property
    def basis(self) -> Tensor:
        """(columns, dim P), orthonormal."""
        basis = self.instance.data.truth.basis
        if basis is not None:
            return basis
        return Basis.spanning(self.instance.data.X).vectors

    @property
    def dim(self) -> int:
        """d."""
        return self.instance.data.dim

    @property
    def codimension(self) -> int:
        """ℓ."""
        codimension = self.instance.data.truth.codimension
        return self.dim - self.basis.shape[1] if codimension is None else codimension

    @property
    def network(self) -> TwoLayer:
        """The instance's, with two layers."""
        return self.instance.two_layer

    @cached_property
    def points(self) -> Tensor:
        """Every x0 of P that is looked at: training and held-out examples."""
        data = self.instance.data
        return data.X if data.X_test is None else torch.cat([data.X, data.X_test])

    def project(self, rows: Tensor) -> Tensor:
        """Π_P⊥ of every row, in the data's own coordinates."""
        complement = self.instance.data.truth.complement
        if complement is not None:
            return rows @ complement @ complement.T
        return rows - rows @ self.basis @ self.basis.T

    @cached_property
    def weights(self) -> Tensor:
        """Π_P⊥ w_i, (width, columns)."""
        return self.project(self.network.W)

    @cached_property
    def start(self) -> Tensor:
        """Π_P⊥ w_i(0), (width, columns); NaN where the start is not known."""
        start = self.network.start
        return torch.full_like(self.weights, torch.nan) if start is None else self.project(start.W)

    @cached_property
    def active(self) -> Tensor:
        """<w_i, x0> ≥ 0, (points, width)."""
        return self.network.preactivations(self.points) >= 0

    @cached_property
    def gradients(self) -> Tensor:
        """‖Π_P⊥ ∇N(x0)‖, (points,)."""
        gradients = (self.active * self.network.v) @ self.weights
        return gradients.square().sum(1).sqrt()

    @property
    def patterns(self) -> int:
        """How many different sets of active neurons there are: so many events share the union bound."""
        return len(torch.unique(self.active, dim=0))

    @property
    def training(self) -> SubspaceTraining:
        """How the network was trained; nothing can be compared with an unknown one."""
        return self.instance.known(SubspaceTraining) or UNKNOWN

    @property
    def beta(self) -> float:
        """β of the start; 1/√d where the training is not known."""
        return self.dim**-0.5 if self.training is UNKNOWN else self.training.beta


def about_data(off: OffSubspace) -> Iterator[Comparison]:
    """The data lie on a linear subspace that is not everything."""
    data = off.instance.data
    offset = data.truth.offset
    away = 0.0 if offset is None else float((offset - off.basis @ (off.basis.T @ offset)).norm())
    yield at_least("codimension", off.codimension, 1)
    yield at_most("distance of the data's plane from the origin", away, ON_SUBSPACE)
    moved = off.points if offset is None else off.points - offset
    outside = (moved - moved @ off.basis @ off.basis.T).norm() / moved.norm().clamp(min=1e-300)
    yield at_most("share of the data off the subspace", float(outside), ON_SUBSPACE)


def about_network(off: OffSubspace, beta: float, weights: Tensor | None = None) -> Iterator[Comparison]:
    """No biases, output weights ±1/√m, and weights off P (those given, else the network's own) of variance β²."""
    network, count = off.network, off.network.width * off.codimension
    yield at_most("largest bias", float(torch.cat([network.b, network.c[None]]).abs().max()), 0)
    output = (network.v.abs() * math.sqrt(network.width) - 1).abs().max()
    yield at_most("deviation of the output weights from 1/√m", float(output), ON_SUBSPACE)
    weights = off.weights if weights is None else weights
    spread = float(weights.square().sum()) / (max(1, count) * beta**2)
    errors = abs(spread - 1) * math.sqrt(count / 2)
    yield at_most("variance of the weights off the subspace, in standard errors from its own", errors, 6)


def about_training(off: OffSubspace) -> Iterator[Comparison]:
    """It is known where the network started and how it was trained: neither can be read off the weights."""
    yield at_least(KNOWN_START, off.network.start is not None, 1)
    yield at_least(KNOWN_STEPS, off.training.steps, 1)


def about_start(off: OffSubspace) -> Iterator[Comparison]:
    """Where the start is known: the weights off P are those of the start (Theorem A.2)."""
    if off.network.start is not None:
        yield at_most("movement of the weights off the subspace", movement(off), ON_SUBSPACE)


def movement(off: OffSubspace, factor: float = 1.0) -> float:
    """How far the weights off P are from `factor` times their start, beside its length."""
    expected = factor * off.start
    return float((off.weights - expected).norm() / expected.norm().clamp(min=1e-300))
