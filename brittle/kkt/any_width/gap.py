"""How much of the largest margin over all widths a network has, from its own multipliers and one relaxation."""

import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brittle.common.kinds import check_kinds
from brittle.common.result import Result
from brittle.data import Data
from brittle.kkt.any_width.checker import check
from brittle.kkt.any_width.generation import roots
from brittle.kkt.any_width.largest import make_proof, require_in_range
from brittle.kkt.any_width.proof import Array, MarginProof
from brittle.kkt.any_width.side import without_negligible
from brittle.kkt.examples import DistinctExamples, Weights
from brittle.kkt.residual import homogeneous, require_classified, residual
from brittle.networks import TwoLayer

THRESHOLD = 1.0  # squared gain of the network's own best neuron
MOST = 1000  # examples that carry a multiplier


@dataclass(frozen=True, eq=False)
class MarginGap(Result):
    """What share of the largest margin a network has, at least.

    normalised_margin: its γ = min q/‖θ‖² is at least this
    upper: no network of any width has a larger one
    share: γ/upper
    seconds: from the call to the answer
    proof: what `check_margin` accepts

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> found = bt.kkt.gap(bt.networks.orthogonal_kkt(data.X, data.y).network, data)
        >>> 0 < found.share <= 1
        True
    """

    normalised_margin: float
    upper: float
    share: float
    seconds: float
    proof: MarginProof

    @property
    def sentence(self) -> str:
        """In words, rounded down."""
        return f"This network has {at_least(self.share)} of the largest margin that any network could have."

    def content(self) -> dict[str, object]:
        """Everything but the proof, which belongs in a file."""
        return {name: value for name, value in super().content().items() if name != "proof"}


def at_least(share: float) -> str:
    """A share in words, rounded down."""
    percent = math.floor(100 * share) if share < 0.99 else math.floor(1e4 * share) / 100
    return f"at least {percent:g} %"


@check_kinds
def gap(network: TwoLayer, data: Data, *, biases: bool = True) -> MarginGap:
    """How much of the largest margin over all widths a network that classifies the data has, at least.

    The multipliers are those that explain the network's weights best, as in `residual`; the closer it is to a KKT
    point, the more they prove. Without biases, only networks without them compete, and b must be zero.

    Examples:
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> robust = bt.networks.nearly_orthogonal(data.X, data.y).network  # robust, and no large margin
        >>> bt.kkt.gap(robust, data).share < 0.9
        True
    """
    require_in_range(data, biases)
    began = time.perf_counter()
    X, weights = homogeneous(network, data, biases)
    require_classified(weights.margins(X, data.y))
    lam = residual(network, data, biases=biases, margin_tolerance=math.inf).multipliers
    lam = lam if float(lam.max()) > 0 else torch.ones_like(lam)
    largest = torch.topk(lam, min(len(lam), MOST)).indices.sort().values  # λ = 0 elsewhere proves something too
    examples = _examples(X[largest], data.y[largest])
    carried = without_negligible(lam[largest].numpy())
    dual = roots(examples, carried / _gain(weights, examples, carried), THRESHOLD)
    proof = make_proof(dual, network.to(X.dtype), data, biases, examples.unit, largest.numpy())
    found = check(proof, data)
    assert found.accepted, found.reason
    share = found.normalised_margin / found.upper
    return MarginGap(found.normalised_margin, found.upper, share, time.perf_counter() - began, proof)


def _examples(X: Tensor, y: Tensor) -> DistinctExamples:
    """As they are: one that is there twice may carry two multipliers."""
    K = X @ X.T
    unit = float(K.diagonal().mean())
    return DistinctExamples(X, y, K / unit, unit)


def _gain(weights: Weights, examples: DistinctExamples, lam: Array) -> float:
    """What the best of the network's own neurons gains at these multipliers, in units of the examples."""
    sizes = weights.W.norm(dim=1).numpy() * examples.unit**0.5
    heights = np.maximum((examples.X @ weights.W.T).numpy(), 0) / np.maximum(sizes, 1e-300)
    gains = np.sign(weights.v.numpy()) * ((lam * examples.y.numpy()) @ heights)
    return float(gains.max(initial=0.0)) or float(lam.sum())
