"""What the papers suggest against the weakness. Each remedy makes another network; the audit measures both."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Generator

from brittle.auditing.budget import Unaffordable, WorkBudget, afford
from brittle.auditing.causes import without_off_subspace_weights
from brittle.auditing.cluster_labels import ClusterLabels
from brittle.auditing.costs import RATE
from brittle.auditing.remedy import Diagnostics, Remedy, RemedyContext
from brittle.auditing.trained_on import (
    EVALUATIONS,
    AdversarialTraining,
    LipschitzLayers,
    RadiusTraining,
    Trades,
    make_divided_start,
    require_fitted,
)
from brittle.common.ending import Status
from brittle.common.errors import InputError, require, require_positive
from brittle.common.parts import by_name, option
from brittle.networks import Network, clustered, nearly_orthogonal
from brittle.training import Flow, GradientDescent, Logistic, LogLoss, Steps

SMALLEST_RATE = 1e-6
NEARLY = 0.03  # how far a forecast that is exact but for the attacks may be off


@dataclass(frozen=True)
class RemoveOffSubspace(Remedy):
    """Projects the first layer on the data's subspace."""

    name: ClassVar = "remove-off-subspace"
    explains: ClassVar = "first-layer weights off the data's subspace are set to zero; on the data nothing changes"
    trains: ClassVar = False

    def expected(self, signs: Diagnostics) -> tuple[float, float] | None:
        """Of the projected network the radius is that of the network itself on the subspace."""
        on = signs.on_subspace
        return None if on is None else ((1 - NEARLY) * on, (1 + NEARLY) * on)

    def apply(self, patient: RemedyContext, rng: Generator, budget: WorkBudget) -> Network:
        basis = patient.basis
        if basis is None:
            raise Unaffordable("the span of the data is not known at this budget")
        rank, columns = basis.shape[1], patient.data.columns
        require(rank < columns, f"the data span all {columns} dimensions: there is nothing off their subspace")
        return without_off_subspace_weights(patient.layered, basis)


@dataclass(frozen=True)
class SmallerInitialisation(Remedy):
    """Trains again from a first layer divided by `factor` (melamed2023 6.1)."""

    name: ClassVar = "smaller-initialisation"
    explains: ClassVar = "trained again to the same loss from a first layer that starts smaller"

    factor: float = field(default=8.0, metadata=option("Divides the first layer.", check=require_positive))

    def apply(self, patient: RemedyContext, rng: Generator, budget: WorkBudget) -> Network:
        start = make_divided_start(patient.layered, self.factor, rng)
        affordable = budget.stops(EVALUATIONS * patient.gradient_work)  # or refused, before anything is computed
        training = Flow(until=(LogLoss(patient.log_loss), *affordable), loss=Logistic()).train(start, patient.data)
        budget.charge(training.gradient_evaluations * patient.gradient_work)
        return require_fitted(patient, training)


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

    def apply(self, patient: RemedyContext, rng: Generator, budget: WorkBudget) -> Network:
        rate = self.rate
        while rate > SMALLEST_RATE:
            steps = int(math.log(self.shrink) / (rate * self.decay)) + 1
            affordable, deadline = budget.stops(patient.gradient_work)
            afford(steps <= affordable.value, f"it takes {steps} steps, and the budget affords {affordable.value}")
            descent = GradientDescent(until=(Steps(steps), deadline), rate=rate, decay=self.decay)
            training = descent.train(patient.layered, patient.data)
            budget.charge(training.gradient_evaluations * patient.gradient_work)
            if training.status is not Status.DIVERGED and training.accuracy > 0.5:
                return training.network
            rate /= 4
        raise InputError("gradient descent with weight decay diverges at every rate that was tried")


@dataclass(frozen=True)
class RobustConstruction(Remedy):
    """The network that the papers write down for nearly orthogonal or clustered data."""

    name: ClassVar = "robust-construction"
    explains: ClassVar = "one neuron for each example or cluster, with a proved radius"
    trains: ClassVar = False
    reshapes: ClassVar = True

    def apply(self, patient: RemedyContext, rng: Generator, budget: WorkBudget) -> Network:
        data = patient.data
        data.require_binary()
        work = 2.0 * len(data) ** 2 * data.columns / RATE
        afford(work <= budget.left, f"{len(data)} neurons take {work:.2g} s of work: more than the budget affords")
        budget.charge(work)
        truth = data.truth
        if truth.means is not None and truth.mean_labels is not None:
            return clustered(truth.means, truth.mean_labels, truth.noise or 0.0).network
        return nearly_orthogonal(data.X, data.y).network


PARTS = by_name(
    (
        RemoveOffSubspace,
        SmallerInitialisation,
        WeightDecay,
        RobustConstruction,
        ClusterLabels,
        AdversarialTraining,
        Trades,
        RadiusTraining,
        LipschitzLayers,
    )
)
