"""Remedies that go on with training, within what the data allow and with a guard on the accuracy."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import torch
from torch import Generator

from brittle.auditing.budget import Deadline, WorkBudget, afford
from brittle.auditing.costs import RATE, Costs, largest, spectrum
from brittle.auditing.remedy import TOLERANCE, Diagnostics, Remedy, RemedyContext, RemedyOutput
from brittle.common.ending import Status
from brittle.common.errors import require, require_between, require_count, require_positive
from brittle.common.parts import option
from brittle.networks import Layered, Network, redrawn
from brittle.training import LimitedPGD, LipschitzMargin, MaximumRadius, Steps, TrainingResult
from brittle.training.guarded import GuardedTrainer

SAME_LOSS = 0.02  # relative, in log-losses: networks are compared at the same loss
EVALUATIONS = 3  # of a gradient in one step of gradient flow


def make_divided_start(network: Layered, factor: float, rng: Generator) -> Layered:
    """The known initialisation, or a fresh one of the same shape, with its first layer's weights divided."""
    start = (network.start or redrawn(network, rng)).to(torch.float64)
    first, *others = start.layers
    weight, bias = first.parameters
    return start.with_layers([first.with_parameters(weight / factor, bias), *others])


def require_fitted(patient: RemedyContext, training: TrainingResult[Network]) -> Network:
    """What reached the loss of the network that it is compared with."""
    wanted = max(patient.own_log_loss, patient.log_loss)
    short = f"after {training.steps} steps its log-loss is {training.log_loss:.3g}, not yet {wanted:.3g}"
    afford(training.log_loss <= wanted + SAME_LOSS * abs(wanted), f"{short}: give the audit a larger budget")
    return training.network


FEWEST_STEPS = 100  # of training on that say something about it
LIPSCHITZ_GRADIENTS = 2  # of a step for the margin over the layers' norms, the norms included
BOUNDARY_GRADIENTS = 6  # of a step for the radius: to the boundary, there, in the parameters, and now and then more
FIRST_GRADIENTS = 12  # of every example, before the first of these steps
PREPARING = 0.25  # of the work of a training, for what comes before its steps: where it is more, on fewer examples
JUDGEMENTS = 12  # of all examples, that guard the accuracy
FEWEST_EXAMPLES = 100  # to train on, of more
SMALLEST_BATCH = 8
UNSEEN = 0.5  # of the accuracy that may be lost, where not all examples guard it


@dataclass(frozen=True)
class TrainedOn(Remedy):
    """Goes on with training in a regime that guards the accuracy.

    Its schedule has `steps`, or as many as the budget affords, in smaller batches where that makes too few. Where
    distances of all pairs of examples are too dear, it is given some. What it makes is at most as much less accurate,
    on training and held-out examples, as a remedy may be.
    """

    first_gradients: ClassVar = 0  # of every example, before the first step
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
    def regime(self) -> GuardedTrainer:
        """How it is trained."""

    @property
    @abstractmethod
    def gradients(self) -> int:
        """How many gradients a step takes."""

    @property
    def tolerance(self) -> float:
        return self.lost_accuracy

    def expected(self, signs: Diagnostics) -> tuple[float, float] | None:
        """It ends at about the same share of what the data allow, wherever it begins, and never below the start."""
        if not signs.share or self.kappa is not None:
            return None
        low, high = (max(1.0, end / signs.share) for end in self.reaches)
        return low, high

    def examples(self, patient: RemedyContext, budget: WorkBudget) -> int:
        count, work = len(patient.data), PREPARING * budget.left
        if self._preparing(patient, count) <= work:
            return count
        few = largest(count, partial(self._preparing, replace(patient, part=True)), work)
        enough = few >= min(count, FEWEST_EXAMPLES)
        afford(enough, f"the budget affords training on {few} of {count} examples: too few to say anything")
        return few

    def apply(self, patient: RemedyContext, rng: Generator, budget: WorkBudget) -> Network:
        return self.made(patient, rng, budget).network

    def made(self, patient: RemedyContext, rng: Generator, budget: WorkBudget) -> RemedyOutput:
        preparing = self._preparing(patient, len(patient.data))
        steps, batch = self._schedule(patient, budget.left - preparing)
        enough = steps >= min(self.steps, FEWEST_STEPS)
        afford(enough, f"the budget affords {steps} of its {self.steps} steps: too few to say anything")
        budget.charge(preparing)
        until, span = (Steps(steps), Deadline(budget.until)), not patient.part
        lost = self.lost_accuracy * (UNSEEN if patient.part else 1)
        kept = replace(self.regime, kappa=self.kappa, lost_accuracy=lost)
        training = replace(kept, until=until, batch=batch, span=span).train(patient.network, patient.data, rng)
        budget.charge(training.steps * self._step(patient, batch))
        require(training.status is not Status.STALLED, f"refused: {training.message}")
        return RemedyOutput(training.network, training.way, patient.projectable)

    def _schedule(self, patient: RemedyContext, work: float) -> tuple[int, int]:
        """How many steps of how many examples: those of the regime, or smaller ones where they are too few."""
        batch = min(self.regime.batch, len(patient.data))
        while True:
            steps = min(self.steps, int(max(0.0, work) / self._step(patient, batch)))
            if steps >= min(self.steps, FEWEST_STEPS) or batch <= SMALLEST_BATCH:
                return steps, batch
            batch //= 2

    def _step(self, patient: RemedyContext, batch: int) -> float:
        return self.gradients * patient.costs_in_span.gradient(batch)

    def _preparing(self, patient: RemedyContext, count: int) -> float:
        """All distances between so many examples, their span, what guards the accuracy and what begins the steps."""
        cost, data = Costs.of(patient.network), patient.data
        held = 0 if data.y_test is None else min(count, len(data.y_test)) if patient.part else len(data.y_test)
        distances = 2.0 * count**2 * data.columns / RATE
        span = spectrum(count, data.columns) if patient.in_span else 0.0
        judged = JUDGEMENTS * cost.judging(count + held)
        return distances + span + judged + self.first_gradients * cost.gradient(count)


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
    def regime(self) -> GuardedTrainer:
        return LimitedPGD(target=self.target, inner_steps=self.inner_steps)

    @property
    def gradients(self) -> int:
        return self.inner_steps + 2


@dataclass(frozen=True)
class Trades(AdversarialTraining):
    """The same with the loss of TRADES: near an example the probabilities are to be those at it."""

    name: ClassVar = "trades"
    explains: ClassVar = "trained on to answer near every example as at it, within what the data allow"
    reaches: ClassVar = (0.4, 0.9)

    weight: float = field(default=6.0, metadata=option("Of the divergence, beside the loss.", check=require_positive))

    @property
    def regime(self) -> GuardedTrainer:
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
    first_gradients: ClassVar = FIRST_GRADIENTS

    target: float = field(default=1.0, metadata=option("The radius asked for, in radii that the data allow."))

    @property
    def regime(self) -> GuardedTrainer:
        return MaximumRadius(target=self.target)

    @property
    def gradients(self) -> int:
        return BOUNDARY_GRADIENTS


@dataclass(frozen=True)
class LipschitzLayers(TrainedOn):
    """Goes on with training with layers of norm 1, for the radius that this proves (`training.LipschitzMargin`)."""

    name: ClassVar = "lipschitz-layers"
    explains: ClassVar = "trained on for margins that layers of norm 1 turn into proved radii"
    reaches: ClassVar = (0.4, 0.95)

    target: float = field(default=1.0, metadata=option("The radius asked for, in radii that the data allow."))

    @property
    def regime(self) -> GuardedTrainer:
        return LipschitzMargin(target=self.target)

    @property
    def gradients(self) -> int:
        return LIPSCHITZ_GRADIENTS
