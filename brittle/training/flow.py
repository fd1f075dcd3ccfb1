"""Gradient flow, walked in the time τ in which dθ/dτ = -∇L/L: the same path, and no underflow at any loss."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Generator, Tensor

from brittle.common.ending import Status
from brittle.common.errors import require, require_positive
from brittle.common.parts import option
from brittle.data.base import Data
from brittle.networks.base import Network
from brittle.training.base import LAYERS, PRECISION, TRAINED_BIASES, Trainer
from brittle.training.losses import LOSS, Exponential, LossFunction
from brittle.training.objective import DataSpan, Evaluation, Objective, objective_for
from brittle.training.run import Run, RunEnded


@dataclass(frozen=True)
class Tableau:
    """Stages a, weights b of the step and e = b - b̂ of its error; the last stage of `e` is the next step's first."""

    order: int
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    e: tuple[float, ...]


HEUN = Tableau(
    order=2,
    a=((1.0,),),
    b=(1 / 2, 1 / 2),
    e=(-1 / 2, 1 / 2, 0.0),
)

BOGACKI_SHAMPINE = Tableau(
    order=3,
    a=((1 / 2,), (0.0, 3 / 4)),
    b=(2 / 9, 1 / 3, 4 / 9),
    e=(2 / 9 - 7 / 24, 1 / 3 - 1 / 4, 4 / 9 - 1 / 3, -1 / 8),
)

DORMAND_PRINCE = Tableau(
    order=5,
    a=(
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    b=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    e=(71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40),
)

PAIRS = {"heun": HEUN, "bogacki-shampine": BOGACKI_SHAMPINE, "dormand-prince": DORMAND_PRINCE}


TYPES = {"float64": torch.float64, "float32": torch.float32}
SMALLEST_SHARE = 1e-12  # of ‖θ‖: a shorter step is no step
STUCK_SHARE = 1e-9  # of ‖θ‖ per unit of τ: on separated data the speed is at least 2γ‖θ‖
STUCK_STEPS = 200  # without a lower loss
LANDING = 2e-4  # of the log-loss: how far below its target a run may end


@dataclass(frozen=True)
class Flow(Trainer):
    """Gradient flow by an embedded Runge-Kutta pair; the error of a step is at most `tolerance` of ‖θ‖.

    Only the error across the path counts: one along it changes when a point is passed, not where the path goes.
    `span` trains the first layer on the coordinates in the span of the data: "auto" where n < d.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> data = bt.data.Orthogonal(6).sample(6)
        >>> start = bt.networks.TorchLinearInit().draw(6, width=10, rng=torch.Generator().manual_seed(0))
        >>> trained = bt.training.Flow(until=bt.training.LogLoss(-30)).train(start, data)  # a loss below 1e-13
        >>> trained.status.value, trained.accuracy
        ('reached', 1.0)
    """

    name: ClassVar = "flow"

    loss: LossFunction = field(default_factory=Exponential, metadata=LOSS)
    pair: Literal["heun", "bogacki-shampine", "dormand-prince"] = field(
        default="bogacki-shampine", metadata=option("The Runge-Kutta pair.")
    )
    tolerance: float = field(
        default=3e-4, metadata=option("Error of a step, as a share of the weights' norm.", check=require_positive)
    )
    span: bool | Literal["auto"] = field(
        default="auto", metadata=option("Train in the span of the data; by default where n < d.")
    )
    precision: Literal["float64", "float32"] = field(default="float64", metadata=PRECISION)
    layers: Literal["all", "first"] = field(default="all", metadata=LAYERS)
    biases: bool | None = field(default=None, metadata=TRAINED_BIASES)

    def begin(self, network: Network, data: Data, rng: Generator | None) -> Run:
        network = network.to(TYPES[self.precision])
        fits = self.precision == "float64" or network.dtype == torch.float32  # as precise as the network allows
        require(fits, f"precision is {self.precision!r} and the network has {network.dtype}, which it keeps")
        span = DataSpan.of(data.X) if self._in_span(network, data) else None
        return FlowRun(objective_for(network, data, self.layers, self.biases, span), self)

    def _in_span(self, network: Network, data: Data) -> bool:
        """Only where every weight of the first layer moves freely do the weights off the span stay as they are."""
        free = network.free_first_layer
        require(free or self.span is not True, "span is True, and the first layer of this network is not dense")
        return bool(self.span) and free and (self.span is True or len(data) < data.columns)


class FlowRun(Run):
    """θ, the direction there, and the length h of the next step in τ."""

    def __init__(self, objective: Objective, flow: Flow) -> None:
        super().__init__(objective)
        self.flow, self.pair = flow, PAIRS[flow.pair]
        self.h, self.lowest, self.since = 0.0, math.inf, 0
        targets = [stop.target_log_loss for stop in flow.stops if stop.target_log_loss is not None]
        self.target = max(targets, default=-math.inf)
        self.slack = LANDING * max(abs(self.target), 1.0)

    def scalars(self) -> list[float]:
        return [self.h, self.lowest, float(self.since)]

    def restore(self, scalars: list[float]) -> None:
        self.h, self.lowest, self.since = scalars[0], scalars[1], int(scalars[2])

    def measure(self) -> None:
        """Also the first stage of the next step; a resumed run has counted it already."""
        self.evaluations += self.steps == 0
        self._arrive(self.theta, self.objective.evaluate(self.theta, self.flow.loss))
        if self.h == 0:
            self.h = 0.01 * self._length() / max(float(self.direction.norm()), 1e-300)

    def _arrive(self, theta: Tensor, at: Evaluation) -> None:
        self.theta, self.direction, self.margins = theta, at.direction, at.margins
        self.log_loss, self.log_loss_sum = at.log_loss, at.log_loss_sum

    def _length(self) -> float:
        return float(self.objective.squared_norm(self.theta) ** 0.5)

    def step(self) -> None:
        speed, length = float(self.direction.norm()), self._length()
        if speed < STUCK_SHARE * length or self.since >= STUCK_STEPS:
            raise RunEnded(
                Status.STALLED, f"the loss falls no further than log-loss {self.log_loss:.6g}: no stop is reached"
            )
        while True:
            if not self.h * speed > SMALLEST_SHARE * length:
                raise RunEnded(Status.STALLED, f"no step is short enough at log-loss {self.log_loss:.6g}")
            theta, at, error = self._try(self.h)
            size = error / (self.flow.tolerance * max(length, self.objective.squared_norm(theta) ** 0.5))
            good = math.isfinite(size) and math.isfinite(at.log_loss)
            tried, growth = self.h, 0.9 * max(size, 1e-12) ** (-1 / self.pair.order) if good else 0.1
            self.h = tried * min(5.0, max(0.2, growth))
            if good and size <= 1:
                break
        if at.log_loss < self.target - self.slack and self.target < self.log_loss:
            theta, at = self._land(tried, at)
        self._arrive(theta, at)
        self._count(at.log_loss)

    def _count(self, log_loss: float) -> None:
        self.steps += 1
        lower = log_loss < self.lowest - 1e-12 * max(1.0, abs(log_loss))
        self.lowest, self.since = (log_loss, 0) if lower else (self.lowest, self.since + 1)

    def _try(self, h: float) -> tuple[Tensor, Evaluation, float]:
        """One step of length h: its end, what was found there, and its error."""
        slopes = [self.direction]
        for row in self.pair.a:
            slopes.append(self._evaluate(_combine(self.theta, h, row, slopes)).direction)
        theta = _combine(self.theta, h, self.pair.b, slopes)
        at = self._evaluate(theta)
        error = _combine(torch.zeros_like(theta), h, self.pair.e, [*slopes, at.direction])
        along = float(error @ at.direction) / max(float(at.direction @ at.direction), 1e-300)
        return theta, at, float(error.sub_(at.direction, alpha=along).norm())

    def _evaluate(self, theta: Tensor) -> Evaluation:
        self.evaluations += 1
        return self.objective.evaluate(theta, self.flow.loss)

    def _land(self, h: float, beyond: Evaluation) -> tuple[Tensor, Evaluation]:
        """A shorter step that ends just below the target: d ln L/dτ = -‖∇ ln L‖² is known at both ends."""
        low, high = 0.0, h
        ends = [(0.0, self.log_loss, self.direction), (h, beyond.log_loss, beyond.direction)]
        goal = self.target - self.slack / 2
        for _ in range(8):
            h = _crossing(ends, goal, low, high)
            theta, at, _ = self._try(h)
            if self.target - self.slack <= at.log_loss < self.target:
                break
            low, high = (h, high) if at.log_loss >= self.target else (low, h)
            ends[0 if at.log_loss >= self.target else 1] = (h, at.log_loss, at.direction)
        return theta, at


def _crossing(ends: list[tuple[float, float, Tensor]], goal: float, low: float, high: float) -> float:
    """Where the cubic through both ends, with their slopes -‖∇ ln L‖², meets the goal."""
    (t0, f0, g0), (t1, f1, g1) = ends
    s0, s1, width = -float(g0.square().sum()), -float(g1.square().sum()), t1 - t0
    for _ in range(60):
        middle = (low + high) / 2
        u = (middle - t0) / width
        value = (
            f0 * (1 + 2 * u) * (1 - u) ** 2
            + width * s0 * u * (1 - u) ** 2
            + f1 * u * u * (3 - 2 * u)
            + width * s1 * u * u * (u - 1)
        )
        low, high = (middle, high) if value > goal else (low, middle)
    return (low + high) / 2


def _combine(base: Tensor, h: float, weights: tuple[float, ...], slopes: list[Tensor]) -> Tensor:
    result = base.clone()
    for weight, slope in zip(weights, slopes, strict=True):
        if weight:
            result.add_(slope, alpha=h * weight)
    return result
