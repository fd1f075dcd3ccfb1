"""A three-layer network trained on data of a subspace: how far PGD must go on it, off it and freely; what is proved.

A change in this file makes every finished cell of the family stale: claims and drawings live in `distance_figures`.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean

import torch
from torch import Generator, Tensor

from brittle.attacks import PGD, Restriction, restriction_for
from brittle.certificates import Exact, RadiusBounds
from brittle.certificates.base import default_cap
from brittle.data import Data, Subspace, principal
from brittle.experiments.cell import Cell, Point
from brittle.experiments.images import KINDS
from brittle.geometry import Basis
from brittle.networks import Deep, Dense, TorchLinearInit
from brittle.training import GradientDescent, Logistic, Loss, Margin, Steps, Trainer, TrainingResult
from brittle.training.objective import DataSpan

SIDES = ("free", "on", "off")
EXACT = Exact(gap=0.01, seconds=600, nodes=100)


@dataclass(frozen=True, kw_only=True)
class DistanceCell(Cell):
    """The mean length of perturbations by PGD in the whole space, on the subspace and off it."""

    family = "melamed2023/distance"
    data: str  # sphere, mnist or digits
    dim: int  # d
    inside: int  # dimensions of the subspace
    examples: int  # to train on, 0 for all of them
    width: int  # of both hidden layers
    points: int  # training examples that are attacked
    steps: int  # of PGD, in each round
    rounds: int  # of PGD
    proved: int  # of the attacked examples, whose radii are enclosed as well
    factor: float  # divides the first layer
    seed: int  # of data, start, batches and attacked examples

    def measure(self) -> Point:
        rng = Generator().manual_seed(self.seed)
        data = sample_data(self, rng)
        outputs = 1 if data.binary else data.classes
        start = TorchLinearInit(scale=self.factor, first_layer_only=True).draw_deep(
            data.dim, [self.width] * 2, rng, outputs=outputs
        )
        training = train_in_span(regime(data), start, data, rng)
        chosen = _right(training.network, data, self.points, rng)
        point: Point = {"reached": training.reached, "taken": training.steps, "accuracy": training.accuracy}
        for side in SIDES if training.reached else ():
            where = restriction_for(data, side)
            found = PGD(steps=self.steps, rounds=self.rounds, subspace=where).run(training.network, chosen)
            sizes = found.norms[found.success]
            point |= {side: float(sizes.mean()), f"{side}_deviation": float(sizes.std()), f"{side}_rate": found.rate}
            proofs = self._proved(training.network.to(torch.float64), chosen, where, found.norms)
            point |= {f"{side}_{name}": value for name, value in proofs.items()}
        return point

    def _proved(self, network: Deep, data: Data, where: Restriction, norms: Tensor) -> Point:
        """Of the first examples: their mean radius, PGD's for them, and how many enclosures closed."""
        found = [bound_restricted_radius(network, data, row, where) for row in range(min(self.proved, len(data)))]
        if not found:
            return {}
        return {
            "proved": fmean([float(each.lower) for each in found]),
            "same": float(norms[: len(found)].mean()),
            "exact": sum(bool(each.exact) for each in found),
            "enclosed": len(found),
        }

    def cost(self) -> float:
        examples = self.examples or 60_000
        if self.data == "sphere":
            training = 3.5e-7 * examples * self.width**2 + 0.2
        else:
            training = 6 + 4e-4 * examples if self.data == "mnist" else 0.5
        proofs = 3 * self.proved * (1.5 if self.data == "sphere" else 15)
        return 0.2 + training + proofs + 3e-9 * self.points * self.dim * self.steps * self.rounds * 10


def bound_restricted_radius(network: Deep, data: Data, row: int, where: Restriction) -> RadiusBounds:
    """How far one example is from flipping in the directions of a subspace.

    ε ↦ N(x + Vε) is a network of its own, composed in float64, where V spans what the first layer sees of the subspace.
    """
    x, (weight, bias) = data.X[row].double(), network.layers[0].parameters
    seen = Basis.spanning(where.project(weight)).vectors
    around = network.with_layers([Dense(weight @ seen, weight @ x + bias), *network.layers[1:]])
    origin = Data(torch.zeros(1, seen.shape[1], dtype=torch.float64), data.y[row : row + 1])
    return EXACT.bound(around, origin, cap=default_cap(data))


def sample_data(cell: DistanceCell, rng: Generator) -> Data:
    """Sphere data with random labels on a random subspace, or pictures on their principal components."""
    if cell.data == "sphere":
        return Subspace(cell.dim, cell.dim - cell.inside).sample(cell.examples, rng)
    data = _projected(cell.data, cell.inside)
    count = cell.examples or len(data)
    return data.take(torch.randperm(len(data), generator=rng)[:count])


@lru_cache(maxsize=1)
def _projected(name: str, components: int) -> Data:
    return principal(KINDS[name]().sample(), components)


def regime(data: Data) -> Trainer:
    """Sphere data until every margin is .5, by whole gradients; pictures until the loss is .1, in batches."""
    if data.binary:
        return GradientDescent(until=(Margin(0.5), Steps(20_000)), loss=Logistic(), rate=0.1)
    return GradientDescent(until=(Loss(0.1), Steps(50_000)), loss=Logistic(), rate=0.1, batch=128)


def train_in_span(regime: Trainer, start: Deep, data: Data, rng: Generator) -> TrainingResult[Deep]:
    """Descent moves the first layer within the span of the data alone (melamed2023 A.2): it is trained there.

    The result is the same as in all of R^d, at the cost of as many columns as the span has.
    """
    basis = span(data)
    inner = DataSpan(basis, data.X @ basis)
    inside = inner.inside(start)
    training = regime.train(inside, Data(inner.coordinates, data.y), rng)
    return replace(training, network=inner.joined(start, inside, training.network))


def span(data: Data) -> Tensor:
    """An orthonormal basis (dim, r) of the linear span of the data's subspace, affine or not."""
    basis, offset = data.truth.basis, data.truth.offset
    assert basis is not None
    return basis if offset is None else torch.linalg.qr(torch.cat([basis, offset[:, None]], 1)).Q


def _right(network: Deep, data: Data, count: int, rng: Generator) -> Data:
    """Random training examples, without those that are misclassified: they have no distance."""
    chosen = data.take(torch.randperm(len(data), generator=rng)[:count])
    return chosen.take(network.margins(chosen.X, chosen.y) > 0)
