"""Every audited example as a person looks at it: what moves on the way to its shortest flip, and what lies beside it.

Pictures travel as bytes: an example in 256 shades between the darkest and the brightest of all, its flip in 255 around
no change.
"""

import base64
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from brittle.auditing import Audit
from brittle.auditing.costs import operations
from brittle.auditing.pieces import select_audited_data
from brittle.data import Data
from brittle.networks import Network

ABOUT = 0.1  # of the median radius: an example so near to it is typical
FEATURES = 5  # that move most
STEPS, REACH = 61, 1.5  # places along the flip, and how far beyond it they go
GRID = 41  # of a slice, in each direction
SLICE_REACH = 2.2  # of a slice, in lengths of the flip
SLICE_WORK = 4e10  # operations for all slices together
LARGEST = 2_000_000  # numbers in pictures: with more the page would be too heavy, and the weakest examples have them


@dataclass(frozen=True, eq=False)
class ExampleViews:
    """The `audit`'s examples with their shortest flips, on the `network` and the `data` that it was about."""

    audit: Audit
    network: Network
    data: Data

    @cached_property
    def own(self) -> Data:
        """The audited examples, in their order."""
        weak = self.audit.vulnerability
        return select_audited_data(self.data, weak.held_out).take(weak.examples)

    @property
    def norms(self) -> Tensor:
        return self.audit.vulnerability.free.norms

    @property
    def flips(self) -> Tensor:
        return self.audit.vulnerability.perturbations

    @cached_property
    def flipped(self) -> Tensor:
        """Rows with a flip that has a length, the weakest first."""
        some = (self.norms > 0) & self.norms.isfinite()
        return self.norms.argsort()[some[self.norms.argsort()]]

    @property
    def median(self) -> int | None:
        """The example whose radius is the median, or nearest to it; one with a proof if there is one about as near."""
        if not len(self.flipped):
            return None
        middle = self.audit.vulnerability.free.median
        middle = middle if math.isfinite(middle) else 0.0
        away = (self.norms[self.flipped] - middle).abs()
        away += torch.where(self._proved[self.flipped], 0.0, ABOUT * middle)
        return int(self.flipped[away.argmin()])

    @property
    def _proved(self) -> Tensor:
        """Whether something is proved of each."""
        proofs, proved = self.audit.vulnerability.certified, torch.zeros(len(self.norms), dtype=torch.bool)
        if proofs is not None:
            proved[proofs.rows] = proofs.lower > 0
        return proved

    @property
    def foremost(self) -> list[int]:
        """All of these rows, in the order in which they are worth a picture."""
        first = [] if self.median is None else [self.median]
        return list(dict.fromkeys([*first, *self.flipped.tolist(), *range(len(self.norms))]))

    def content(self) -> dict[str, Any]:
        """All that the page's script needs, as plain values."""
        return {
            "median": self.median,
            "answers": self._names(self.network.predict(self.own.X)),
            "flipped": self._flipped_names(),
            "rivals": self._rivals(),
            "moved": [self._moved(row) for row in range(len(self.norms))],
            "paths": self._paths(),
            "pixels": self._pixels(),
            "slices": {row: self._slice(row) for row in self.foremost[: self._sliced]},
        }

    def _names(self, labels: Tensor) -> list[str]:
        return [_word(self.audit.class_name(label)) for label in labels.tolist()]

    def _flipped_names(self) -> list[str | None]:
        names = self._names(self.network.predict(self.own.X[: len(self.flips)] + self.flips))
        some = set(self.flipped.tolist())
        return [name if row in some else None for row, name in enumerate(names)]

    def _rivals(self) -> dict[str, Any] | None:
        limit = self.audit.limit
        if limit is None:
            return None
        labels = self._names(self.data.y[limit.rivals])
        return {"rows": limit.rivals.tolist(), "labels": labels, "distances": (2 * limit.radii).tolist()}

    def _moved(self, row: int) -> list[dict[str, Any]]:
        """The features that the flip moves most: before, after, and in the nearest example of another class."""
        x, flip = self.own.X[row], self.flips[row]
        limit = self.audit.limit
        rival = None if limit is None else self.data.X[limit.rivals[row]]
        places = flip.abs().argsort(descending=True)[:FEATURES].tolist() if bool(flip.any()) else []
        return [
            {
                "feature": place,
                "before": float(x[place]),
                "after": float(x[place] + flip[place]),
                "rival": None if rival is None else float(rival[place]),
            }
            for place in places
        ]

    def _paths(self) -> dict[str, Any]:
        """The margin, and the answer by its number, at every step along every flip."""
        steps, rows = torch.linspace(0, REACH, STEPS, dtype=torch.float64), self.flipped
        margins, answers = [], []
        for row in rows.tolist():
            points = self.own.X[row] + steps[:, None] * self.flips[row]
            margins.append([_rounded(each) for each in self._margins(points, row)])
            answers.append(self._names(self.network.predict(points)))
        words = sorted({word for line in answers for word in line})
        numbers = {word: place for place, word in enumerate(words)}
        coded = [[numbers[word] for word in line] for line in answers]
        return {"rows": rows.tolist(), "reach": REACH, "margins": margins, "answers": coded, "words": words}

    def _margins(self, points: Tensor, row: int) -> list[float]:
        margins: list[float] = self.network.margins(points, self.own.y[row].expand(len(points))).double().tolist()
        return margins

    def _pixels(self) -> dict[str, Any] | None:
        shape = _picture_shape(self.data.truth.image)
        limit = self.audit.limit
        if shape is None or limit is None:
            return None
        rows = torch.tensor(self.foremost[: max(1, LARGEST // (3 * math.prod(shape)))])
        X, flips, others = self.own.X[rows], self.flips[rows], self.data.X[limit.rivals[rows]]
        low, high = (float(end) for end in torch.cat([X, others]).aminmax())
        sizes = flips.abs().amax(1).clamp_min(1e-300)
        return {
            "shape": shape,
            "low": low,
            "high": high,
            "rows": rows.tolist(),
            "examples": _bytes((X - low) / max(high - low, 1e-300) * 255),
            "rivals": _bytes((others - low) / max(high - low, 1e-300) * 255),
            "flips": _bytes(flips / sizes[:, None] * 127 + 128),
            "sizes": sizes.tolist(),
        }

    @property
    def _sliced(self) -> int:
        """How many examples have a slice: those that the work allows."""
        if self.audit.limit is None:
            return 0
        affordable = int(SLICE_WORK / (GRID**2 * self.audit.speed * operations(self.network)))
        return min(len(self.flipped), max(1, affordable))

    def _slice(self, row: int) -> dict[str, Any]:
        """The margin in the plane of the shortest flip (to the right) and of the way to the nearest rival (upwards)."""
        assert self.audit.limit is not None
        x, flip = self.own.X[row], self.flips[row]
        first = flip / flip.norm()
        way = self.data.X[self.audit.limit.rivals[row]] - x
        across = way - (way @ first) * first
        second = across / across.norm().clamp_min(1e-300)
        reach = SLICE_REACH * float(flip.norm())
        steps = torch.linspace(-reach, reach, GRID, dtype=torch.float64)
        up, along = torch.meshgrid(steps, steps, indexing="ij")
        points = x + along.reshape(-1, 1) * first + up.reshape(-1, 1) * second
        margins = torch.tensor(self._margins(points, row))
        size = float(margins.abs().max()) or 1.0
        rival = [float(way @ first), float(way @ second)]
        return {
            "reach": reach,
            "size": size,
            "grid": GRID,
            "margins": _bytes(margins / size * 127 + 128),
            "rival": rival,
        }


def _bytes(values: Tensor) -> str:
    return base64.b64encode(values.round().clamp(0, 255).to(torch.uint8).numpy().tobytes()).decode()


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _word(name: Any) -> str:
    return f"{name:g}" if isinstance(name, float) else str(name)


def _picture_shape(image: tuple[int, ...] | None) -> tuple[int, int, int] | None:
    """Channels, height and width of what can be drawn."""
    if image is None or len(image) not in (2, 3):
        return None
    channels, height, width = (1, *image) if len(image) == 2 else image
    return (channels, height, width) if channels in (1, 3) else None
