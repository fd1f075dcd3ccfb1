"""Remedies that go on with training, within what the data allow and with a guard on the accuracy."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from torch import Generator

from brittle.auditing.budget import Budget, Deadline
from brittle.auditing.costs import RATE, spectrum
from brittle.auditing.remedy import TOLERANCE, Made, Patient, Remedy, Signs
from brittle.common.ending import Ending
from brittle.common.errors import require, require_between, require_count, require_positive
from brittle.common.parts import option
from brittle.networks import Network
from brittle.settings import Data
from brittle.training import LimitedPGD, MaximumRadius, Steps
from brittle.training.guarded import Guarded

FEWEST_STEPS = 100  # of training on that say something about it
BOUNDARY_GRADIENTS = 6  # of a step for the radius: to the boundary, there, in the parameters, and now and then more


@dataclass(frozen=True)
class TrainedOn(Remedy):
    """Goes on with training in a regime that guards the accuracy.

    Its schedule has `steps`, or as many as the budget affords. What it makes is at most as much less accurate, on
    training and held-out examples, as a remedy may be.
    """

    reaches: ClassVar[tuple[float, float]]  # the share of what the data allow that it was seen to end at

    steps: int = field(default=800, metadata=option("Steps, fewer where the budget is short.", check=require_count))
    kappa: float | None = field(
        default=None, metadata=option("The point of the curve to go back to, by its κ.", check=require_positive)
    )
    lost_accuracy: float = field(
        default=TOLERANCE, metadata=option("Accuracy it may cost.", check=partial(require_between, low=0, high=1))
    )

    @property
    @abstractmethod
    def regime(self) -> Guarded:
        """How it is trained."""

    @property
    @abstractmethod
    def gradients(self) -> int:
        """How many gradients a step takes."""

    @property
    def tolerance(self) -> float:
        return self.lost_accuracy

    def expected(self, signs: Signs) -> tuple[float, float] | None:
        """It ends at about the same share of what the data allow, wherever it begins, and never below the start."""
        if not signs.share or self.kappa is not None:
            return None
        low, high = (max(1.0, end / signs.share) for end in self.reaches)
        return low, high

    def apply(self, patient: Patient, rng: Generator, budget: Budget) -> Network:
        return self.made(patient, rng, budget).network

    def made(self, patient: Patient, rng: Generator, budget: Budget) -> Made:
        data, regime = patient.data, self.regime
        preparing = self._preparing(data)
        work = self.gradients * patient.costs_in_span.gradient(min(regime.batch, len(data)))
        steps = min(self.steps, int(max(0.0, budget.left - preparing) / work))
        enough = steps >= min(self.steps, FEWEST_STEPS)
        require(enough, f"the budget affords {steps} of its {self.steps} steps: too few to say anything")
        budget.charge(preparing)
        until = (Steps(steps), Deadline(budget.deadline))
        guarded = replace(regime, until=until, kappa=self.kappa, lost_accuracy=self.lost_accuracy)
        training = guarded.train(patient.network, data, rng)
        budget.charge(training.steps * work)
        require(training.status is not Ending.STALLED, f"refused: {training.message}")
        return Made(training.network, training.way, patient.projectable)

    @staticmethod
    def _preparing(data: Data) -> float:
        """All distances, and the span."""
        return 2.0 * len(data) ** 2 * data.columns / RATE + spectrum(len(data), data.columns)


@dataclass(frozen=True)
class AdversarialTraining(TrainedOn):
    """Goes on with training on the examples that PGD finds within what the data allow each (`training.LimitedPGD`)."""

    name: ClassVar = "adversarial-training"
    explains: ClassVar = "trained on with adversarial examples, each within what the data allow it"
    reaches: ClassVar = (0.5, 0.95)

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
    reaches: ClassVar = (0.5, 0.95)

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
    reaches: ClassVar = (0.6, 0.95)

    target: float = field(default=1.0, metadata=option("The radius asked for, in radii that the data allow."))

    @property
    def regime(self) -> Guarded:
        return MaximumRadius(target=self.target)

    @property
    def gradients(self) -> int:
        return BOUNDARY_GRADIENTS
