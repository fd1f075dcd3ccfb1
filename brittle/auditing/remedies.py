"""What the papers suggest against the weakness. Each remedy makes another network; the audit measures both."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.auditing.budget import Budget, Deadline
from brittle.auditing.costs import RATE, Costs, gradient_work, spectrum
from brittle.auditing.explanation import without_off_subspace_weights
from brittle.common.ending import Ending
from brittle.common.errors import InputError, require, require_count, require_positive, required
from brittle.common.parts import by_name, check_fields, option
from brittle.networks import Layered, Network, as_layered, clustered, nearly_orthogonal, redrawn
from brittle.settings import Data
from brittle.training import Descent, Flow, LimitedPGD, Logistic, LogLoss, MaximumRadius, Steps, Training
from brittle.training.guarded import Guarded
from brittle.training.normal_form import has_normal_form

EASIEST, HARDEST = -3.0, -70.0  # log-losses that a network is trained to again
SMALLEST_RATE = 1e-6
SAME_LOSS = 0.02  # relative, in log-losses: networks are compared at the same loss
EVALUATIONS = 3  # of a gradient in one step of gradient flow
TOLERANCE = 0.01  # of accuracy, that a remedy may cost
FEWEST_STEPS = 100  # of training on that say something about it
BOUNDARY_GRADIENTS = 6  # of a step for the radius: to the boundary, there, in the parameters, and now and then more


@dataclass(frozen=True, eq=False)
class Patient:
    """A network with its data, the basis (columns, r) of the data's subspace if known, and its median radius.

    `frozen` says that it came as a module whose parameters are not to be trained.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> patient = bt.auditing.Patient(network, data, basis=None, radius=1.0)
        >>> patient.judged_accuracy
        1.0
    """

    network: Network
    data: Data
    basis: Tensor | None
    radius: float
    frozen: bool = False

    @property
    def layered(self) -> Layered:
        return as_layered(self.network, "the remedy")

    @property
    def log_loss(self) -> float:
        """Mean logistic loss, in the range that training again can reach."""
        return min(EASIEST, max(HARDEST, self.own_log_loss))

    @property
    def own_log_loss(self) -> float:
        """The same as it is."""
        return Logistic().total(self.network.margins(self.data.X, self.data.y).double())

    @cached_property
    def judged_accuracy(self) -> float:
        """On the examples that judge a remedy: the held-out ones, where there are any."""
        return judged_accuracy(self.network, self.data)

    @property
    def costs_in_span(self) -> Costs:
        """Of the network as it is trained on: in coordinates of the data's span, where it can be."""
        cost = Costs.of(self.network)
        if self.basis is None or not has_normal_form(self.network) or not self.network.free_first_layer:
            return cost
        saved = 2.0 * cost.widths[0] * (cost.columns - self.basis.shape[1])
        return replace(cost, operations=cost.operations - saved)

    @property
    def gradient_work(self) -> float:
        """What one gradient on all examples costs, in the unit of a budget."""
        return gradient_work(self.network, self.data)


class Remedy(ABC):
    """Its fields are its parameters; `apply` is its verb and says why where it cannot be applied.

    Examples:
        >>> import brittle as bt
        >>> bt.auditing.PARTS["remove-off-subspace"].explains
        "first-layer weights off the data's subspace are set to zero; on the data nothing changes"
    """

    name: ClassVar[str]  # what the command line calls it
    explains: ClassVar[str]  # what it does
    trains: ClassVar[bool] = True  # the network that it is given, or another start of it

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def apply(self, patient: Patient, rng: Generator, budget: Budget) -> Network:
        """The treated network, within the work that the budget has left; InputError where the remedy does not apply.

        What was done is charged to the budget. A remedy that this work does not finish says so instead.
        """


@dataclass(frozen=True)
class RemoveOffSubspace(Remedy):
    """Projects the first layer on the data's subspace."""

    name: ClassVar = "remove-off-subspace"
    explains: ClassVar = "first-layer weights off the data's subspace are set to zero; on the data nothing changes"
    trains: ClassVar = False

    def apply(self, patient: Patient, rng: Generator, budget: Budget) -> Network:
        basis = required(patient.basis, "the span of the data is not known at this budget")
        rank, columns = basis.shape[1], patient.data.columns
        require(rank < columns, f"the data span all {columns} dimensions: there is nothing off their subspace")
        return without_off_subspace_weights(patient.layered, basis)


@dataclass(frozen=True)
class SmallerInitialisation(Remedy):
    """Trains again from a first layer divided by `factor` (melamed2023 6.1)."""

    name: ClassVar = "smaller-initialisation"
    explains: ClassVar = "trained again to the same loss from a first layer that starts smaller"

    factor: float = field(default=8.0, metadata=option("Divides the first layer.", check=require_positive))

    def apply(self, patient: Patient, rng: Generator, budget: Budget) -> Network:
        start = divided_start(patient.layered, self.factor, rng)
        until = (LogLoss(patient.log_loss), *budget.stops(EVALUATIONS * patient.gradient_work))
        training = Flow(until=until, loss=Logistic()).train(start, patient.data)
        budget.charge(training.gradient_evaluations * patient.gradient_work)
        return _fitted(patient, training)


@dataclass(frozen=True)
class WeightDecay(Remedy):
    """Goes on with gradient descent and an L2 penalty on the first layer until what is not trained has shrunk."""

    name: ClassVar = "weight-decay"
    explains: ClassVar = "trained on with an L2 penalty on the first layer"

    decay: float = field(default=0.005, metadata=option("λ of (λ/2)‖W‖².", check=require_positive))
    shrink: float = field(default=10.0, metadata=option("Until untrained weights are this many times shorter."))
    rate: float = field(default=0.5, metadata=option("Step size, less where that diverges.", check=require_positive))

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.shrink > 1, f"shrink is {self.shrink!r}; it must be greater than 1")

    def apply(self, patient: Patient, rng: Generator, budget: Budget) -> Network:
        rate = self.rate
        while rate > SMALLEST_RATE:
            steps = int(math.log(self.shrink) / (rate * self.decay)) + 1
            affordable, deadline = budget.stops(patient.gradient_work)
            require(steps <= affordable.value, f"it takes {steps} steps, and the budget affords {affordable.value}")
            descent = Descent(until=(Steps(steps), deadline), rate=rate, decay=self.decay)
            training = descent.train(patient.layered, patient.data)
            budget.charge(training.gradient_evaluations * patient.gradient_work)
            if training.status is not Ending.DIVERGED and training.accuracy > 0.5:
                return training.network
            rate /= 4
        raise InputError("gradient descent with weight decay diverges at every rate that was tried")


@dataclass(frozen=True)
class RobustConstruction(Remedy):
    """The network that the papers write down for nearly orthogonal or clustered data."""

    name: ClassVar = "robust-construction"
    explains: ClassVar = "one neuron for each example or cluster, with a proved radius"
    trains: ClassVar = False

    def apply(self, patient: Patient, rng: Generator, budget: Budget) -> Network:
        data = patient.data
        data.require_binary()
        work = 2.0 * len(data) ** 2 * data.columns / RATE
        require(work <= budget.left, f"{len(data)} neurons take {work:.2g} s of work: more than the budget affords")
        budget.charge(work)
        truth = data.truth
        if truth.means is not None and truth.mean_labels is not None:
            return clustered(truth.means, truth.mean_labels, truth.noise or 0.0).network
        return nearly_orthogonal(data.X, data.y).network


@dataclass(frozen=True)
class TrainedOn(Remedy):
    """Goes on with training in a regime that guards the accuracy.

    Its schedule has `steps`, or as many as the budget affords. What it makes is at most as much less accurate, on
    training and held-out examples, as a remedy may be.
    """

    steps: int = field(default=800, metadata=option("Steps, fewer where the budget is short.", check=require_count))

    @property
    @abstractmethod
    def regime(self) -> Guarded:
        """How it is trained."""

    @property
    @abstractmethod
    def gradients(self) -> int:
        """How many gradients a step takes."""

    def apply(self, patient: Patient, rng: Generator, budget: Budget) -> Network:
        data, regime = patient.data, self.regime
        preparing = self._preparing(data)
        work = self.gradients * patient.costs_in_span.gradient(min(regime.batch, len(data)))
        steps = min(self.steps, int(max(0.0, budget.left - preparing) / work))
        enough = steps >= min(self.steps, FEWEST_STEPS)
        require(enough, f"the budget affords {steps} of its {self.steps} steps: too few to say anything")
        budget.charge(preparing)
        until = (Steps(steps), Deadline(budget.deadline))
        training = replace(regime, until=until, lost_accuracy=TOLERANCE).train(patient.network, data, rng)
        budget.charge(training.steps * work)
        require(training.status is not Ending.STALLED, f"refused: {training.message}")
        return training.network

    @staticmethod
    def _preparing(data: Data) -> float:
        """All distances, and the span."""
        return 2.0 * len(data) ** 2 * data.columns / RATE + spectrum(len(data), data.columns)


@dataclass(frozen=True)
class AdversarialTraining(TrainedOn):
    """Goes on with training on the examples that PGD finds within what the data allow each (`training.LimitedPGD`)."""

    name: ClassVar = "adversarial-training"
    explains: ClassVar = "trained on with adversarial examples, each within what the data allow it"

    target: float = field(
        default=0.7, metadata=option("Reach of PGD, in radii that the data allow.", check=require_positive)
    )
    inner_steps: int = field(default=10, metadata=option("Steps of PGD.", check=require_count))

    @property
    def regime(self) -> Guarded:
        return LimitedPGD(target=self.target, inner_steps=self.inner_steps)

    @property
    def gradients(self) -> int:
        return self.inner_steps + 2


@dataclass(frozen=True)
class Trades(AdversarialTraining):
    """The same with the loss of TRADES: near an example the probabilities are to be those at it."""

    name: ClassVar = "trades"
    explains: ClassVar = "trained on to answer near every example as at it, within what the data allow"

    weight: float = field(default=6.0, metadata=option("Of the divergence, beside the loss.", check=require_positive))

    @property
    def regime(self) -> Guarded:
        return LimitedPGD(target=self.target, inner_steps=self.inner_steps, trades=self.weight)

    @property
    def gradients(self) -> int:
        return 2 * self.inner_steps + 3


@dataclass(frozen=True)
class RadiusTraining(TrainedOn):
    """Goes on with training for the distance of every example from the boundary (`training.MaximumRadius`)."""

    name: ClassVar = "maximum-radius"
    explains: ClassVar = "trained on for the distance of every example from the boundary, up to what the data allow"

    target: float = field(default=1.0, metadata=option("The radius asked for, in radii that the data allow."))

    @property
    def regime(self) -> Guarded:
        return MaximumRadius(target=self.target)

    @property
    def gradients(self) -> int:
        return BOUNDARY_GRADIENTS


PARTS = by_name(
    (
        RemoveOffSubspace,
        SmallerInitialisation,
        WeightDecay,
        RobustConstruction,
        AdversarialTraining,
        Trades,
        RadiusTraining,
    )
)


def judged_accuracy(network: Network, data: Data) -> float:
    """On the held-out examples, or on those trained on where there are no others."""
    judges = data if data.X_test is None else data.test
    return network.accuracy(judges.X, judges.y)


def divided_start(network: Layered, factor: float, rng: Generator) -> Layered:
    """The known initialisation, or a fresh one of the same shape, with its first layer's weights divided."""
    start = (network.start or redrawn(network, rng)).to(torch.float64)
    first, *others = start.layers
    weight, bias = first.parameters
    return start.with_layers([first.with_parameters(weight / factor, bias), *others])


def _fitted(patient: Patient, training: Training[Network]) -> Network:
    """What reached the loss of the network that it is compared with."""
    wanted = max(patient.own_log_loss, patient.log_loss)
    short = f"after {training.steps} steps its log-loss is {training.log_loss:.3g}, not yet {wanted:.3g}"
    require(training.log_loss <= wanted + SAME_LOSS * abs(wanted), f"{short}: give the audit a larger budget")
    return training.network
