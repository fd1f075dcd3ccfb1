"""What every certificate is: a part that claims a radius, and an entry that judges the claim against the network."""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor, nn

from brittle.attacks import Attack, MinimumNorm, first_flip, step_past
from brittle.attacks.base import Bounds as Box
from brittle.certificates.layers import Layers
from brittle.common.ending import Ending
from brittle.common.errors import require, require_positive
from brittle.common.progress import Progress, Watch, silent
from brittle.common.result import Result
from brittle.common.threads import one_blas_thread
from brittle.networks import Network, as_network
from brittle.settings import Data

SAME = 1e-9  # a lower bound above an upper one by less than this share is rounding in the attack, not a contradiction
LONGEST = 2.0**1020  # no default cap is larger
SHORTEST = 2.0**-1000  # no smaller radius is claimed: below, floats lose digits
NOT_FINITE = "the margin is not finite in float64: rescale the network"
ROUNDED = "rounding or underflow exceeds the margin: its sign at the example itself is not proved"
UNPROVED = "the method proves no radius above 0 here: try exact or relaxation"


class Contradiction(RuntimeError):
    """A flip was measured below a certified radius: a bug in this package, never the user's fault."""


@dataclass(frozen=True, eq=False)
class Bounds(Result):
    """The radius of example i is inf ‖δ‖ over all strict flips (margin(x_i+δ) < 0), and 0 for an error (margin ≤ 0).

    lower, upper (n,) enclose it (upper is infinity where no flip is known); exact (n,): they agree up to the method's
    gap, or no flip exists below the cap; seconds (n,), the attack's share included; status (n,), one of `error`,
    `exact`, `capped` (proved that no flip lies below the cap), `open`; flips (n, dim), the perturbations behind
    `upper`, measured on the network, 0 where none is known; reason (n,), why nothing was proved where `open` has the
    lower bound 0, and empty elsewhere.
    """

    lower: Tensor
    upper: Tensor
    exact: Tensor
    seconds: Tensor
    status: tuple[Ending, ...]
    method: str
    cap: float
    flips: Tensor
    reason: tuple[str, ...] = ()

    @property
    def ratio(self) -> Tensor:
        """lower/upper of the examples that are neither errors nor without a known flip."""
        known = self.upper.isfinite() & (self.upper > 0)
        return self.lower[known] / self.upper[known]

    def content(self) -> dict[str, Any]:
        """Everything but the flips, which are as large as the examples."""
        return {name: value for name, value in super().content().items() if name != "flips"}

    def summary(self) -> dict[str, str]:
        """The words of all examples are counted."""
        counted = {
            name: ", ".join(f"{count} {word}" for word, count in Counter(filter(None, words)).most_common()) or "-"
            for name, words in (("status", self.status), ("reason", self.reason))
        }
        return super().summary() | counted


@dataclass(frozen=True, eq=False)
class Question:
    """One rightly classified example x (dim,) with label y; no flip needs to be looked for outside the ball.

    `flip` (dim,) is a known one, or zero; `shorten` tries directions (k, dim) and returns the shortest flip known.
    """

    x: Tensor
    y: Tensor
    margin: float
    ball: float
    flip: Tensor
    shorten: Callable[[Tensor], float]


Claim = Callable[[Question], float]


class Certificate(ABC):
    """A proof of robustness. Its fields are its parameters; `bound` is its verb."""

    method: ClassVar[str]

    @final
    def bound(
        self,
        network: Network | nn.Module,
        data: Data,
        *,
        attack: Attack[Any] | None = None,
        bounds: Box | None = None,
        cap: float | None = None,
        rng: torch.Generator | None = None,
        watch: Watch = silent,
    ) -> Bounds:
        """Enclose the radius of every example.

        The attack (`MinimumNorm()` by default) finds the flips; a box (lowest, highest) restricts only them, so that
        the lower bounds hold in the box too; `cap` is the radius beyond which nobody asks, by default 100 times the
        longest example.
        """
        known = _double(network if isinstance(network, Network) else as_network(network))
        known.check(data.X, data.y)
        _require_finite(known)
        longest = max(1.0, float(lengths(data.X).max()))
        cap = min(100 * longest, LONGEST) if cap is None else cap
        require_positive("cap", cap)
        started = time.perf_counter()
        found = (attack or MinimumNorm()).run(known, data, bounds=bounds, rng=rng)
        share = (time.perf_counter() - started) / len(data)
        record = _Record(known, data, bounds, cap, found.perturbations, share)
        with torch.no_grad(), one_blas_thread(), np.errstate(all="ignore"):
            claim = self.prepare(known)
            for row in range(len(data)):
                record.judge(row, claim)
                watch(Progress((row + 1) / len(data), f"{row + 1} of {len(data)} examples"))
        return record.bounds(self.method, self._gap)

    @abstractmethod
    def prepare(self, network: Network) -> Claim:
        """What is shared by all examples; the claim is a radius that no flip of the question's ball undercuts."""

    @property
    def _gap(self) -> float:
        """The relative gap at which the enclosure counts as exact."""
        return 1e-6


class _Record:
    """The enclosures so far. Every upper bound in it was measured on the network."""

    def __init__(self, network: Network, data: Data, box: Box | None, cap: float, flips: Tensor, share: float) -> None:
        self.network, self.data, self.box, self.cap, self.flips = network, data, box, cap, flips.clone()
        self.margins = network.margins(data.X, data.y)
        flipped = network.margins(data.X + flips, data.y) < 0
        self.upper = torch.where(flipped, lengths(flips), torch.inf)
        self.upper[self.margins <= 0] = 0
        self.flips[~(self.upper.isfinite() & (self.upper > 0))] = 0
        self.lower = torch.zeros_like(self.upper)
        self.seconds = torch.full_like(self.upper, share)

    def judge(self, row: int, claim: Claim) -> None:
        question = self._question(row)
        if not (question.margin > 0 and question.ball > SHORTEST):
            return
        started = time.perf_counter()
        radius = claim(question)
        self.seconds[row] += time.perf_counter() - started
        radius = radius if radius > SHORTEST else 0.0
        upper = float(self.upper[row])
        if radius > upper * (1 + SAME):
            if self._surely_flips(row, min(radius, self.cap)):
                raise Contradiction(f"example {row} flips at {upper!r} and was certified to {radius!r}")
            self.upper[row], self.flips[row] = torch.inf, 0.0
        self.lower[row] = min(radius, float(self.upper[row]), self.cap)

    def _surely_flips(self, row: int, radius: float) -> bool:
        """Whether the ray through the measured flip has a margin below zero, rounding aside, before the radius."""
        if self.network.depth is None:
            return True
        for stretch in torch.linspace(1, radius / float(self.upper[row]), 17, dtype=torch.float64)[:-1]:
            values, slips = self._outputs(row, self.data.X[row] + stretch * self.flips[row])
            if (values + slips < 0).any():
                return True
        return False

    def _outputs(self, row: int, point: Tensor) -> tuple[Tensor, Tensor]:
        """The margins over every rival at a point, each in a unit of its own, and how far they may be off."""
        margins = Layers.of(self.network, "").around(point, 0.0, self.data.y[row])
        return margins.outputs(margins.x)

    def _reason(self, row: int) -> str:
        """Why nothing was proved of a rightly classified example."""
        if not self.margins[row].isfinite():
            return NOT_FINITE
        if self.network.depth is None:
            return UNPROVED
        values, slips = self._outputs(row, self.data.X[row])
        return UNPROVED if (values > slips).all() else ROUNDED

    def bounds(self, method: str, gap: float) -> Bounds:
        capped = (self.lower >= self.cap) & (self.upper > self.cap)
        exact = capped | (self.upper.isfinite() & (self.upper - self.lower <= gap * self.upper))
        status = [_ending(*facts) for facts in zip((self.margins <= 0).tolist(), capped, exact, strict=True)]
        reason = [
            self._reason(row) if word is Ending.OPEN and self.lower[row] == 0 else "" for row, word in enumerate(status)
        ]
        return Bounds(
            self.lower, self.upper, exact, self.seconds, tuple(status), method, self.cap, self.flips, tuple(reason)
        )

    def _question(self, row: int) -> Question:
        ball = min(float(self.upper[row]), self.cap)

        def shorten(directions: Tensor) -> float:
            return self._shorten(row, directions)

        X, y = self.data.X, self.data.y
        return Question(X[row], y[row], float(self.margins[row]), ball, self.flips[row], shorten)

    def _shorten(self, row: int, directions: Tensor) -> float:
        """Follow exact rays, and keep the shortest perturbation that is measured to flip."""
        directions = directions[directions.isfinite().all(1) & (directions != 0).any(1)]
        directions = directions / directions.abs().amax(1, keepdim=True)  # squares of far scales leave the floats
        directions = directions / directions.norm(dim=1, keepdim=True)
        X, y = self.data.X[row].expand_as(directions), self.data.y[row].expand(len(directions))
        limit = torch.full((len(directions),), min(float(self.upper[row]), self.cap), dtype=torch.float64)
        flips = first_flip(self.network, X, y, directions, limit)
        near = flips < self.upper[row]
        if near.any():
            sizes = step_past(self.network, X[near], y[near], directions[near], flips[near], limit[near])
            for size, direction in zip(sizes, directions[near], strict=True):
                self._keep(row, size * direction)
        return min(float(self.upper[row]), self.cap)

    def _keep(self, row: int, flip: Tensor) -> None:
        if not flip.isfinite().all():
            return
        point = self.data.X[row] + flip
        if self.box is not None and ((point < self.box[0]) | (point > self.box[1])).any():
            return
        measured = self.network.margins(point[None], self.data.y[row : row + 1])
        length = lengths(flip[None])[0]
        if measured < 0 and length < self.upper[row]:
            self.upper[row], self.flips[row] = length, flip


def _ending(misclassified: bool, capped: bool, exact: bool) -> Ending:
    if misclassified:
        return Ending.ERROR
    if capped:
        return Ending.CAPPED
    return Ending.EXACT if exact else Ending.OPEN


def lengths(rows: Tensor) -> Tensor:
    """‖row‖ of every row (n, dim), at scales where the squares leave the floats too."""
    plain = rows.norm(dim=1)
    top = rows.abs().amax(1)
    far = ((plain < 1e-140) & (top > 0)) | (plain > 1e150)
    scaled = torch.where(far[:, None], rows / torch.where(far, top, 1.0)[:, None], 0.0)
    return torch.where(far, top * scaled.norm(dim=1), plain)


def _require_finite(network: Network) -> None:
    """Of weights that are not finite nothing is known: NaN compares as neither right nor wrong."""
    for name, values in network.arrays.items():
        finite = not values.is_floating_point() or bool(values.isfinite().all())
        require(finite, f"{name} of the network holds NaN or infinity; finite weights are needed")


def _double(network: Network) -> Network:
    require(network.dtype.is_floating_point, f"the network has type {network.dtype}; a float type is needed")
    return network.to(torch.float64)
