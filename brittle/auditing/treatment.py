"""Every remedy is tried and measured on the same examples as the network itself."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from brittle.attacks import FREE
from brittle.auditing.budget import Budget
from brittle.auditing.remedies import Patient, Remedy
from brittle.auditing.vulnerability import median, smallest
from brittle.common.errors import InputError
from brittle.common.result import Result
from brittle.networks import Network
from brittle.settings import Data

HELPS = 1.05  # a smaller gain is not worth naming
TRAINING_SHARE = 0.6  # of a remedy's time; the rest measures its radius


@dataclass(frozen=True, eq=False)
class Treatment(Result):
    """Before and after the remedy `name`; `applied` is False with a `reason` where it could not be tried.

    `explains` says what it does. `accuracy_before` and `accuracy_after` are on the training examples,
    `test_accuracy_before` and `test_accuracy_after` on those held out, None without; `radius_before` and
    `radius_after` are median radii. `network` is what it made, None where not applied; it took `seconds`.
    """

    name: str
    explains: str
    applied: bool
    reason: str
    accuracy_before: float
    accuracy_after: float
    test_accuracy_before: float | None
    test_accuracy_after: float | None
    radius_before: float
    radius_after: float
    predictions_changed: int  # on the training examples
    seconds: float
    network: Network | None

    @property
    def factor(self) -> float:
        return self.radius_after / self.radius_before if self.radius_before > 0 else float("nan")

    def content(self) -> dict[str, Any]:
        """Everything but the weights, which belong in a network file, and the factor."""
        content = {name: value for name, value in super().content().items() if name != "network"}
        return {**content, "factor": self.factor}


def treat(remedy: Remedy, patient: Patient, audited: Data, norms: Tensor, rng: Generator, budget: Budget) -> Treatment:
    """`norms` are the radii of the `audited` examples; before and after are medians over those that time allows."""
    data, network = patient.data, patient.network
    before = network.accuracy(data.X, data.y)
    test_before = _test_accuracy(network, data)
    try:
        treated = remedy.apply(patient, rng, budget.share(TRAINING_SHARE))
    except InputError as error:
        nothing = (before, float("nan"), test_before, None, patient.radius, float("nan"), 0)
        return Treatment(remedy.name, remedy.explains, False, str(error), *nothing, budget.used, None)
    radii, _ = smallest(treated, audited, FREE, rng, budget)
    changed = int((treated.predict(data.X) != network.predict(data.X)).sum())
    after = (treated.accuracy(data.X, data.y), test_before, _test_accuracy(treated, data))
    measured = (before, *after, median(norms[radii.rows]), radii.median, changed)
    return Treatment(remedy.name, remedy.explains, True, "", *measured, budget.used, treated)


def _test_accuracy(network: Network, data: Data) -> float | None:
    if data.X_test is None or data.y_test is None:
        return None
    return network.accuracy(data.X_test, data.y_test)


def best(treatments: tuple[Treatment, ...], loss: float = 0.01) -> Treatment | None:
    """The one that raises the radius most among those that cost at most `loss` of accuracy."""

    def cost(treatment: Treatment) -> float:
        if treatment.test_accuracy_before is not None and treatment.test_accuracy_after is not None:
            return treatment.test_accuracy_before - treatment.test_accuracy_after
        return treatment.accuracy_before - treatment.accuracy_after

    helpful = [each for each in treatments if each.applied and each.factor >= HELPS and cost(each) <= loss]
    return max(helpful, key=lambda each: each.factor, default=None)


def seeded(rng: Generator) -> Generator:
    """A generator of its own for each remedy, so that leaving one out changes no other."""
    return torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=rng)))
