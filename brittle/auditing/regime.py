"""Which regime of training made this network: near its initialisation, at a KKT point, or in between."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch

from brittle.common.errors import require, require_value
from brittle.common.result import Result
from brittle.kkt import KKTResidual, gap, residual
from brittle.kkt.any_width.gap import at_least
from brittle.networks import Layered, TwoLayer, get_layered
from brittle.theorems import Instance

KKT_RESIDUAL = 1e-3  # a network that is closer is at a KKT point
FEW = 200  # examples for which the share of the largest margin takes well under a second


@dataclass(frozen=True, eq=False)
class AuditedInstance(Instance):
    """An instance that measures the distance from a KKT point once, and only where the plan has room for it."""

    kkt_measured: bool = True  # whether there is room

    @cached_property
    def own_conditions(self) -> KKTResidual:
        """Among networks with the parameters of this one: biases that are all zero are none."""
        return residual(self.two_layer, self.data, biases=False) if self._without_biases else self.conditions

    @cached_property
    def conditions(self) -> KKTResidual:
        """Among networks with biases, which the theorems are about.

        A network without biases that is far from the KKT points without them is at least as far from these.
        """
        require(self.kkt_measured, "the distance from a KKT point is too dear to measure at this budget")
        if self._without_biases and self.two_layer.homogeneous and self.smallest_margin > 0:
            distance = self.own_conditions.stationarity
            require(distance <= KKT_RESIDUAL, f"the network is no KKT point: {distance:.3g} away in its own parameters")
        return residual(self.two_layer, self.data)

    @cached_property
    def share_of_largest_margin(self) -> float | None:
        """Proved: the network has at least this share of the largest margin; None where it would take too long.

        Networks of every width compete, with biases or without as this one.
        """
        if len(self.data) > FEW:
            return None
        return gap(self.two_layer, self.data, biases=not self._without_biases).share

    @property
    def _without_biases(self) -> bool:
        return not bool((self.two_layer.b != 0).any())


LAZY_RADIUS = 40.0  # the largest C0 that wang2022 trains with
LAZY_MOVE = 0.1  # of the first layer's size, at most, and of the ReLUs on the data whose sign changed
RICH_MOVE = 1.0  # from here on little is left of the start
AT_ONCE = 4096  # examples


@dataclass(frozen=True)
class TrainingRegime(Result):
    """`name` is kkt, untrained, lazy, between, rich or unknown; a measure that does not apply is None."""

    name: str
    sentence: str
    accuracy: float
    smallest_margin: float
    median_margin: float
    share_on_margin: float
    largest_move: float | None  # max_s ‖w_s - w_s(0)‖
    lazy_constant: float | None  # C0: the same times √width
    relative_move: float | None  # ‖W - W(0)‖ / ‖W(0)‖
    signs_changed: (
        float | None
    )  # share of the first layer's ReLUs on the examples that are on now and were off, or back
    kkt_residual: float | None
    normalised_margin: float | None
    share_of_largest_margin: float | None = None  # of what any network, however wide, could have: at least this


def training_regime(instance: AuditedInstance) -> TrainingRegime:
    """What made the network of this instance."""
    data, network = instance.data, require_value(instance.network, "a regime is that of a network: give one")
    margins = network.margins(data.X, data.y).double()
    smallest = float(margins.min())
    layered = get_layered(network)
    width = None if layered is None else layered.shape[1]
    move, relative = _moves(layered)
    constant = None if move is None or width is None else move * width**0.5
    kkt, gamma = _kkt(instance, smallest)
    signs = _signs_changed(layered, instance)
    name, sentence = _name(WeightChanges(constant, relative, signs), kkt)
    share = None if kkt is None else instance.share_of_largest_margin
    return TrainingRegime(
        name=name,
        sentence=sentence if share is None else f"{sentence} {of_largest(share)}",
        accuracy=float((margins > 0).double().mean()),
        smallest_margin=smallest,
        median_margin=float(margins.median()),
        share_on_margin=float((margins <= 1.1 * smallest).double().mean()) if smallest > 0 else 0.0,
        largest_move=move,
        lazy_constant=constant,
        relative_move=relative,
        signs_changed=signs,
        kkt_residual=kkt,
        normalised_margin=gamma,
        share_of_largest_margin=share,
    )


def of_largest(share: float) -> str:
    """A share of the largest margin as a sentence."""
    return f"It has {at_least(share)} of the largest margin that any network could have."


def _moves(network: Layered | None) -> tuple[float | None, float | None]:
    if network is None or network.start is None:
        return None, None
    W, W0 = network.layers[0].matrix, network.start.layers[0].matrix
    change = (W - W0).double()
    start = float(W0.double().norm())
    return float(change.norm(dim=1).max()), float(change.norm()) / start if start > 0 else math.inf


def _signs_changed(network: Layered | None, instance: AuditedInstance) -> float | None:
    if network is None or network.start is None:
        return None
    changed = 0
    for X in torch.split(instance.data.X, AT_ONCE):
        now, then = (each.layers[0].apply(X.to(network.dtype)) > 0 for each in (network, network.start))
        changed += int((now != then).sum())
    return changed / (len(instance.data) * network.shape[1])


def _kkt(instance: AuditedInstance, smallest: float) -> tuple[float | None, float | None]:
    """Distance from a KKT point, for networks and sizes that it is defined and affordable for.

    Biases that are all zero are no parameters here, where the theorems are about networks with biases.
    """
    network, data = instance.network, instance.data
    if not isinstance(network, TwoLayer) or not network.homogeneous or smallest <= 0 or not data.binary:
        return None, None
    gamma = smallest / float(network.squared_norm)
    if not instance.kkt_measured:
        return None, gamma
    return instance.own_conditions.stationarity, gamma


class WeightChanges(NamedTuple):
    """How far the first layer is from its start: C0, ‖W - W(0)‖/‖W(0)‖, and the share of ReLU signs that changed."""

    constant: float | None
    relative: float | None
    signs: float | None


def _name(moves: WeightChanges, kkt: float | None) -> tuple[str, str]:
    if kkt is not None and kkt <= KKT_RESIDUAL:
        return "kkt", f"The weights are a KKT point of the max-margin problem (residual {kkt:.1e})."
    far = "" if kkt is None else f" It is far from a KKT point (residual {kkt:.2g})."
    constant, relative, signs = moves
    if constant is None or relative is None or signs is None:
        return "unknown", (
            "How far training moved the weights is not known: give the network before training (--init FILE, or start= "
            f"in Python) to tell lazy training from rich.{far}"
        )
    if relative == 0:
        return "untrained", "The first layer is where it started."
    moved = (
        f"The first layer moved by {relative:.1%} of its initial size, no neuron farther than {constant:.3g}/√width, "
        f"and {signs:.1%} of its ReLUs on the data changed sign"
    )
    if relative <= LAZY_MOVE and signs <= LAZY_MOVE and constant <= LAZY_RADIUS:
        return "lazy", f"{moved}: the lazy regime (at most {LAZY_MOVE:.0%} each)."
    if relative < RICH_MOVE:
        return "between", f"{moved}: between the lazy regime (at most {LAZY_MOVE:.0%} each) and the rich one.{far}"
    return "rich", f"{moved}: it learned features.{far}"
