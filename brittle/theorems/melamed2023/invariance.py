"""What training does and does not do to the weights: rotations, and the directions off the data."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import scipy
import torch
from torch import Generator, Tensor

from brittle.attacks import first_flip
from brittle.data import Data, Grid25, Subspace
from brittle.data.span import orthonormal
from brittle.networks import Initialisation, Kaiming, TwoLayer
from brittle.theorems.base import Theorem
from brittle.theorems.comparison import (
    Comparison,
    Promise,
    Witness,
    at_least,
    at_most,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.instance import Facts, Instance
from brittle.theorems.melamed2023.instances import OffSubspace, SubspaceTraining, about_data, about_training, movement
from brittle.training import Logistic, Steps
from brittle.training.descent import GradientDescent

MOVED = "movement of the weights off the subspace"
ROTATED = "distance between the rotated weights and the weights of the rotated data"
SAME_OUTPUT = "change of the output at x0 + z by the rotation"
SAME_FLIP = "change of the flip along z by the rotation"
SAME_LENGTH = "change of ‖z‖ by the rotation"
WEIGHTS_P_VALUE = "p-value of one law of the weights off the subspace"
P_VALUE = "p-value of one law of the gradient off the subspace"
GRADIENT = "change of the gradient off the subspace by the rotation"


@dataclass(frozen=True)
class RetrainedNetwork(Theorem):
    """The network is trained again from its start: `steps` of gradient descent (or batches of `batch`), with
    (λ/2)‖W‖² added to the loss where `decay` is λ.

    Default: `examples` of a subspace of R^`dim` of this `codimension`, and a network of this `width`; `rate` is η.
    """

    dim: int = 30
    codimension: int = 20
    width: int = 12
    examples: int = 15
    rate: float = 0.05
    steps: int = 100
    batch: int | None = None
    decay: float = 0.0

    def default(self, rng: Generator) -> Instance:
        data = Subspace(self.dim, self.codimension).sample(self.examples, rng)
        return Instance(data, Kaiming().draw(self.dim, self.width, rng))

    def train(self, start: TwoLayer, data: Data) -> TwoLayer:
        """The same batches every time: only data and start differ."""
        descent = GradientDescent(
            Steps(self.steps),
            Logistic("sum"),
            rate=self.rate,
            batch=self.batch,
            layers="first",
            biases=False,
            decay=self.decay,
        )
        return descent.train(start, data, torch.Generator().manual_seed(0)).network


def start_of(instance: Instance) -> TwoLayer:
    """The start of the network, else the network itself."""
    network = instance.two_layer
    return replace(network if network.start is None else network.start, start=None)


@dataclass(frozen=True, eq=False)
class Rotation(Facts):
    """`matrix` (columns, columns): the R to rotate by."""

    matrix: Tensor


@dataclass(frozen=True)
class RotationInvariance(RetrainedNetwork, id="melamed2023/A.1"):
    """Training on RX from RW(0) gives RW(t): with R orthogonal, W(t) trained on X from W(0), for every t."""

    claim: ClassVar = "training commutes with rotations of data and start, so the subspace may be spanned by axes"
    applies_to: ClassVar = "any data with signs as labels; two layers, first layer trained by (stochastic) descent"

    def default(self, rng: Generator) -> Instance:
        instance = super().default(rng)
        return replace(instance, facts=Rotation(orthonormal(self.dim, self.dim, rng)))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        R = self.rotation(instance)
        error = float((R @ R.T - torch.eye(len(R), dtype=torch.float64)).abs().max())
        yield at_most("deviation of R from an orthogonal matrix", error, 1e-9)

    def rotation(self, instance: Instance) -> Tensor:
        """R: the given one, else one that is drawn."""
        rotation, columns = instance.known(Rotation), instance.data.columns
        return orthonormal(columns, columns, torch.Generator().manual_seed(0)) if rotation is None else rotation.matrix

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(ROTATED, 1e-8), promise_at_most(GRADIENT, 1e-8)]

    def witness(self, instance: Instance) -> Witness:
        R, start, data = self.rotation(instance), start_of(instance), instance.data
        trained = self.train(start, data)
        turned_data = Data(data.X @ R.T, data.y)
        turned = self.train(replace(start, W=start.W @ R.T), turned_data)
        apart = float((turned.W - trained.W @ R.T).norm() / trained.W.norm())
        off = OffSubspace(Instance(Data(data.X, data.y), trained)).gradients
        turned_off = OffSubspace(Instance(turned_data, turned)).gradients
        return Witness({ROTATED: apart, GRADIENT: float((off - turned_off).abs().max() / off.max().clamp(min=1e-300))})


@dataclass(frozen=True)
class RotationWithDecay(RotationInvariance, id="melamed2023/A.1-L2"):
    """The same with an L2 penalty, as the proof of Theorem 6.2 uses it."""

    claim: ClassVar = "training with L2 regularisation commutes with rotations of data and start"

    decay: float = 1.0


@dataclass(frozen=True)
class RotatedPerturbation(RotationInvariance, id="melamed2023/A.1(2)"):
    """z in P⊥ flips x0 for the network trained on X exactly where z' = Rz in (RP)⊥, ‖z'‖ = ‖z‖, flips Rx0 for the one
    trained on RX from RW(0): N^X(x0 + z) = N^{RX}(Rx0 + Rz) for every z; here z along the gradient off P."""

    claim: ClassVar = "z flips x0 for the network trained on X exactly where Rz flips Rx0 for the one trained on RX"

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(name, 1e-8) for name in (SAME_OUTPUT, SAME_FLIP, SAME_LENGTH)]

    def witness(self, instance: Instance) -> Witness:
        R, start, data = self.rotation(instance), start_of(instance), instance.data
        network = self.train(start, data)
        turned = self.train(replace(start, W=start.W @ R.T), Data(data.X @ R.T, data.y))
        off, decided = OffSubspace(Instance(data, network)), network.logits(data.X) != 0  # without a sign nothing flips
        X = data.X[decided]
        y = network.logits(X).sign()
        Z = -y[:, None] * off.project((off.active[: len(data)][decided] * network.v) @ off.weights)
        before, after = network.logits(X + Z), turned.logits((X + Z) @ R.T)
        rays = Z / Z.norm(dim=1, keepdim=True).clamp(min=1e-300)
        flips, turned_flips = first_flip(network, X, y, rays), first_flip(turned, X @ R.T, y, rays @ R.T)
        both = flips.isfinite() & turned_flips.isfinite()
        apart = (flips - turned_flips).abs()[both] / flips[both]
        one_sided = float((flips.isfinite() != turned_flips.isfinite()).any())
        lengths = float(((Z @ R.T).norm(dim=1) - Z.norm(dim=1)).abs().max() / Z.norm(dim=1).max().clamp(min=1e-300))
        return Witness(
            {
                SAME_OUTPUT: float((before - after).abs().max() / before.abs().max()),
                SAME_FLIP: max(one_sided, float(apart.max()) if len(apart) else 0.0),
                SAME_LENGTH: lengths,
            }
        )


@dataclass(frozen=True, eq=False)
class Starts(Facts):
    """Networks to train, all drawn from one law: those `on_axes` where P⊥ is turned onto axes, the others
    `on_diagonals`."""

    on_axes: tuple[TwoLayer, ...]
    on_diagonals: tuple[TwoLayer, ...]


@dataclass(frozen=True)
class LawOfTheStart(RetrainedNetwork, id="melamed2023/A.1-law"):
    """Whether X or RX is trained on, each from starts of its own, Π_P⊥ w_i and ‖Π_P⊥ ∇N(x0)‖ have one law, because
    N(0, I/d) is the same after a rotation.

    The data are turned so that P⊥ is spanned by axes, as the paper's proofs have it, and so that it is spanned by
    diagonals (rows of Hartley's matrix), which no axis comes near: a law with independent coordinates that is not
    Gaussian, or with axes that differ, is another one along these. `draws` starts are trained either way. All
    coordinates Π_P⊥ w_i of one way are compared with those of the other by the test of Kolmogorov and Smirnov, which is
    exact up to its asymptotic formula, as they are independent; so are the lengths of the gradients.
    """

    claim: ClassVar = "over the start, weights and gradient off the subspace have the same law for X and for RX"
    applies_to: ClassVar = "data on a linear subspace with signs as labels; two layers, first layer trained by descent"

    dim: int = 12
    codimension: int = 8
    width: int = 6
    examples: int = 5
    steps: int = 5
    draws: int = 100

    def default(self, rng: Generator) -> Instance:
        instance = super().default(rng)
        return replace(instance, facts=self.starts(Kaiming(), instance.data.columns, rng))

    def starts(self, law: Initialisation, columns: int, rng: Generator) -> Starts:
        """Drawn from this law."""
        drawn = [law.draw(columns, self.width, rng) for _ in range(2 * self.draws)]
        return Starts(tuple(drawn[: self.draws]), tuple(drawn[self.draws :]))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        off = OffSubspace(instance)
        yield from about_data(off)
        yield at_least("coordinates off the subspace", instance.data.columns - off.basis.shape[1], 1)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(name, 1e-3) for name in (WEIGHTS_P_VALUE, P_VALUE)]

    def witness(self, instance: Instance) -> Witness:
        data, columns = instance.data, instance.data.columns
        starts = instance.known(Starts) or self.starts(Kaiming(), columns, torch.Generator().manual_seed(0))
        basis = OffSubspace(instance).basis
        turn = torch.linalg.svd(basis).U.T.roll(-basis.shape[1], 0)  # P⊥ onto the first axes, P onto the others
        angles = torch.arange(columns, dtype=torch.float64).outer(torch.arange(columns)) * (2 * math.pi / columns)
        hartley = (angles.cos() + angles.sin()) / math.sqrt(columns)
        on_axes = self._off(Data(data.X @ turn.T, data.y), starts.on_axes, turn, basis)
        on_diagonals = self._off(Data(data.X @ turn.T @ hartley, data.y), starts.on_diagonals, hartley @ turn, basis)
        weights, gradients = zip(on_axes, on_diagonals, strict=True)
        return Witness({WEIGHTS_P_VALUE: _p_value(*weights), P_VALUE: _p_value(*gradients)})

    def _off(
        self, turned: Data, starts: tuple[TwoLayer, ...], rotation: Tensor, basis: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Coordinates of all Π_P⊥ w_i, in the turned basis of P⊥, and ‖Π_P⊥ ∇N(x0)‖ at the first example."""
        complement = rotation @ torch.linalg.svd(basis).U[:, basis.shape[1] :]
        networks = [self.train(replace(start, start=None), turned) for start in starts]
        weights = torch.stack([network.W @ complement for network in networks])
        active = torch.stack([(network.preactivations(turned.X[:1])[0] >= 0) * network.v for network in networks])
        return weights.flatten(), torch.einsum("rj,rjk->rk", active, weights).norm(dim=1)


def _p_value(one: Tensor, other: Tensor) -> float:
    """How likely two samples of one law differ so much."""
    return float(scipy.stats.ks_2samp(one.numpy(), other.numpy(), method="asymp").pvalue)


@dataclass(frozen=True)
class FrozenOffSubspace(RetrainedNetwork, id="melamed2023/A.2"):
    """Data on a linear subspace P, no regularisation ⇒ Π_P⊥ w_i(t) = Π_P⊥ w_i(0) for every neuron and every t.

    Judged is the network as given. It must be known where it started, and that only gradient steps led from there.
    """

    claim: ClassVar = "weights off the subspace of the data never move"
    applies_to: ClassVar = "data on a linear subspace; two layers, first layer trained by (stochastic) descent"

    def default(self, rng: Generator) -> Instance:
        untrained = super().default(rng)
        start = replace(untrained.two_layer, start=None)
        trained = self.train(replace(start, start=start), untrained.data)
        return Instance(untrained.data, trained, SubspaceTraining(self.dim**-0.5, self.rate, 0.0, self.steps))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        off = OffSubspace(instance)
        yield from about_data(off)
        yield from about_training(off)
        yield at_most("decay λ", off.training.decay, 0)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_most(MOVED, 1e-9)]

    def witness(self, instance: Instance) -> Witness:
        return Witness({MOVED: movement(OffSubspace(instance))})


@dataclass(frozen=True)
class AffinePlane(RetrainedNetwork, id="melamed2023/affine"):
    """Data on a plane at distance h > 0 from the origin span one more direction, and the weights do move along it:
    A.2 and 4.1-6.2 do not speak of affine subspaces (the paper's own grid lies at z = 1/2)."""

    claim: ClassVar = "the theorems need a linear subspace: on an affine plane the weights normal to it move"
    applies_to: ClassVar = "data on an affine plane that misses the origin"
    note: ClassVar = "ours: the paper states a linear subspace and experiments on an affine one (figure 3)"

    rate: float = 0.002
    width: int = 100

    def default(self, rng: Generator) -> Instance:
        return Instance(Grid25().sample(), Kaiming().draw(3, self.width, rng))

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        offset = instance.data.truth.offset
        off = OffSubspace(instance)
        away = 0.0 if offset is None else float(off.project(offset[None]).norm())
        yield at_least("distance of the data's plane from the origin", away, 1e-9)

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(MOVED, 1e-6, tolerance=0.0)]

    def witness(self, instance: Instance) -> Witness:
        start = start_of(instance)
        trained = self.train(replace(start, start=start), instance.data)
        return Witness({MOVED: movement(OffSubspace(replace(instance, network=trained)))})
