"""One example, and what is known of its radius."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from brittle.attacks import shorten_perturbations, sooner_flip, step_past
from brittle.attacks.base import Bounds as Box
from brittle.certificates.layers import Layers
from brittle.data import Data
from brittle.networks import Network

SHORTER = 1e-6  # a flip that is shorter by this share is a new one, worth a finish
NEAR, FAR = 1e-100, 1e100  # lengths whose squares are floats


@dataclass(frozen=True, eq=False)
class RadiusInterval:
    """`lower` ≤ radius ≤ `upper`; `flip` (dim,) has the length `upper` and was measured on the network.

    Where no flip is known `upper` is infinite and `flip` zero. Nobody asks beyond the `cap`. `nodes` counts the
    branches that were looked at.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> known = bt.certificates.RadiusInterval(lower=0.0, upper=torch.inf, flip=torch.zeros(2), cap=10.0)
        >>> known = known.proven(1.0).attacked(torch.tensor([0.0, 2.0]))
        >>> known.lower, known.upper, known.ball
        (1.0, 2.0, 2.0)
    """

    lower: float
    upper: float
    flip: Tensor
    cap: float
    nodes: int = 0

    @property
    def ball(self) -> float:
        """No flip needs to be looked for outside the ball of this radius."""
        return min(self.upper, self.cap)

    def attacked(self, flip: Tensor) -> "RadiusInterval":
        """With a flip that was measured, if it is the shortest so far."""
        length = float(lengths(flip[None])[0])
        return replace(self, upper=length, flip=flip) if length < self.upper else self

    def proven(self, radius: float) -> "RadiusInterval":
        """With the proof that no flip is shorter than the radius."""
        return replace(self, lower=max(self.lower, radius))

    def branched(self) -> "RadiusInterval":
        """With one more branch looked at."""
        return replace(self, nodes=self.nodes + 1)


@dataclass(frozen=True, eq=False)
class Example:
    """`x` (dim,), number `row` of the data, with its label `y` and the `margin` of the network.

    Flips stay in the `box` (lowest, highest), if there is one.

    Examples:
        >>> import torch
        >>> import brittle as bt
        >>> W, v = torch.tensor([[1.0], [-1.0]]).double(), torch.tensor([1.0, -1.0]).double()
        >>> line = bt.networks.TwoLayer(W, torch.zeros(2).double(), v)  # x itself
        >>> x, y = torch.tensor([3.0]).double(), torch.tensor(1.0).double()
        >>> example = bt.certificates.Example(line, 0, x, y, margin=3.0)
        >>> unknown = bt.certificates.RadiusInterval(0.0, torch.inf, torch.zeros(1), cap=10.0)
        >>> round(example.attacked(unknown, torch.tensor([[-1.0]]).double()).upper, 6)
        3.0
    """

    network: Network
    row: int
    x: Tensor
    y: Tensor
    margin: float
    box: Box | None = None

    def attacked(self, enclosure: RadiusInterval, directions: Tensor) -> RadiusInterval:
        """Follow rays in directions (k, dim) of any length, and keep the shortest flip that is measured.

        One that is shorter than all before is finished as the attack finishes its own.
        """
        directions = directions[directions.isfinite().all(1) & (directions != 0).any(1)]
        directions = directions / directions.abs().amax(1, keepdim=True)  # squares of far scales leave the floats
        directions = directions / directions.norm(dim=1, keepdim=True)
        X, y = self.x.expand_as(directions), self.y.expand(len(directions))
        limit = torch.full((len(directions),), enclosure.ball, dtype=torch.float64)
        first = sooner_flip(self.network, X, y, directions, limit)
        near, before = first < enclosure.upper, enclosure.upper
        if near.any():
            sizes = step_past(self.network, X[near], y[near], directions[near], first[near], limit[near])
            for flip in sizes[:, None] * directions[near]:
                enclosure = enclosure.attacked(flip) if self._flips(flip) else enclosure
        new = enclosure.upper < before * (1 - SHORTER)
        return self._finished(enclosure) if new and NEAR < enclosure.upper < FAR else enclosure

    def _finished(self, enclosure: RadiusInterval) -> RadiusInterval:
        data = Data(self.x[None], self.y[None])
        flip = shorten_perturbations(self.network, data, enclosure.flip[None], self.box)[0]
        return enclosure.attacked(flip) if self._flips(flip) else enclosure

    def _flips(self, delta: Tensor) -> bool:
        """Measured on the network, in the box."""
        point = self.x + delta
        if not delta.isfinite().all():
            return False
        if self.box is not None and ((point < self.box[0]) | (point > self.box[1])).any():
            return False
        return bool(self.network.margins(point[None], self.y[None]) < 0)


def lengths(rows: Tensor) -> Tensor:
    """‖row‖ of every row (n, dim), at scales where the squares leave the floats too."""
    plain = rows.norm(dim=1)
    top = rows.abs().amax(1)
    far = ((plain < 1e-140) & (top > 0)) | (plain > 1e150)
    scaled = torch.where(far[:, None], rows / torch.where(far, top, 1.0)[:, None], 0.0)
    return torch.where(far, top * scaled.norm(dim=1), plain)


# What is made of a certificate's word: a flip below it is a contradiction, unless it is rounding in the attack.


SAME = 1e-9  # a lower bound above an upper one by less than this share is rounding in the attack, not a contradiction
SHORTEST = 2.0**-1000  # no smaller radius is claimed: below, floats lose digits
NOT_FINITE = "the margin is not finite in float64: rescale the network"
ROUNDED = "rounding or underflow exceeds the margin: its sign at the example itself is not proved"
UNPROVED = "the method proves no radius above 0 here: try exact or relaxation"


class Contradiction(RuntimeError):
    """A flip was measured below a certified radius: a bug in this package, never the user's fault.

    Examples:
        >>> from brittle.certificates import Contradiction
        >>> issubclass(Contradiction, RuntimeError)
        True
    """


def check_bound(example: Example, enclosure: RadiusInterval) -> RadiusInterval:
    """The enclosure with lower ≤ upper, without a flip that is only the rounding of the margin."""
    radius = enclosure.lower if enclosure.lower > SHORTEST else 0.0
    if radius > enclosure.upper * (1 + SAME):
        if _surely_flips(example, enclosure, min(radius, enclosure.cap)):
            raise Contradiction(f"example {example.row} flips at {enclosure.upper!r} and was certified to {radius!r}")
        enclosure = replace(enclosure, upper=math.inf, flip=torch.zeros_like(enclosure.flip))
    return replace(enclosure, lower=min(radius, enclosure.ball))


def reason(example: Example) -> str:
    """Why nothing was proved of a rightly classified example."""
    if not math.isfinite(example.margin):
        return NOT_FINITE
    if example.network.depth is None:
        return UNPROVED
    values, slips = _outputs(example, example.x)
    return UNPROVED if (values > slips).all() else ROUNDED


def _surely_flips(example: Example, enclosure: RadiusInterval, radius: float) -> bool:
    """Whether the ray through the measured flip has a margin below zero, rounding aside, before the radius."""
    if example.network.depth is None:
        return True
    for stretch in torch.linspace(1, radius / enclosure.upper, 17, dtype=torch.float64)[:-1]:
        values, slips = _outputs(example, example.x + stretch * enclosure.flip)
        if (values + slips < 0).any():
            return True
    return False


def _outputs(example: Example, point: Tensor) -> tuple[Tensor, Tensor]:
    """The margins over every rival at a point, each in a unit of its own, and how far they may be off."""
    margins = Layers.of(example.network, "").around(point, 0.0, example.y)
    return margins.outputs(margins.x)
