"""Theorem 2.1 as frei2023 words it: with the mean of the losses, and log to base 2."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Generator

from brittle.networks import PyTorch
from brittle.settings import Clusters
from brittle.theorems.comparison import Comparison, at_most
from brittle.theorems.instance import Instance
from brittle.theorems.powers import exponential
from brittle.theorems.vardi2022.convergence import FlowFindsKKT
from brittle.training import Flow, LogLoss


@dataclass(frozen=True)
class FlowOnClustersFindsKKT(FlowFindsKKT, id="frei2023/2.1"):
    """As vardi2022/2.1, supposing that the mean of the losses is below 1/n: the same, as log is to base 2 here.

    Default: `examples` of two clusters of noise `noise` in R^`dim`.
    """

    claim: ClassVar = "once L < 1/n flow tends to a KKT direction: γ̃ never falls, θ/‖θ‖ comes to rest, ε and δ vanish"
    note: ClassVar = "The paper writes log for base 2, so that 1/n is right for the logistic loss as well."

    noise: float = 0.5

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        q, n = instance.two_layer.margins(instance.data.X, instance.data.y), len(instance.data)
        unit = math.log(2) if self.logistic else 1.0
        mean = exponential(self.loss.total(q)) / unit / n
        yield at_most("mean of the losses", mean, math.nextafter(1 / n, -math.inf))

    def default(self, rng: Generator) -> Instance:
        """A network that flow has just brought to a mean below 1/n."""
        data = Clusters(self.dim, noise=self.noise).sample(self.examples, rng)
        start = PyTorch().draw(self.dim, self.width, rng)
        return Instance(data, Flow(until=LogLoss(-1.0), loss=self.loss).train(start, data).network)
