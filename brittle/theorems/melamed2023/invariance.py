"""What training does and does not do to the weights: rotations, and the directions off the data."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import scipy
import torch
from torch import Generator, Tensor

from brittle.attacks import first_flip
from brittle.networks import Kaiming, TwoLayer
from brittle.settings import Data, Grid25, Subspace
from brittle.settings.span import orthonormal
from brittle.theorems.base import Theorem
from brittle.theorems.comparison import Comparison, Promise, at_least, at_most, promise_at_least, promise_at_most
from brittle.theorems.instance import Facts, Instance
from brittle.theorems.melamed2023.instances import OffSubspace, Training, about_data, about_training, movement
from brittle.theorems.witness import Witness
from brittle.training import Logistic, Steps
from brittle.training.descent import Descent

MOVED = "movement of the weights off the subspace"
ROTATED = "distance between the rotated weights and the weights of the rotated data"
SAME_OUTPUT = "change of the output at x0 + z by the rotation"
SAME_FLIP = "change of the flip along z by the rotation"
SAME_LENGTH = "change of ‖z‖ by the rotation"
P_VALUE = "p-value of one law for X and RX"
GRADIENT = "change of the gradient off the subspace by the rotation"


@dataclass(frozen=True)
class Retrained(Theorem):
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
        descent = Descent(
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
class RotationInvariance(Retrained, id="melamed2023/A.1"):
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
        y, off = network.logits(data.X).sign(), OffSubspace(Instance(data, network))
        Z = -y[:, None] * off.project((off.active[: len(data)] * network.v) @ off.weights)
        before, after = network.logits(data.X + Z), turned.logits((data.X + Z) @ R.T)
        rays = Z / Z.norm(dim=1, keepdim=True).clamp(min=1e-300)
        flips, turned_flips = first_flip(network, data.X, y, rays), first_flip(turned, data.X @ R.T, y, rays @ R.T)
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


@dataclass(frozen=True)
class LawOfTheStart(RotationInvariance, id="melamed2023/A.1-law"):
    """‖Π_P⊥ ∇N(x0)‖ has one law, whether X or RX is trained on, each from starts of its own: N(0, I/d) is the same
    after a rotation. Two samples of `draws` are compared by the test of Kolmogorov and Smirnov."""

    claim: ClassVar = "over the start, the gradient off the subspace has the same law for X and for RX"

    dim: int = 12
    codimension: int = 8
    width: int = 6
    examples: int = 5
    steps: int = 5
    draws: int = 40

    def bound(self, instance: Instance) -> list[Promise]:
        return [promise_at_least(P_VALUE, 1e-3)]

    def witness(self, instance: Instance) -> Witness:
        data, R, rng = instance.data, self.rotation(instance), torch.Generator().manual_seed(0)
        samples = [self._sample(each, rng) for each in (data, Data(data.X @ R.T, data.y))]
        return Witness({P_VALUE: float(scipy.stats.ks_2samp(*samples).pvalue)})

    def _sample(self, data: Data, rng: Generator) -> list[float]:
        """At the first example, for one start after the other."""
        starts = [Kaiming().draw(data.columns, self.width, rng) for _ in range(self.draws)]
        networks = [self.train(replace(start, start=None), data) for start in starts]
        return [float(OffSubspace(Instance(Data(data.X, data.y), each)).gradients[0]) for each in networks]


@dataclass(frozen=True)
class FrozenOffSubspace(Retrained, id="melamed2023/A.2"):
    """Data on a linear subspace P, no regularisation ⇒ Π_P⊥ w_i(t) = Π_P⊥ w_i(0) for every neuron and every t.

    Judged is the network as given. It must be known where it started, and that only gradient steps led from there.
    """

    claim: ClassVar = "weights off the subspace of the data never move"
    applies_to: ClassVar = "data on a linear subspace; two layers, first layer trained by (stochastic) descent"

    def default(self, rng: Generator) -> Instance:
        untrained = super().default(rng)
        start = replace(untrained.two_layer, start=None)
        trained = self.train(replace(start, start=start), untrained.data)
        return Instance(untrained.data, trained, Training(self.dim**-0.5, self.rate, 0.0, self.steps))

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
class AffinePlane(Retrained, id="melamed2023/affine"):
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
