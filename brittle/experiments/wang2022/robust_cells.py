"""Projected adversarial training in a ball round the start, and the robust accuracy that it leaves.

A change in this file makes every finished cell of the family stale: claims and drawings live in `robust_figures`.
"""

import math

import torch
from torch import Generator

from brittle.attacks import PGD
from brittle.experiments.base import Experiment, Params, Point
from brittle.experiments.images import missing, zeros_and_ones
from brittle.networks import Lazy
from brittle.training import Adversarial, Steps


class RobustCells(Experiment):
    """Cells `data`, `side` (d = side²), `width`, `budget` ‖δ‖, `radius` V, `examples` to train on (0 for all),
    `rate` and `batch`, `points` of the test set that are attacked, `inner` PGD steps, `epochs` at most, `patience` in
    epochs, `project` (epoch or step), `seed`.
    """

    family = "wang2022/robust"

    def measure(self, params: Params) -> Point:
        if (nothing := missing(params)) is not None:
            return nothing
        rng = Generator().manual_seed(params["seed"])
        data = zeros_and_ones(params["data"], params["side"], True)
        test = data.test
        some = data.take(torch.randperm(len(data), generator=rng)[: params["examples"] or len(data)])
        start = Lazy().draw(data.dim, params["width"], rng).to(torch.float32)
        training = Adversarial(
            until=Steps(params["epochs"]),
            budget=params["budget"],
            radius=params["radius"] * math.sqrt(params["width"]),  # the paper's V is absolute
            inner_steps=params["inner"],
            project=params["project"],
            rate=params["rate"],
            batch=params["batch"],
            patience=params["patience"],
        ).train(start, some, rng)
        chosen = test.take(torch.randperm(len(test), generator=rng)[: params["points"]])
        attacked = PGD(budget=params["budget"], steps=params["inner"]).run(training.network, chosen)
        return {
            "dim": data.dim,
            "taken": training.steps,
            "still_rising": training.status == "reached" and training.stopped_by != "robust_accuracy",
            "accuracy": training.network.accuracy(test.X, test.y),
            "robust_training_accuracy": training.robust_accuracy,
            "robust_accuracy": 1 - attacked.rate,
        }

    def cost(self, params: Params) -> float:
        """Fifteen epochs, and an attack in float64."""
        if params.get("missing"):
            return params["would_take"]
        once = 4.5e-11 * params["width"] * params["side"] ** 2 * params["inner"]
        return (0.02 if params["data"] == "digits" else 0.5) + once * (
            15 * (params["examples"] or 12_665) + 3 * params["points"]
        )
