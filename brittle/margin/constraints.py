"""The constraints of a network of any depth, own logit - every other ≥ 1, and their gradients in the weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from brittle.networks import Layered
from brittle.settings import Data


class Pairs(NamedTuple):
    """Examples against rivals, the margin being weights · logits.

    rows (N,): the example; weights (N, logits); rivals (N,): the other class, -1 where there is one logit.
    """

    rows: Tensor
    weights: Tensor
    rivals: Tensor

    def take(self, chosen: Tensor) -> "Pairs":
        return Pairs(*(each[chosen] for each in self))


def pairs_of(network: Layered, data: Data) -> Pairs:
    """Every example against every other class; with one logit, y N(x)."""
    n, classes = len(data), network.classes
    if classes == 1:
        return Pairs(torch.arange(n), data.y.to(torch.float64)[:, None], torch.full((n,), -1))
    rows = torch.arange(n).repeat_interleave(classes)
    rivals = torch.arange(classes).repeat(n)
    other = rivals != data.y[rows]
    rows, rivals = rows[other], rivals[other]
    one = torch.eye(classes, dtype=torch.float64)
    return Pairs(rows, one[data.y[rows]] - one[rivals], rivals)


class Columns(NamedTuple):
    """Gradients that a multiplier may scale, as what arrives at every layer.

    rows (N,): the example of every column; deltas: δ_l (N, outputs of layer l), the part in A_l being δ_l h_{l-1}ᵀ.
    """

    rows: Tensor
    deltas: tuple[Tensor, ...]

    def followed_by(self, other: "Columns") -> "Columns":
        deltas = tuple(torch.cat(both) for both in zip(self.deltas, other.deltas, strict=True))
        return Columns(torch.cat([self.rows, other.rows]), deltas)


@dataclass(frozen=True, eq=False)
class Backward:
    """Gradients of margins by the chain rule with slopes of our own: slopes[l] (N, outputs of hidden layer l)."""

    network: Layered

    def columns(self, pairs: Pairs, slopes: Sequence[Tensor]) -> Columns:
        """The gradient of every pair's margin."""
        return Columns(pairs.rows, self._back(pairs.weights, self.network.depth - 1, slopes))

    def through(self, pairs: Pairs, slopes: Sequence[Tensor], layer: int, kinks: Tensor) -> Columns:
        """What slope 1 at every kink (pair, neuron) of a hidden layer adds to its pair's gradient."""
        which, neurons = kinks.T
        slopes, layers = [each[which] for each in slopes], self.network.layers
        above = self._back(pairs.weights[which], self.network.depth - 1, slopes)[layer + 1]
        arriving, place = layers[layer + 1].transpose(above), torch.arange(len(which))
        only = torch.zeros_like(arriving)
        only[place, neurons] = arriving[place, neurons]
        nothing = [torch.zeros(len(which), each.outputs, dtype=only.dtype) for each in layers[layer + 1 :]]
        return Columns(pairs.rows[which], (*self._back(only, layer, slopes), *nothing))

    def _back(self, delta: Tensor, top: int, slopes: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """δ of the layers up to `top`, whose own is given."""
        deltas = [delta]
        for layer in range(top - 1, -1, -1):
            deltas.append(self.network.layers[layer + 1].transpose(deltas[-1]) * slopes[layer])
        return tuple(reversed(deltas))
