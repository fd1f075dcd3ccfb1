"""The message of the paper on one instance: Theorems 3.1, 4.1 and 4.2 together, with a perturbation shorter than √d."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Generator

from brittle.networks import Network
from brittle.theorems.comparison import Comparison, Promise, Witness, at_most, promise_at_most
from brittle.theorems.frei2023.averages import make_averaged_instance
from brittle.theorems.frei2023.groups import ClusterGroups, count_needed_examples, fresh, robust_network
from brittle.theorems.frei2023.statements import Generalises, KKTClaim, NotRobust, RobustClusterNetworkExists
from brittle.theorems.helpers import clopper_pearson
from brittle.theorems.instance import Instance

SHORT = "‖z‖/√d"
ROBUST = "smallest margin of the robust network"


@dataclass(frozen=True)
class Message(KKTClaim, id="frei2023/message"):
    """Every hypothesis and every promise of Theorems 3.1, 4.1 and 4.2, where Lemma D.9's bound on ‖z‖ is below √d.

    The noise is σ√d long, and a mean √d; a step along z that flips every fresh example is measured beside them.

    Default: `clusters` with random means of the sphere in R^`dim`, noise `noise`, n = k ln²d examples, and the KKT
    point whose neurons are sums of the averages of the clusters.
    """

    claim: ClassVar = (
        "one KKT network generalises, a robust one of radius ≥ √d/4 exists, and one z with ‖z‖ < √d flips every example"
    )
    note: ClassVar = (
        "‖z‖ < √d needs k ≥ 326 (c = 1/2), and with it n ≥ k ln²d of some 10^5. At this d the margins differ by less "
        "than 1e-6 where the neurons are sums of averages; Assumption 2.2 and Lemma D.9 admit smaller d, from 2.2e12 "
        "on, where another KKT point must be solved for. See docs/errata.md."
    )

    dim: int = 10**17
    clusters: int = 400
    noise: float = 1.0

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        yield from super().hypotheses(instance)
        numbers = ClusterGroups(instance.data).constants
        yield at_most("bound on ‖z‖ of Lemma D.9, over √d", numbers.longest / math.sqrt(numbers.dim), 1)

    def probability(self, instance: Instance) -> float:
        """Over the training set and all fresh examples that are measured."""
        return self._fragile.probability(instance) + self._robust.probability(instance) - 1

    def bound(self, instance: Instance) -> list[Promise]:
        margin, radius = self._robust.bound(instance)
        return [
            *self._general.bound(instance),
            replace(margin, measure=ROBUST),
            radius,
            *self._fragile.bound(instance),
            promise_at_most(SHORT, 1, certain=True),
        ]

    def witness(self, instance: Instance) -> Witness:
        general, fragile = self._general.witness(instance), self._fragile.witness(instance)
        robust = dict(self._robust.witness(instance).measures)
        robust[ROBUST] = robust.pop("smallest margin")
        unseen, groups = fresh(instance), ClusterGroups(instance.data)
        counted = {
            f"{name} at most (99 %)": clopper_pearson(round(measures[name] * len(unseen)), len(unseen))[1]
            for name, measures in (
                ("test error, counted", general.measures),
                ("share that does not flip, counted", fragile.measures),
            )
        }
        noise = {"length of the noise, σ√d": groups.noise * math.sqrt(groups.dim)}
        return replace(fragile, measures={**general.measures, **robust, **fragile.measures, **counted, **noise})

    def comparator(self, instance: Instance) -> Network | None:
        return robust_network(instance.data)

    def default(self, rng: Generator) -> Instance:
        examples = count_needed_examples(self.dim, self.clusters)
        return make_averaged_instance(self.dim, self.clusters, self.noise, examples, self.test, rng)

    @property
    def _general(self) -> Generalises:
        return Generalises(error=self.error, failure=self.failure)

    @property
    def _robust(self) -> RobustClusterNetworkExists:
        return RobustClusterNetworkExists()

    @property
    def _fragile(self) -> NotRobust:
        return NotRobust(error=self.error, failure=self.failure)
