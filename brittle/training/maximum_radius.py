"""Training for the radius itself: every example is to be as far from the boundary as the data allow.

Two examples of different classes at distance d cannot both be farther than d/2 from a boundary between them, so ρ_i,
half the distance of x_i to the nearest example of another class, is the aim. With r_i the distance of x_i from the
boundary (negative where it is misclassified) the objective is

    J(θ) = mean_i (1 - r_i/(κ ρ_i))₊²,      κ growing from what the network has to 1.

At the nearest boundary point P = x + δ the margin m is 0 and dr/dθ = ∂m/∂θ(P)/‖∇ₓm(P)‖: growing weights win nothing.
Off the boundary r ≈ (m(P) - g·δ)/‖g‖, g = ∇ₓm(P), and δ ← g(g·δ - m)/‖g‖² goes to it.
"""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import torch
from torch import Generator, Tensor
from torch.func import functional_call

from brittle.common.ending import Ending
from brittle.common.errors import require, require_between, require_positive, required
from brittle.common.parts import option
from brittle.geometry import into_ball, nearest_rivals
from brittle.networks.base import Network
from brittle.networks.deep import as_layered
from brittle.settings.base import Data
from brittle.training.base import Regime
from brittle.training.descent import Batches
from brittle.training.losses import Logistic
from brittle.training.normal_form import NormalForm
from brittle.training.objective import ModuleObjective, margins_of
from brittle.training.options import BATCH, TRAINED_BIASES
from brittle.training.run import Ended, Run
from brittle.training.stops import UNTIL, Look, Steps, Stop

GROWING = 0.7  # of the steps: κ rises; in the rest the rate falls
RISEN = 0.9  # of the growing steps: κ is at its end
WARM_UP = 0.05  # of all steps
SNAPSHOTS = 8
LOWEST, HIGHEST = 0.5, 2.0  # ρ in medians
CUT = 3.0  # longest δ, in ρ
OFF = 0.05  # a point whose distance from the boundary is more than this share of ‖δ‖ is none of it
FIRST, RENEWED, FOLLOWED = 5, 4, 3  # boundary steps: at the start, where δ is looked for anew, else
RENEWED_EVERY = 10  # epochs
FIRST_MOMENT, SECOND_MOMENT = 0.9, 0.99
TINY = 1e-12


@dataclass(frozen=True)
class MaximumRadius(Regime):
    """Adam on J(θ), `until` a number of steps that its schedule is made for; another stop may end it before.

    Every parameter moves by `rate` times the size of its tensor at most. `target` is where κ ends. Layers whose biases
    are all zero keep none unless `biases` is True; False trains none. The network is the last one on the way whose
    accuracy, on training and on held-out examples, is at most `lost_accuracy` below that at the start; where there is
    none, it is the network as it was.
    """

    name: ClassVar = "maximum-radius"

    until: Stop | tuple[Stop, ...] = field(default_factory=lambda: Steps(800), metadata=UNTIL)
    rate: float = field(default=0.05, metadata=option("Step size, in sizes of each tensor.", check=require_positive))
    target: float = field(
        default=1.0,
        metadata=option("κ at the end, in attainable radii.", check=partial(require_between, low=0, high=2)),
    )
    lost_accuracy: float = field(
        default=0.01, metadata=option("Accuracy that may be lost.", check=partial(require_between, low=0, high=1))
    )
    batch: int = field(default=128, metadata=BATCH)
    biases: bool | None = field(default=None, metadata=TRAINED_BIASES)

    @property
    def length(self) -> int:
        """The number of steps that the schedule is made for."""
        steps = [stop.value for stop in self.stops if isinstance(stop, Steps)]
        require(len(steps) == 1, f"until is {self.until}; maximum-radius needs one number of steps, such as steps=800")
        return steps[0]

    def begin(self, network: Network, data: Data, rng: Generator | None) -> Run:
        layered = as_layered(network, "maximum-radius")
        rng = required(rng, "maximum-radius draws batches at random: give it a torch.Generator")
        form = NormalForm.of(layered, data, rng)
        return MaximumRadiusRun(form, data, self, Batches(len(data), min(self.batch, len(data)), rng))


class RadiusObjective(ModuleObjective):
    """θ of the normal form; networks are given back in the old coordinates."""

    def __init__(self, form: NormalForm, data: Data, biases: bool | None = None) -> None:
        super().__init__(form.network, Data(form.X, data.y), biases=True)
        self.form, self.moving = form, self._moving(biases)

    def _moving(self, biases: bool | None) -> Tensor:
        """1 for every entry of θ that is trained: biases of a layer that has none stay zero, unless asked for."""
        parts = self.parameters(self.start).items()
        fixed = [
            name.endswith("bias") and (not biases if biases is not None else not value.any()) for name, value in parts
        ]
        return torch.cat([torch.full((size,), float(not each)) for size, each in zip(self.sizes, fixed, strict=True)])

    def network(self, theta: Tensor) -> Network:
        trained = super().network(theta)
        return self.form.back(as_layered(trained, "maximum-radius"))

    def margins_at(self, theta: Tensor, points: Tensor, y: Tensor) -> Tensor:
        """m at any points, (n,)."""
        return margins_of(functional_call(self.module, self.parameters(theta), (points,)), y)[0]

    def slopes_at(self, theta: Tensor, points: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """m and g at any points."""
        with torch.enable_grad():
            points = points.detach().requires_grad_(True)
            margins = self.margins_at(theta.detach(), points, y)
            (gradients,) = torch.autograd.grad(margins.sum(), points)
        return margins.detach(), gradients

    @property
    def sizes_of_parameters(self) -> Tensor:
        """The unit in which every entry of θ moves: the root mean square of its weights, for biases of the first layer
        times that of an input."""
        weights = [values for name, values in self.parameters(self.start).items() if name.endswith("weight")]
        units = [float(values.square().mean().sqrt()) for values in weights]
        entry = float(self.X.square().mean().sqrt())
        biases = [units[0] * max(entry, 1e-3), *units[1:]]
        sizes = [size for pair in zip(units, biases, strict=True) for size in pair]
        moves = torch.cat([torch.full((count,), size) for count, size in zip(self.sizes, sizes, strict=True)])
        return moves * self.moving


@dataclass(frozen=True, eq=False)
class Boundary:
    """The way from examples to the boundary; `limits` are ρ (n,), `halves` (n, r) the way to half of each rival."""

    objective: RadiusObjective
    limits: Tensor
    halves: Tensor

    @classmethod
    def of(cls, objective: RadiusObjective) -> "Boundary":
        X = objective.X
        distances, rivals = nearest_rivals(X, objective.y)
        middle = float(distances.median())
        require(middle > 0, "half of the examples coincide with one of another class: no network can tell them apart")
        limits = 0.5 * distances.clamp(LOWEST * middle, HIGHEST * middle)
        return cls(objective, limits, 0.5 * (X[rivals] - X))

    def at(self, theta: Tensor, rows: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
        """m and g at x + δ."""
        return self.objective.slopes_at(theta, self.objective.X[rows] + delta, self.objective.y[rows])

    def stepped(self, rows: Tensor, delta: Tensor, margins: Tensor, gradients: Tensor) -> Tensor:
        """The shortest δ to where the margin, as it is seen from here, is 0."""
        share = ((gradients * delta).sum(1) - margins) / gradients.square().sum(1).clamp(min=TINY**2)
        return into_ball(share[:, None] * gradients, CUT * self.limits[rows])

    def shortest(self, theta: Tensor, rows: Tensor, starts: list[Tensor], rounds: int) -> Tensor:
        """After so many steps from each start; one that has not come to the boundary is taken for want of others."""
        best, lowest = starts[0], torch.full((len(rows),), torch.inf)
        for delta in starts:
            for _ in range(rounds):
                delta = self.stepped(rows, delta, *self.at(theta, rows, delta))
            margins, gradients = self.at(theta, rows, delta)
            off, length = margins.abs() / gradients.norm(dim=1).clamp(min=TINY), delta.norm(dim=1)
            score = length + torch.where(off > OFF * length, 1e3 * off, 0.0)
            better = score < lowest
            best, lowest = torch.where(better[:, None], delta, best), torch.where(better, score, lowest)
        return best

    def starts(self, rows: Tensor) -> list[Tensor]:
        """Nothing, and half the way to the nearest rival."""
        return [torch.zeros_like(self.halves[rows]), self.halves[rows]]


def radii(delta: Tensor, margins: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    """r to first order, and ‖g‖."""
    slopes = gradients.norm(dim=1).clamp(min=TINY)
    return (margins - (gradients * delta).sum(1)) / slopes, slopes


class MaximumRadiusRun(Run):
    """θ, the moments of Adam, δ of every example, and the networks met on the way.

    A row of `curve` is one of them: κ, accuracy, held-out accuracy (NaN without), and the median r/ρ of its last batch.
    """

    objective: RadiusObjective

    def __init__(self, form: NormalForm, data: Data, regime: MaximumRadius, batches: Batches) -> None:
        super().__init__(RadiusObjective(form, data, regime.biases))
        self.form, self.data, self.regime, self.batches, self.rng = form, data, regime, batches, batches.rng
        self.boundary, self.length = Boundary.of(self.objective), regime.length
        self.growing = max(1, int(GROWING * self.length))
        self.sizes = self.objective.sizes_of_parameters
        self.moments = torch.zeros(2, len(self.theta))
        everything = torch.arange(len(data))
        self.delta = self.boundary.shortest(self.theta, everything, self.boundary.starts(everything), FIRST)
        found, _ = radii(self.delta, *self.boundary.at(self.theta, everything, self.delta))
        self.first = float((found / self.boundary.limits).median().clamp(0.05, regime.target))
        self.wanted = [accuracy - regime.lost_accuracy for accuracy in self._accuracies(form.original)]
        self.curve, self.met = torch.zeros(0, 4, dtype=torch.float64), torch.zeros(0, len(self.theta))
        self.kappa, self.epoch = self.first, 0

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
        own = {"moments": self.moments, "delta": self.delta, "curve": self.curve, "met": self.met}
        return own | {"order": self.batches.order}

    def restore_arrays(self, arrays: dict[str, Tensor]) -> None:
        self.moments, self.delta, self.curve, self.met = (arrays[name] for name in ("moments", "delta", "curve", "met"))
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

    def look(self, recorded: bool) -> Look:
        def norm() -> float:
            return math.sqrt(float(as_layered(self.network(), "maximum-radius").squared_norm))

        return replace(super().look(recorded), theta_norm=norm)

    def step(self) -> None:
        rows = self.batches.next()
        if self.batches.position == 1:
            self.epoch += 1
        rate = self._scheduled()
        self.theta = self._moved(rows, rate)
        require(bool(self.theta.isfinite().all()), f"maximum-radius diverges at rate {self.regime.rate:g}")
        self.steps, self.evaluations, self.fresh = self.steps + 1, self.evaluations + 1, False
        if self.steps <= self.growing and self.steps * SNAPSHOTS // self.growing > len(self.met):
            self._snap(rows)
        if self.steps == self.growing:
            self._settle()
        if self.steps == self.length and self.network() is self.form.original:
            raise Ended(Ending.STALLED, "the accuracy fell by more than may be lost: the network is as it was")

    def _scheduled(self) -> float:
        """The rate of this step; sets κ."""
        if self.steps < self.growing:
            risen = min(1.0, self.steps / (RISEN * self.growing))
            self.kappa = self.first + (self.regime.target - self.first) * risen
            return self.regime.rate * min(1.0, (self.steps + 1) / (WARM_UP * self.length + 1))
        passed = (self.steps + 1 - self.growing) / (self.length - self.growing)
        return self.regime.rate * 0.5 * (1 + math.cos(math.pi * passed))

    def _moved(self, rows: Tensor, rate: float) -> Tensor:
        """θ after one step of Adam on J at the boundary points of these examples."""
        delta, boundary = self.delta[rows], self.boundary
        renewed = self.epoch % RENEWED_EVERY == 1
        starts = [delta, *boundary.starts(rows)] if renewed else [delta]
        delta = boundary.shortest(self.theta, rows, starts, RENEWED if renewed else FOLLOWED)
        margins, gradients = boundary.at(self.theta, rows, delta)
        found, slopes = radii(delta, margins, gradients)
        aims = self.kappa * boundary.limits[rows]
        weights = (1 - found / aims).clamp(0, 2) / (aims * slopes) / len(rows)
        ascent = self._ascent(rows, delta, weights)
        self.delta = self.delta.clone()
        self.delta[rows] = boundary.stepped(rows, delta, margins, gradients)
        first, second = self.moments
        first = FIRST_MOMENT * first + (1 - FIRST_MOMENT) * ascent
        second = SECOND_MOMENT * second + (1 - SECOND_MOMENT) * ascent.square()
        self.moments = torch.stack([first, second])
        first = first / (1 - FIRST_MOMENT ** (self.steps + 1))
        second = second / (1 - SECOND_MOMENT ** (self.steps + 1))
        moved: Tensor = self.theta + rate * self.sizes * first / (second.sqrt() + TINY)
        return moved

    def _ascent(self, rows: Tensor, delta: Tensor, weights: Tensor) -> Tensor:
        """The gradient of Σ weights m(x + δ) in θ."""
        with torch.enable_grad():
            theta = self.theta.detach().requires_grad_(True)
            margins = self.objective.margins_at(theta, self.objective.X[rows] + delta, self.objective.y[rows])
            gradient: Tensor = torch.autograd.grad((weights * margins).sum(), theta)[0]
        return gradient

    def _snap(self, rows: Tensor) -> None:
        accuracy, *held = self._accuracies(self.objective.network(self.theta))
        found, _ = radii(self.delta[rows], *self.boundary.at(self.theta, rows, self.delta[rows]))
        share = float((found / self.boundary.limits[rows]).median())
        row = torch.tensor([[self.kappa, accuracy, held[0] if held else math.nan, share]], dtype=torch.float64)
        self.curve, self.met = torch.cat([self.curve, row]), torch.cat([self.met, self.theta[None]])

    def _last_good(self) -> int | None:
        reached = self.curve[:, 1 : 1 + len(self.wanted)] >= torch.tensor(self.wanted)
        places = reached.all(1).nonzero()[:, 0]
        return int(places[-1]) if len(places) else None

    def _settle(self) -> None:
        """From the last network on the way that is accurate enough, at its κ, the rate falls."""
        place = self._last_good()
        if place is None:
            self.theta, self.kappa = self.met[0], float(self.curve[0, 0])
        else:
            self.theta, self.kappa = self.met[place], float(self.curve[place, 0])
