"""Adversarial training of wide two-layer networks in few dimensions, for a radius that is to be proved afterwards.

The network sees the leading principal components of the pictures alone: what hardly varies would help attackers only,
and neither training nor the proof has to carry it. It is returned as a network of the pictures themselves.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel

from brittle.common.progress import Progress, Watch, silent
from brittle.data import Data
from brittle.geometry import into_ball, unit_rows
from brittle.networks import Deep

FALL = 0.7  # the share of training, at its end, in which the step size falls to 0
POWER = 0.5  # of the bounded loss (1 - p^q)/q: 1 - p at q = 1, -log p at q = 0
KEPT = 0.998  # of the averaged weights in every step


@dataclass(frozen=True)
class Frame:
    """x ↦ (x - mean)·basis, with orthonormal columns in the basis (dim, r)."""

    mean: Tensor
    basis: Tensor

    @classmethod
    def of(cls, X: Tensor, components: int) -> "Frame":
        mean = X.mean(0)
        scatter = (X - mean).T @ (X - mean)
        return cls(mean, torch.linalg.eigh(scatter.double())[1][:, -components:])

    def __call__(self, X: Tensor) -> Tensor:
        return (X - self.mean.to(X)) @ self.basis.to(X)

    def network(self, module: nn.Sequential) -> Deep:
        """The module's function of the components as a function of x, in float64."""
        layers = [layer for layer in module if isinstance(layer, nn.Linear)]
        weights, biases = ([getattr(each, name).detach().double() for each in layers] for name in ("weight", "bias"))
        first = weights[0] @ self.basis.T
        return Deep.dense([first, *weights[1:]], [biases[0] - first @ self.mean.double(), *biases[1:]])


@dataclass(frozen=True)
class Bending:
    """Pictures (channels, rows, columns) turned, sheared, scaled and moved at random, by at most `size`.

    At size 1 that is .12, .15, a tenth of the size, and half a pixel of 28. With `mirror` every other one is mirrored.
    """

    image: tuple[int, int, int]
    size: float
    mirror: bool = False

    def __call__(self, X: Tensor, rng: Generator) -> Tensor:
        angle, shear, scale, across, down = (self.size * (2 * torch.rand(5, len(X), generator=rng) - 1)).unbind()
        angle, shear, scale, across, down = 0.12 * angle, 0.15 * shear, 1 + 0.1 * scale, across / 28, down / 28
        first = torch.stack([scale * angle.cos(), shear - angle.sin(), across], 1)
        if self.mirror:
            first = first * (1 - 2 * torch.randint(2, (len(X), 1), generator=rng))
        second = torch.stack([angle.sin(), scale * angle.cos(), down], 1)
        shape = (len(X), *self.image)
        grid = functional.affine_grid(torch.stack([first, second], 1), list(shape), align_corners=False)
        return functional.grid_sample(X.view(shape), grid, align_corners=False).flatten(1)


@dataclass(frozen=True)
class RobustTraining:
    """Adam on examples that `steps` gradient steps have moved by up to `budget`, which grows over a third of the time.

    The second half has a bounded loss: an example that nobody could defend no longer pulls. The weights are averaged
    over the last few hundred steps. `bend` is the size of random changes to the pictures, `mirror` that left and
    right mean the same.
    """

    width: int
    components: int
    budget: float
    epochs: int
    bend: float = 0.0
    mirror: bool = False
    rate: float = 1.5e-3
    batch: int = 256
    steps: int = 4
    seed: int = 0

    def train(self, data: Data, image: tuple[int, int, int], watch: Watch = silent) -> Deep:
        """From `seed` alone; one thread gives the same network again."""
        rng = torch.Generator().manual_seed(self.seed)
        X, frame = data.X.float(), Frame.of(data.X.float(), self.components)
        bending = Bending(image, self.bend, self.mirror)
        bend: Callable[[Tensor, Generator], Tensor] = bending if self.bend else _unchanged
        module = _module(self.components, self.width, int(data.y.max()) + 1, rng)
        averaged = AveragedModel(module, avg_fn=_average)
        descent = torch.optim.Adam(module.parameters(), self.rate)
        for rows, done in _batches(len(X), self.batch, self.epochs, rng):
            descent.param_groups[0]["lr"] = self.rate * min(1.0, (1 - done) / FALL)
            x, y = frame(bend(X[rows], rng)), data.y[rows]
            moved = x + worst(module, x, y, self.budget * min(1.0, 3 * done + 0.05), self.steps)
            loss = functional.cross_entropy(module(moved), y) if done < 0.5 else bounded(module(moved), y)
            descent.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            descent.step()
            averaged.update_parameters(module)
            watch(Progress(done, f"loss {float(loss.detach()):.3f}"))
        assert isinstance(averaged.module, nn.Sequential)
        return frame.network(averaged.module)


def worst(module: nn.Module, x: Tensor, y: Tensor, budget: float, steps: int) -> Tensor:
    """A perturbation of each row with a large cross-entropy: one step to the sphere, then half as long ones on it."""
    delta = torch.zeros_like(x)
    for step in range(steps):
        delta.requires_grad_(True)
        loss = functional.cross_entropy(module(x + delta), y, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, delta)
        delta = into_ball(delta.detach() + (1 if step == 0 else 0.5) * budget * unit_rows(gradient), budget)
    return delta


def bounded(logits: Tensor, y: Tensor) -> Tensor:
    """(1 - p^q)/q of the right class's probability: at most 1/q, however wrong the example is."""
    p = functional.softmax(logits, 1).gather(1, y[:, None]).clamp(min=1e-6)
    return ((1 - p**POWER) / POWER).mean()


def _average(average: Tensor, weights: Tensor, steps: Tensor | int) -> Tensor:
    """Of the last few hundred steps, or of most of all while there are few."""
    return torch.lerp(weights, average, min(KEPT, float(steps) / (float(steps) + 10)))


def _unchanged(X: Tensor, rng: Generator) -> Tensor:
    return X


def _module(dim: int, width: int, classes: int, rng: Generator) -> nn.Sequential:
    module = nn.Sequential(nn.Linear(dim, width), nn.ReLU(), nn.Linear(width, classes))
    with torch.no_grad():
        for parameter, fan in zip(module.parameters(), (dim, dim, width, width), strict=True):
            parameter.copy_((2 * torch.rand(parameter.shape, generator=rng) - 1) / fan**0.5)
    return module


def _batches(count: int, size: int, epochs: int, rng: Generator) -> Iterator[tuple[Tensor, float]]:
    """Rows of full batches, and the share of training that lies behind."""
    size = min(size, count)
    total = epochs * (count // size)
    for epoch in range(epochs):
        order = torch.randperm(count, generator=rng)
        for place in range(count // size):
            yield order[place * size : (place + 1) * size], (epoch * (count // size) + place) / total
