"""The two losses of the papers, in the log domain: a log-loss of -10^6 is as good a number as any other."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional

from brittle.common.parts import by_name, check_fields, option


@dataclass(frozen=True)
class LossFunction(ABC):
    """ℓ(q) of the margins q (n,); the total is their sum, or their mean.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> loss = bt.training.Exponential()
        >>> isinstance(loss, bt.training.LossFunction)
        True
        >>> round(loss.total(torch.tensor([1e9]).double()))  # in logarithms nothing underflows
        -1000000000
    """

    name: ClassVar[str]  # what the command line calls it

    reduction: Literal["mean", "sum"] = field(default="mean", metadata=option("Of the examples' losses."))

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def log_values(self, q: Tensor) -> Tensor:
        """ln ℓ(q_i)."""

    @abstractmethod
    def log_slopes(self, q: Tensor) -> Tensor:
        """ln(-ℓ'(q_i))."""

    def total(self, q: Tensor) -> float:
        """The log of the whole loss."""
        return self.reduced(float(torch.logsumexp(self.log_values(q), 0)), len(q))

    def reduced(self, log_sum: float, examples: int) -> float:
        return log_sum - math.log(examples) if self.reduction == "mean" else log_sum

    def weights(self, q: Tensor) -> Tensor:
        """-ℓ'(q_i)/Σ_k ℓ(q_k): the weights of ∇q_i in -∇ ln L, the same for sum and mean."""
        return torch.exp(self.log_slopes(q) - torch.logsumexp(self.log_values(q), 0))


@dataclass(frozen=True)
class Exponential(LossFunction):
    """ℓ(q) = e^{-q}.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> round(bt.training.Exponential().total(torch.tensor([2.0, 2.0]).double()), 6)  # ln of the mean of e^-2
        -2.0
    """

    name: ClassVar = "exponential"

    def log_values(self, q: Tensor) -> Tensor:
        return -q

    def log_slopes(self, q: Tensor) -> Tensor:
        return -q


@dataclass(frozen=True)
class Logistic(LossFunction):
    """ℓ(q) = ln(1 + e^{-q}).

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> round(bt.training.Logistic("sum").total(torch.zeros(4).double()), 6)  # ln(4 ln 2)
        1.019781
    """

    name: ClassVar = "logistic"

    def log_values(self, q: Tensor) -> Tensor:
        # Beyond 18, ln ln(1 + e^{-q}) = -q - e^{-q}/2 to rounding, where ln(1 + e^{-q}) would soon underflow.
        # Below -40, ln(1 + e^{-q}) is -q to rounding; PyTorch would say so from -20 on.
        near = q.clamp(max=18.0)
        return torch.where(q > 18, -q - torch.exp(-q) / 2, torch.log(functional.softplus(-near, threshold=40.0)))

    def log_slopes(self, q: Tensor) -> Tensor:
        return functional.logsigmoid(-q)


LOSSES = by_name((Exponential, Logistic))
LOSS = option("The loss of a margin.", parts=LOSSES)
