"""One network on sphere data, trained to loss 1e-30 or solved for a KKT point, and the direction that flips its margin.

A change in this file makes every finished cell of the family stale: claims and drawings live in `claims` and `figures`.
"""

import math
import time
from dataclasses import dataclass
from typing import Literal

import torch

from brittle.attacks import Universal
from brittle.common.errors import InputError
from brittle.data import Data, Gaussian, Sphere
from brittle.experiments.cell import Cell, Point
from brittle.experiments.kkt import kkt_point_from
from brittle.kkt import Status
from brittle.networks import TorchLinearInit, TwoLayer
from brittle.training import Exponential, Flow, Logistic, Loss, LossFunction, SgdSchedule, Steps, TrainingResult

LOSS = 1e-30
SLACK = 0.1  # an example is on the margin if q ≤ 1.1 min q
TIMED_OPERATIONS = 4e9
LAWS: dict[str, type[Sphere | Gaussian]] = {"sphere": Sphere, "gaussian": Gaussian}
LOSSES: dict[str, type[LossFunction]] = {"exponential": Exponential, "logistic": Logistic}


@dataclass(frozen=True, kw_only=True)
class UniversalCell(Cell):
    """One network on n = d^α examples of the sphere, or Gaussian ones."""

    family = "vardi2022/universal"
    dim: int  # d
    alpha: float  # n = d^α
    width: int  # of the network
    seed: int  # of data and start
    at: Literal["flow", "kkt"]  # trained by flow to loss 1e-30, or a KKT point
    loss: Literal["exponential", "logistic"] = "exponential"  # of flow
    law: Literal["sphere", "gaussian"] = "sphere"  # uniform with ‖x‖ = √d, or N(0, I/d)

    @property
    def examples(self) -> int:
        """n, rounded."""
        size: float = self.dim**self.alpha
        return round(size)

    def measure(self) -> Point:
        rng = torch.Generator().manual_seed(self.seed)
        data = LAWS[self.law](self.dim).sample(self.examples, rng)
        start = TorchLinearInit().draw(self.dim, self.width, rng)
        return at_kkt_point(start, data) if self.at == "kkt" else after_flow(start, data, LOSSES[self.loss]())

    def cost(self) -> float:
        """Fitted to cells of d from 50 to 600: flow evaluates more gradients at large n/d and at small widths."""
        n, d, width = self.examples, self.dim, self.width
        evaluations = (120 + 500 * min(n / d, float((n / d) ** 0.7))) * (1 + 100 / width)
        flow = evaluations * (3e-4 + 17e-9 * n * width + n * min(n, d) * width / 1e10)
        return 0.1 + (0.1 * flow + 2.3e-6 * n**2.6 if self.at == "kkt" else flow)


def after_flow(start: TwoLayer, data: Data, loss: LossFunction) -> Point:
    """Flow to loss 1e-30, and what the paper's schedule would have taken for it."""
    training = Flow(until=Loss(LOSS), loss=loss).train(start, data)
    return {
        "reached": training.reached,
        "log_loss": training.log_loss,
        "gradient_evaluations": training.gradient_evaluations,
        "recipe_iterations": recipe_iterations(training),
        **_margin_set(training.network, data),
        "seconds": {"recipe": recipe_iterations(training) * _iteration_seconds(start, data)},
    }


def at_kkt_point(start: TwoLayer, data: Data) -> Point:
    """The KKT point to which the start leads; one that the solver refuses is not reached."""
    try:
        point = kkt_point_from(start, data)
    except InputError as error:
        return {"reached": False, "why": str(error)}
    return {
        "reached": point.status is Status.SOLVED,
        "stationarity": point.residual.stationarity,
        "neurons": point.neurons,
        "with_multiplier": float((point.multipliers > 0).double().mean()),
        **_margin_set(point.network, data),
    }


def _margin_set(network: TwoLayer, data: Data) -> Point:
    """The examples on the margin, and the smallest c at which x - y c z/‖z‖ flips them all at once."""
    found = Universal(margin_slack=SLACK).run(network, data)
    margins = network.margins(data.X, data.y)
    norm = math.sqrt(float(network.squared_norm))
    return {
        "examples": len(data),
        "normalised_margin": float(margins.min()) / norm**2,
        "on_margin": int(found.considered.sum()),
        "share_on_margin": float(found.considered.double().mean()),
        "off_margin": len(data) - int(found.considered.sum()),
        "size": found.smallest,
        "ratio": found.smallest / float(data.X.square().sum(1).mean().sqrt()),  # √d on the sphere
    }


def recipe_iterations(training: TrainingResult[TwoLayer], recipe: SgdSchedule | None = None) -> int:
    """How many iterations the paper's schedule needs to get there.

    In its own time t flow has d ln L/dt = -L‖∇ ln L‖², and ‖∇ ln L‖ ≈ 2 ln(1/L)/‖θ‖ by Euler's identity once the
    margins are nearly equal, so t ≈ ‖θ‖²/(4 L ln² L). The schedule has walked t = every·rate·(growth^(k/every) - 1)/
    (growth - 1) after k iterations.
    """
    recipe = SgdSchedule() if recipe is None else recipe
    log_time = 2 * math.log(training.norm) - math.log(4) - training.log_loss - 2 * math.log(-training.log_loss)
    walked = log_time + math.log((recipe.growth - 1) / (recipe.every * recipe.rate))
    return round(recipe.every * max(walked, 0.0) / math.log(recipe.growth))


def _iteration_seconds(start: TwoLayer, data: Data) -> float:
    """Of the recipe, on a few iterations of it."""
    batch = data.take(torch.arange(min(len(data), SgdSchedule().batch)))
    count = max(3, min(200, round(TIMED_OPERATIONS / (4 * batch.X.numel() * start.width))))
    begun = time.thread_time()
    SgdSchedule(until=Steps(count)).train(start, batch)
    return (time.thread_time() - begun) / (count + 1)
