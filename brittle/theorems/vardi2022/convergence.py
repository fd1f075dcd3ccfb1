"""Gradient flow converges in direction to a KKT point (Theorem 2.1, from Lyu and Li, Ji and Telgarsky).

Put L for the sum of the losses, q̃ for the margin that one example of loss L would have (-ln L for the exponential
loss), γ̃ = q̃/‖θ‖² and β = cos(θ, -∇L). As <θ, -∇L> = 2 Σ q_i |ℓ'(q_i)| ≥ 2 q̃ |ℓ'(q̃)|,

    d ln γ̃ ≥ 2 (β⁻² - 1) d ln‖θ‖.

The direction θ̂ = θ/‖θ‖ turns by |dθ̂| = √(β⁻² - 1) d ln‖θ‖, so that by Cauchy and Schwarz any two moments satisfy

    ‖θ̂_2 - θ̂_1‖² ≤ ½ ln(γ̃_2/γ̃_1) ln(‖θ_2‖/‖θ_1‖).

γ̃ is bounded, so the direction comes to rest while ln‖θ‖ grows: -∇L turns towards θ, which is stationarity.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Generator, Tensor

from brittle.data import Data, Sphere
from brittle.kkt import residual
from brittle.networks import TorchLinearInit, TwoLayer
from brittle.theorems.base import Theorem
from brittle.theorems.comparison import (
    Comparison,
    Promise,
    Witness,
    at_most,
    fit_scaling,
    promise_at_least,
    promise_at_most,
)
from brittle.theorems.helpers import exponential
from brittle.theorems.instance import Facts, Instance
from brittle.training import Exponential, Flow, Logistic, LogLoss, LossFunction

FALL = "largest relative fall of γ̃"
TURN = "largest ‖Δθ̂‖² over ½ Δln γ̃ Δln‖θ‖"
RATE = "rate r of ε ~ |ln L|^-r"
SPREAD = "δ at the end over δ at the first decade"
MOMENTS = 4  # of the path in every decade of the log-loss
NEAR_KINK = 1e-2  # flow slides along kinks, to either side of them: the slope is any of those nearby


@dataclass(frozen=True, eq=False)
class Trajectory(Facts):
    """`networks`: moments of a run in their order, at least four in each decade of the log-loss."""

    networks: tuple[TwoLayer, ...]


@dataclass(frozen=True)
class FlowFindsKKT(Theorem, id="vardi2022/2.1"):
    """The network is θ(t0); gradient flow is walked on from it to a log-loss of `until`, or its `Trajectory` is given.

    Between all moments γ̃ does not fall and the direction turns no further than the growth of γ̃ pays for. Convergence
    is a statement about t -> ∞; what is asked of the log-losses -10, -100, -1000, ... (of which there must be three) is
    that ε, the distance from a KKT point, falls as |ln L|^-`rate` or faster, and that δ falls. While no neuron opens or
    closes, what θ(t0) had of its own stays, and ε falls as 1/‖θ‖ ~ |ln L|^-½.

    Default: a network of width `width` on `examples` of the sphere in R^`dim`, with the exponential loss or, where
    `logistic`, the other one. ln γ̃ is known up to `fidelity`, which is the integrator's.
    """

    claim: ClassVar = "once L < 1 flow tends to a KKT direction: γ̃ never falls, θ/‖θ‖ comes to rest, ε and δ vanish"
    applies_to: ClassVar = "two-layer networks that classify every example, under gradient flow"
    note: ClassVar = (
        "The paper asks L < 1 for both losses. For the logistic loss with the natural logarithm one wrong example "
        "costs ln 2 = 0.693, so L < ln 2 is what gives q > 0 (with log base 2 the printed 1 is right)."
    )

    dim: int = 5
    examples: int = 4
    width: int = 10
    until: float = -1e3
    logistic: bool = False
    rate: float = 0.2
    fidelity: float = 1e-3

    def hypotheses(self, instance: Instance) -> Iterator[Comparison]:
        q = instance.two_layer.margins(instance.data.X, instance.data.y)
        total = exponential(self.loss.total(q))
        yield at_most("sum of the losses", total, math.nextafter(math.log(2) if self.logistic else 1.0, -math.inf))

    @property
    def loss(self) -> LossFunction:
        """Summed over the examples."""
        return Logistic("sum") if self.logistic else Exponential("sum")

    def bound(self, instance: Instance) -> list[Promise]:
        return [
            promise_at_most(FALL, 0, tolerance=self.fidelity),
            promise_at_most(TURN, 1),
            promise_at_least(RATE, self.rate),
            promise_at_most(SPREAD, 1),
        ]

    def witness(self, instance: Instance) -> Witness:
        given, data = instance.known(Trajectory), instance.data
        networks = self._walk(instance) if given is None else given.networks
        moments = [self._moment(network, data) for network in networks]
        decades = [(m.log_loss, *_distance(network, data)) for m, network in _decades(moments, networks)]
        measures = {
            FALL: max((1 - after.smoothed / before.smoothed for before, after in pairwise(moments)), default=math.nan),
            TURN: max((self._turn(before, after) for before, after in pairwise(moments)), default=math.nan),
            RATE: _rate(decades),
            SPREAD: decades[-1][2] / decades[0][2] if len(decades) > 1 and decades[0][2] > 0 else math.nan,
            "log-loss at the end": moments[-1].log_loss,
            "‖θ‖ at the end over the beginning": moments[-1].norm / moments[0].norm,
        }
        for log_loss, stationarity, complementarity in decades:
            measures[f"ε at log-loss {log_loss:.0f}"] = stationarity
            measures[f"δ at log-loss {log_loss:.0f}"] = complementarity
        return Witness(measures)

    def default(self, rng: Generator) -> Instance:
        """A network that flow has just brought to Σ e^{-q} < 1."""
        data = Sphere(self.dim).sample(self.examples, rng)
        start = TorchLinearInit().draw(self.dim, self.width, rng)
        training = Flow(until=LogLoss(-1.0), loss=self.loss).train(start, data)
        return Instance(data, training.network)

    def _walk(self, instance: Instance) -> tuple[TwoLayer, ...]:
        return walk(Flow(loss=self.loss), instance.two_layer, instance.data, self.until)

    def _moment(self, network: TwoLayer, data: Data) -> "TrajectoryPoint":
        theta = torch.cat([network.W.flatten(), network.b, network.v]).double()
        log_loss = self.loss.total(network.margins(data.X, data.y))
        margin = -log_loss - (_logistic_excess(log_loss) if self.logistic else 0.0)
        norm = float(theta.norm())
        return TrajectoryPoint(log_loss, norm, theta / norm, margin / norm**2)

    def _turn(self, before: "TrajectoryPoint", after: "TrajectoryPoint") -> float:
        """How far the direction turned, over how far it may."""
        turned = float((after.direction - before.direction).square().sum())
        grown = max(0.0, math.log(after.smoothed / before.smoothed)) + self.fidelity
        return turned / (0.5 * grown * abs(math.log(after.norm / before.norm)))


@dataclass(frozen=True, eq=False)
class TrajectoryPoint:
    """One network: `log_loss` is ln L, `norm` ‖θ‖, `direction` θ̂ and `smoothed` γ̃."""

    log_loss: float
    norm: float
    direction: Tensor
    smoothed: float


def walk(flow: Flow, network: TwoLayer, data: Data, until: float) -> tuple[TwoLayer, ...]:
    """The network and its moments on the way to a log-loss of `until`, `MOMENTS` in each decade."""
    networks = [network]
    steps = math.ceil(MOMENTS * math.log10(max(-until, 1.0)) - 1e-9)
    for step in range(1, steps + 1):
        target = max(until, -(10 ** (step / MOMENTS)))
        training = replace(flow, until=LogLoss(target)).train(networks[-1], data)
        networks.append(training.network)
        if not training.reached:
            break
    return tuple(networks)


def _decades(moments: list[TrajectoryPoint], networks: tuple[TwoLayer, ...]) -> list[tuple[TrajectoryPoint, TwoLayer]]:
    """The first moments at log-losses -10, -100, ..."""
    found, target = [], -10.0
    for moment, network in zip(moments, networks, strict=True):
        if moment.log_loss <= target * (1 - 1e-9):
            found.append((moment, network))
            while moment.log_loss <= target * (1 - 1e-9):
                target *= 10
    return found


def _rate(decades: list[tuple[float, float, float]]) -> float:
    """NaN where there are fewer than three, too few for a rate."""
    if len(decades) < 3:
        return math.nan
    return -fit_scaling(
        "ε", "|ln L|", 0.0, [-log_loss for log_loss, _, _ in decades], [e for _, e, _ in decades]
    ).fitted


def _distance(network: TwoLayer, data: Data) -> tuple[float, float]:
    """ε and δ, the least over all multipliers."""
    measured = residual(network, data, margin_tolerance=math.inf, kink_tolerance=NEAR_KINK)
    return measured.stationarity, measured.complementarity


def _logistic_excess(log_loss: float) -> float:
    """-ln L - q̃ where ln(1 + e^-q̃) = L: ln((e^L - 1)/L)."""
    total = exponential(log_loss)
    return math.log(math.expm1(total) / total) if total > 0 else 0.0
