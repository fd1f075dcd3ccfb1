"""Every remedy is tried and measured on the same examples as the network itself."""

import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from brittle.attacks import FREE
from brittle.auditing.budget import Budget
from brittle.auditing.costs import Costs
from brittle.auditing.proofs import Certified, Subject
from brittle.auditing.remedies import TOLERANCE, Patient, Remedy, judged_accuracy
from brittle.auditing.sample import median
from brittle.auditing.vulnerability import Radii, smallest
from brittle.common.errors import InputError, require
from brittle.common.result import Result
from brittle.networks import Network
from brittle.settings import Data
from brittle.training.base import FROZEN

HELPS = 1.05  # a smaller gain is not worth naming
TRAINING_SHARE = 0.5  # of a remedy's work; the rest measures what it made


@dataclass(frozen=True, eq=False)
class Treatment(Result):
    """Before and after the remedy `name`; where `applied` is False there is a `reason` why it is none here.

    `explains` says what it does. `accuracy_before` and `accuracy_after` are on the `judged_on` examples: held-out where
    there are any, otherwise training. A remedy that costs more than the `tolerance` of this accuracy is refused.
    `radius_before` and `radius_after` are median radii of the same examples by the same attack, `proved_before` and
    `proved_after` medians of what is proved of the same examples, None where nothing was proved. `network` is what it
    made, None where not applied; it took `seconds`.

    Examples:
        >>> import brittle as bt
        >>> data = bt.settings.Orthogonal(6).sample(6)
        >>> network = bt.networks.orthogonal_kkt(data.X, data.y).network
        >>> tried = bt.audit(network, data, budget=1, remedies=["robust-construction"]).remedies[0]
        >>> tried.applied, tried.factor > 1
        (True, True)
    """

    name: str
    explains: str
    applied: bool
    reason: str
    judged_on: str
    tolerance: float
    accuracy_before: float
    accuracy_after: float
    radius_before: float
    radius_after: float
    proved_before: float | None
    proved_after: float | None
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


class Case(NamedTuple):
    """A treatment, and perturbations that flip the audited examples of what it made; None where it made nothing."""

    treatment: Treatment
    flips: Tensor | None = None

    @property
    def subject(self) -> Subject | None:
        """What can be certified."""
        network, flips = self.treatment.network, self.flips
        return None if network is None or flips is None else Subject(network, flips)

    def proved(self, before: Certified | None, after: Certified | None) -> Treatment:
        """With the medians of what is proved of the same examples before and after."""
        if before is None or after is None or before.partial or after.partial:
            return self.treatment
        same = median(before.lower[: len(after.lower)]), median(after.lower[: len(before.lower)])
        return replace(self.treatment, proved_before=same[0], proved_after=same[1])

    @property
    def factor(self) -> float:
        """By which the attacked radius grew; 0 where the remedy was refused."""
        return self.treatment.factor if self.treatment.applied else 0.0


def treat(remedy: Remedy, patient: Patient, audited: Data, rng: Generator, budget: Budget) -> Case:
    """The remedy applied, and the `audited` examples attacked again."""
    begun, judge = time.perf_counter(), judged_on(patient.data)
    before, after = patient.judged_accuracy, float("nan")
    try:
        require(not (remedy.trains and patient.frozen), FROZEN)
        training = budget.grant(TRAINING_SHARE * budget.left)
        treated = remedy.apply(patient, rng, training).to(torch.float64)
        require(not budget.late, "the time was up before it was finished")
        after = judged_accuracy(treated, patient.data)
        fair = after >= before - TOLERANCE
        require(fair, f"refused: the {judge} accuracy falls from {before:.1%} to {after:.1%}")
        radii, flips = _measured(treated, audited, rng, budget)
    except InputError as error:
        nothing = (before, after, patient.radius, float("nan"), None, None, 0, time.perf_counter() - begun, None)
        return Case(Treatment(remedy.name, remedy.explains, False, str(error), judge, TOLERANCE, *nothing))
    changed = int((treated.predict(patient.data.X) != patient.network.predict(patient.data.X)).sum())
    treatment = Treatment(
        name=remedy.name,
        explains=remedy.explains,
        applied=True,
        reason="",
        judged_on=judge,
        tolerance=TOLERANCE,
        accuracy_before=before,
        accuracy_after=after,
        radius_before=patient.radius,
        radius_after=radii.median,
        proved_before=None,
        proved_after=None,
        predictions_changed=changed,
        seconds=time.perf_counter() - begun,
        network=treated,
    )
    return Case(treatment, flips)


def _measured(treated: Network, audited: Data, rng: Generator, budget: Budget) -> tuple[Radii, Tensor]:
    """On all audited examples or not at all."""
    work = Costs.of(treated).attack() * len(audited)
    require(work <= budget.left, f"attacking what it made takes {work:.2g} s of work: more than the budget affords")
    radii, flips = smallest(treated, audited, FREE, rng, budget)
    require(not radii.partial, "the time was up before it was measured")
    return radii, flips


def judged_on(data: Data) -> str:
    """Which examples judge the accuracy of a remedy."""
    return "training" if data.X_test is None else "held-out"


def best(treatments: tuple[Treatment, ...]) -> Treatment | None:
    """The one that raises the radius most; only those that keep the accuracy are applied."""
    helpful = [each for each in treatments if each.applied and each.factor >= HELPS]
    return max(helpful, key=lambda each: each.factor, default=None)


def seeded(rng: Generator) -> Generator:
    """A generator of its own for each remedy, so that leaving one out changes no other."""
    return torch.Generator().manual_seed(int(torch.randint(2**62, (), generator=rng)))
