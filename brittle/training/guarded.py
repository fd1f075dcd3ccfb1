"""Training on for robustness with a guard on the accuracy: one schedule for every way to do it.

Two examples of different classes at distance d cannot both be farther than d/2 from a boundary between them, so ρ_i,
half the distance of x_i to the nearest example of another class, is what the data allow. A run asks for κρ_i with κ
growing from what the network has to a target, in the coordinates of its `TrainingForm`, by Adam in units of each
tensor. Of the networks met on the way the last that is accurate enough is where the step size begins to fall.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import torch
from torch import Generator, Tensor
from torch.func import functional_call

from brittle.common.ending import Status
from brittle.common.errors import InputError, require, require_between, require_positive, require_value
from brittle.common.parts import option
from brittle.common.time_limit import check_time
from brittle.data.base import Data
from brittle.geometry import nearest_rivals
from brittle.networks.base import Network
from brittle.training.base import BATCH, TRAINED_BIASES, Trainer
from brittle.training.descent import Batches
from brittle.training.losses import Logistic
from brittle.training.normal_form import TrainingForm, form_of
from brittle.training.objective import ModuleObjective, margins_of
from brittle.training.run import Run, RunEnded, Snapshot
from brittle.training.stops import UNTIL, RunStatus, Steps, Stop

LOWEST, HIGHEST = 0.5, 2.0  # ρ in medians
TOGETHER = 1e-6  # of the size of an example: closer ones are the same in single precision
SHOWN = 5  # pairs that a message names


def attainable(X: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """ρ of every example, within bounds so that no example counts for nothing or for all, and its nearest rival."""
    distances, rivals = nearest_rivals(X, y)
    require_apart(distances, rivals, float(X.square().sum(1).mean().sqrt()))
    middle = float(distances.median())
    return 0.5 * distances.clamp(LOWEST * middle, HIGHEST * middle), rivals


def require_apart(distances: Tensor, rivals: Tensor, size: float) -> None:
    """Raise where examples of a typical length `size` coincide with their nearest rivals."""
    same = (distances <= TOGETHER * size).nonzero()[:, 0].tolist()
    if same:
        pairs = sorted({tuple(sorted((row, int(rivals[row])))) for row in same})
        shown = ", ".join(f"{first} and {second}" for first, second in pairs[:SHOWN])
        more = f" and {len(pairs) - SHOWN} more pairs" if len(pairs) > SHOWN else ""
        raise InputError(f"rows {shown}{more} are the same example with two labels: keep one of each")


GROWING = 0.7  # of the steps: κ rises; in the rest the rate falls
RISEN = 0.9  # of the growing steps: κ is at its end
WARM_UP = 0.05  # of all steps
SNAPSHOTS = 8
FIRST_MOMENT, SECOND_MOMENT = 0.9, 0.99
TINY = 1e-12


@dataclass(frozen=True)
class GuardedTrainer(Trainer):
    """`until` has a number of steps, which the schedule is made for; another stop may end it before.

    Every parameter moves by `rate` times the size of its tensor at most. `target` is where κ ends. Layers whose biases
    are all zero keep none unless `biases` is True; False trains none. The network is the last one on the way whose
    accuracy, on training and on held-out examples, is at most `lost_accuracy` below that at the start; where there is
    none, it is the network as it was. With `kappa` those on the way that were asked for more do not count. A dense
    first layer is trained in coordinates of the examples' `span` and loses what it had off it, unless the examples are
    only some of those that the network is for.
    """

    until: Stop | tuple[Stop, ...] = field(default_factory=lambda: Steps(800), metadata=UNTIL)
    rate: float = field(default=0.05, metadata=option("Step size, in sizes of each tensor.", check=require_positive))
    target: float = field(
        default=1.0, metadata=option("κ at the end, in shares of ρ.", check=partial(require_between, low=0, high=2))
    )
    lost_accuracy: float = field(
        default=0.01, metadata=option("Accuracy that may be lost.", check=partial(require_between, low=0, high=1))
    )
    kappa: float | None = field(
        default=None, metadata=option("The κ to go back to, of those on the way.", check=require_positive)
    )
    batch: int = field(default=128, metadata=BATCH)
    biases: bool | None = field(default=None, metadata=TRAINED_BIASES)
    span: bool = field(
        default=True, metadata=option("Train in the examples' span, and drop the weights off it.", "--span/--no-span")
    )

    @property
    def length(self) -> int:
        """The number of steps that the schedule is made for."""
        steps = [stop.value for stop in self.stops if isinstance(stop, Steps)]
        require(len(steps) == 1, f"until is {self.until}; {self.name} needs one number of steps, such as steps=800")
        return steps[0]

    def begin(self, network: Network, data: Data, rng: Generator | None) -> Run:
        low = self.kappa is None or self.kappa <= self.target
        require(low, f"kappa is {self.kappa}; it must be at most the target, {self.target:g}, where κ ends")
        rng = require_value(rng, f"{self.name} draws batches at random: give it a torch.Generator")
        some = network.accuracy(data.X, data.y) > 0
        require(some, f"the network misclassifies all {len(data)} examples: train it first, or look at the labels")
        form = form_of(network, data, rng, self.span)
        return self.guarded(form, data, Batches(len(data), min(self.batch, len(data)), rng))

    @abstractmethod
    def guarded(self, form: TrainingForm, data: Data, batches: Batches) -> "GuardedRun":
        """The run at its start."""


class GuardedObjective(ModuleObjective):
    """θ of the form; networks are given back in the old coordinates."""

    def __init__(self, form: TrainingForm, data: Data, biases: bool | None = None) -> None:
        super().__init__(form.network, Data(form.X, data.y), biases=True)
        self.form, self.moving = form, self._moving(biases)

    def _moving(self, biases: bool | None) -> Tensor:
        """1 for every entry of θ that is trained: biases of a layer that has none stay zero, unless asked for."""
        parts = self.parameters(self.start).values()
        fixed = [each.ndim < 2 and (not biases if biases is not None else not each.any()) for each in parts]
        return torch.cat([torch.full((size,), float(not each)) for size, each in zip(self.sizes, fixed, strict=True)])

    def network(self, theta: Tensor) -> Network:
        return self.form.back(super().network(theta))

    def logits_at(self, theta: Tensor, points: Tensor) -> Tensor:
        """At any points, (n,) or (n, C)."""
        check_time()
        logits: Tensor = functional_call(self.module, self.parameters(theta), (points,))
        return logits

    def margins_at(self, theta: Tensor, points: Tensor, y: Tensor) -> Tensor:
        """m at any points, (n,)."""
        return margins_of(self.logits_at(theta, points), y)[0]

    def slopes_at(self, theta: Tensor, points: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """m and g at any points."""
        with torch.enable_grad():
            points = points.detach().requires_grad_(True)
            margins = self.margins_at(theta.detach(), points, y)
            (gradients,) = torch.autograd.grad(margins.sum(), points)
        return margins.detach(), gradients

    @property
    def sizes_of_parameters(self) -> Tensor:
        """The unit in which every entry of θ moves: the root mean square of its matrix or of the last one before it,
        for biases of the first layer times that of an input; that of a vector before them all, or 1 if it is zero."""
        entry, matrices, sizes = max(_rms(self.X), 1e-3), list[float](), list[float]()
        for values in self.parameters(self.start).values():
            if values.ndim > 1:
                matrices.append(_rms(values))
                sizes.append(matrices[-1])
            elif matrices:
                sizes.append(matrices[-1] * (entry if len(matrices) == 1 else 1.0))
            else:
                sizes.append(_rms(values) or 1.0)
        moves = torch.cat([torch.full((count,), size) for count, size in zip(self.sizes, sizes, strict=True)])
        return moves * self.moving


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


class GuardedRun(Run):
    """θ, the moments of Adam, and the networks met on the way.

    A row of `curve` is one of them: κ, accuracy, held-out accuracy (NaN without), and what `share` says of its last
    batch.
    """

    objective: GuardedObjective
    kind: ClassVar[type[GuardedObjective]] = GuardedObjective  # of the objective

    def __init__(self, form: TrainingForm, data: Data, regime: GuardedTrainer, batches: Batches) -> None:
        super().__init__(self.kind(form, data, regime.biases))
        self.form, self.data, self.regime, self.batches, self.rng = form, data, regime, batches, batches.rng
        self.length = regime.length
        self.growing = max(1, int(GROWING * self.length))
        self.sizes = self.objective.sizes_of_parameters
        self.moments = torch.zeros(2, len(self.theta))
        self.wanted = [accuracy - regime.lost_accuracy for accuracy in self._accuracies(form.original)]
        self.curve, self.met = torch.zeros(0, 4, dtype=torch.float64), torch.zeros(0, len(self.theta))
        self.first = self.kappa = 0.05
        self.epoch = 0

    @abstractmethod
    def ascent(self, rows: Tensor) -> Tensor:
        """The direction in θ in which these examples become more robust, up to κρ."""

    @abstractmethod
    def share(self, rows: Tensor) -> float:
        """How much of ρ these examples have, in the median."""

    def _accuracies(self, network: Network) -> list[float]:
        """On the training examples, and on those held out where there are any."""
        sets = [(self.data.X, self.data.y), (self.data.X_test, self.data.y_test)]
        return [network.accuracy(X, y) for X, y in sets if X is not None and y is not None]

    def _good(self, network: Network) -> bool:
        return all(found >= wanted for found, wanted in zip(self._accuracies(network), self.wanted, strict=True))

    def scalars(self) -> list[float]:
        return [float(self.batches.position), float(self.epoch), self.kappa]

    def restore(self, scalars: list[float]) -> None:
        self.batches.position, self.epoch, self.kappa = int(scalars[0]), int(scalars[1]), scalars[2]
        self.fresh = False

    def arrays(self) -> dict[str, Tensor]:
        return {"moments": self.moments, "curve": self.curve, "met": self.met, "order": self.batches.order}

    def restore_arrays(self, arrays: dict[str, Tensor]) -> None:
        self.moments, self.curve, self.met = (arrays[name] for name in ("moments", "curve", "met"))
        self.batches.order = arrays["order"]

    def network(self) -> Network:
        """The last one on the way that is accurate enough, at the end the trained one; else as it was."""
        if self.steps == self.length:
            trained = super().network()
            return trained if self._good(trained) else self.form.original
        place = self._last_good()
        return self.form.original if place is None else self.objective.network(self.met[place])

    def measure(self) -> None:
        """Of the network that would be given back."""
        self.margins = self.network().margins(self.data.X, self.data.y).double()
        values = Logistic("sum").log_values(self.margins)
        self.log_loss, self.log_loss_sum = Logistic().total(self.margins), float(torch.logsumexp(values, 0))

    def look(self, recorded: bool) -> RunStatus:
        def norm() -> float:
            return math.sqrt(sum(float(each.detach().square().sum()) for each in self.network().module().parameters()))

        return replace(super().look(recorded), theta_norm=norm)

    def step(self) -> None:
        rows = self.batches.next()
        if self.batches.position == 1:
            self.epoch += 1
        rate = self._scheduled()
        self.theta = self._moved(self.ascent(rows), rate)
        require(bool(self.theta.isfinite().all()), f"{self.regime.name} diverges at rate {self.regime.rate:g}")
        self.steps, self.evaluations, self.fresh = self.steps + 1, self.evaluations + 1, False
        if self.steps <= self.growing and self.steps * SNAPSHOTS // self.growing > len(self.met):
            self._snap(rows)
        if self.steps == self.growing:
            self._settle()
        if self.steps == self.length and self.network() is self.form.original:
            raise RunEnded(Status.STALLED, "the accuracy fell by more than may be lost: the network is as it was")

    def _scheduled(self) -> float:
        """The rate of this step; sets κ."""
        if self.steps < self.growing:
            self.kappa = self._asked(self.steps)
            return self.regime.rate * min(1.0, (self.steps + 1) / (WARM_UP * self.length + 1))
        passed = (self.steps + 1 - self.growing) / (self.length - self.growing)
        return self.regime.rate * 0.5 * (1 + math.cos(math.pi * passed))

    def _asked(self, steps: int) -> float:
        """κ of a step before which there were so many."""
        risen = min(1.0, steps / (RISEN * self.growing))
        return self.first + (self.regime.target - self.first) * risen

    def _moved(self, ascent: Tensor, rate: float) -> Tensor:
        """θ after one step of Adam."""
        first, second = self.moments
        first = FIRST_MOMENT * first + (1 - FIRST_MOMENT) * ascent
        second = SECOND_MOMENT * second + (1 - SECOND_MOMENT) * ascent.square()
        self.moments = torch.stack([first, second])
        first = first / (1 - FIRST_MOMENT ** (self.steps + 1))
        second = second / (1 - SECOND_MOMENT ** (self.steps + 1))
        moved: Tensor = self.theta + rate * self.sizes * first / (second.sqrt() + TINY)
        return moved

    def _snap(self, rows: Tensor) -> None:
        accuracy, *held = self._accuracies(self.objective.network(self.theta))
        row = [self.kappa, accuracy, held[0] if held else math.nan, self.share(rows)]
        self.curve = torch.cat([self.curve, torch.tensor([row], dtype=torch.float64)])
        self.met = torch.cat([self.met, self.theta[None]])

    def _last_good(self) -> int | None:
        """The place of the last network on the way that is accurate enough and was not asked for too much."""
        reached = (self.curve[:, 1 : 1 + len(self.wanted)] >= torch.tensor(self.wanted)).all(1)
        places = (reached & (self.curve[:, 0] <= self._most())).nonzero()[:, 0]
        return int(places[-1]) if len(places) else None

    def _most(self) -> float:
        """The κ on the way that is nearest to the one wanted."""
        wanted = self.regime.kappa
        if wanted is None:
            return math.inf
        marks = [math.ceil(mark * self.growing / SNAPSHOTS) - 1 for mark in range(1, SNAPSHOTS + 1)]
        return min(map(self._asked, marks), key=lambda kappa: abs(kappa - wanted))

    def way(self) -> tuple[Snapshot, ...]:
        last = self._last_good()
        return tuple(
            Snapshot(kappa, accuracy, held_out if held_out == held_out else None, share, place == last, network)
            for place, ((kappa, accuracy, held_out, share), network) in enumerate(
                zip(self.curve.tolist(), map(self.objective.network, self.met), strict=True)
            )
        )

    def _settle(self) -> None:
        """From the last network on the way that is accurate enough, at its κ, the rate falls."""
        place = self._last_good()
        if place is None:
            self.theta, self.kappa = self.met[0], float(self.curve[0, 0])
        else:
            self.theta, self.kappa = self.met[place], float(self.curve[place, 0])
