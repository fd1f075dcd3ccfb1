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
from brittle.training import Adversarial, Descent, Flow, Logistic, LogLoss, MaximumRadius, Steps, Training
from brittle.training.adversarial import perturbed

EASIEST, HARDEST = -3.0, -70.0  # log-losses that a network is trained to again
SMALLEST_RATE = 1e-6
SAME_LOSS = 0.02  # relative, in log-losses: networks are compared at the same loss
EVALUATIONS = 3  # of a gradient in one step of gradient flow
STEPS_OF_A_ROUND = 10
TOLERANCE = 0.01  # of accuracy, that a remedy may cost
FEWEST_ROUNDS = 10  # of adversarial training that say something about it
FEWEST_STEPS = 100  # of training for the radius, likewise
GRADIENTS_OF_A_STEP = 6  # of training for the radius: to the boundary, there, in the parameters, and now and then more


@dataclass(frozen=True, eq=False)
class Patient:
    """A network with its data, the basis (columns, r) of the data's subspace if known, and its median radius."""

    network: Network
    data: Data
    basis: Tensor | None
    radius: float

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
    def accuracy(self) -> float:
        """On the training examples."""
        return self.network.accuracy(self.data.X, self.data.y)

    @cached_property
    def judged_accuracy(self) -> float:
        """On the examples that judge a remedy: the held-out ones, where there are any."""
        return judged_accuracy(self.network, self.data)

    def kept_by(self, network: Network) -> bool:
        """Whether another network is about as accurate on the training examples."""
        return network.accuracy(self.data.X, self.data.y) >= self.accuracy - TOLERANCE

    @property
    def gradient_work(self) -> float:
        """What one gradient on all examples costs, in the unit of a budget."""
        return gradient_work(self.network, self.data)


class Remedy(ABC):
    """Its fields are its parameters; `apply` is its verb and says why where it cannot be applied."""

    name: ClassVar[str]  # what the command line calls it
    explains: ClassVar[str]  # what it does

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
class AdversarialTraining(Remedy):
    """Goes on with training on the examples that PGD finds within `reach` times the present median radius.

    Ends with the last round that keeps the accuracy on the training examples, if there is one.
    """

    name: ClassVar = "adversarial-training"
    explains: ClassVar = "trained on with adversarial examples"

    reach: float = field(
        default=1.5, metadata=option("Length of the perturbations, in median radii.", check=require_positive)
    )
    inner_steps: int = field(default=20, metadata=option("Steps of PGD.", check=require_count))
    rounds: int = field(default=200, metadata=option("Of attack and training, at most.", check=require_count))

    def apply(self, patient: Patient, rng: Generator, budget: Budget) -> Network:
        require(0 < patient.radius < float("inf"), "the present radius is not a positive number: nothing to train for")
        size = self.reach * patient.radius
        network, rate, kept = patient.network, 0.1, None
        inner = Adversarial(budget=size, inner_steps=self.inner_steps)
        work = (self.inner_steps + STEPS_OF_A_ROUND + 1) * patient.gradient_work
        rounds = min(self.rounds, budget.steps(work))
        enough = rounds >= min(FEWEST_ROUNDS, self.rounds)
        require(enough, f"the budget affords {rounds} rounds of attack and training: too few to say anything")
        for _ in range(rounds):
            attacked = perturbed(network, patient.data, inner).to(torch.float64)
            data = replace(patient.data, X=attacked)
            training = Descent(until=Steps(STEPS_OF_A_ROUND), rate=rate).train(network, data)
            budget.charge(work)
            if training.status is Ending.DIVERGED:
                rate /= 4
            else:
                network = training.network
                kept = network if patient.kept_by(network) else kept
            if budget.late or rate < SMALLEST_RATE:
                break
        return network if kept is None else kept


@dataclass(frozen=True)
class RadiusTraining(Remedy):
    """Goes on with training for the distance of every example from the boundary (`training.MaximumRadius`).

    Its schedule has `steps`, or as many as the budget affords. What it makes is at most as much less accurate, on
    training and held-out examples, as a remedy may be.
    """

    name: ClassVar = "maximum-radius"
    explains: ClassVar = "trained on for the distance of every example from the boundary, up to what the data allow"

    steps: int = field(default=800, metadata=option("Steps, fewer where the budget is short.", check=require_count))
    target: float = field(default=1.0, metadata=option("The radius asked for, in radii that the data allow."))

    def apply(self, patient: Patient, rng: Generator, budget: Budget) -> Network:
        data = patient.data
        regime = MaximumRadius(target=self.target, lost_accuracy=TOLERANCE)
        budget.charge(self._preparing(data))
        work = GRADIENTS_OF_A_STEP * Costs.of(patient.layered).gradient(min(regime.batch, len(data)))
        steps = min(self.steps, budget.steps(work))
        enough = steps >= min(self.steps, FEWEST_STEPS)
        require(enough, f"the budget affords {steps} of its {self.steps} steps: too few to say anything")
        until = (Steps(steps), Deadline(budget.deadline))
        training = replace(regime, until=until).train(patient.layered, data, rng)
        budget.charge(training.steps * work)
        require(training.status is not Ending.STALLED, f"refused: {training.message}")
        return training.network

    @staticmethod
    def _preparing(data: Data) -> float:
        """All distances, and the span."""
        return 2.0 * len(data) ** 2 * data.columns / RATE + spectrum(len(data), data.columns)


PARTS = by_name(
    (RemoveOffSubspace, SmallerInitialisation, WeightDecay, RobustConstruction, AdversarialTraining, RadiusTraining)
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
