"""What tells the causes of a weakness apart: labels, margins, one direction for all, and where the flips point."""

from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.auditing.limit import Limit
from brittle.auditing.vulnerability import Vulnerability
from brittle.common.errors import InputError
from brittle.common.result import Result
from brittle.geometry import nearest_rivals
from brittle.settings import Data

NEIGHBOURS, AGREEING = 5, 4


@dataclass(frozen=True, eq=False)
class Evidence(Result):
    """A measure that does not apply is None.

    `doubtful` are the rows of training examples of whose five nearest neighbours four at least agree on another label,
    looked for among `compared` examples; `unsettled` is the share of these most of whose neighbours have other labels,
    and `allowed_gain` how many times more the data would allow in the median without the doubtful ones.
    `weakest_margins` is the margin that a tenth of the training examples do not reach, over the median margin.
    `one_direction` is the median radius over the size at which the best single direction flips half of the examples: 1
    where it is as good as each one's own. `toward_rivals` is the mean cosine between the shortest flip and the way to
    the nearest example of another class.
    """

    doubtful: Tensor
    compared: int
    unsettled: float
    allowed_gain: float | None
    weakest_margins: float | None
    one_direction: float | None
    toward_rivals: float | None

    @property
    def doubtful_share(self) -> float:
        return len(self.doubtful) / self.compared


def evidence(
    margins: Tensor, data: Data, audited: Data, weak: Vulnerability, bound: Limit | None, compared: int
) -> Evidence:
    """Of a network with these `margins` on training examples, and of the `audited` examples.

    Labels are compared among so many examples.
    """
    rows = torch.arange(0, len(data), -(-len(data) // compared))
    some = data.take(rows)
    odd, unsettled = _contradicted(some)
    return Evidence(
        doubtful=rows[odd],
        compared=len(rows),
        unsettled=unsettled,
        allowed_gain=_allowed_gain(some, odd),
        weakest_margins=_weakest(margins),
        one_direction=_one_direction(weak),
        toward_rivals=None if bound is None else _toward(weak, audited, data.X[bound.rivals]),
    )


def _contradicted(data: Data) -> tuple[Tensor, float]:
    """Which examples (n,) have neighbours that agree on another label, and the share with most neighbours of others."""
    squares = data.X.square().sum(1)
    far = torch.addmm(squares, data.X, data.X.T, alpha=-2).fill_diagonal_(torch.inf)
    count = min(NEIGHBOURS, len(data) - 1)
    if count < AGREEING:
        return torch.zeros(len(data), dtype=torch.bool), 0.0
    labels = data.y[far.topk(count, largest=False).indices]
    commonest = labels.mode(1).values
    agreeing = (labels == commonest[:, None]).sum(1) >= AGREEING
    others = (labels != data.y[:, None]).double().mean(1)
    return agreeing & (commonest != data.y), float((others > 0.5).double().mean())


def _allowed_gain(data: Data, odd: Tensor) -> float | None:
    try:
        before, after = (float(nearest_rivals(X, y)[0].median()) for X, y in _with_and_without(data, odd))
    except InputError:
        return None
    return after / before if before > 0 else None


def _with_and_without(data: Data, odd: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    kept = data if bool(odd.all()) else data.take((~odd).nonzero()[:, 0])
    return (data.X, data.y), (kept.X, kept.y)


def _weakest(margins: Tensor) -> float | None:
    middle = float(margins.median())
    return float(margins.kthvalue(1 + len(margins) // 10).values) / middle if middle > 0 else None


def _one_direction(weak: Vulnerability) -> float | None:
    half = min((each.half for each in weak.universal), default=torch.inf)
    return weak.free.median / half if 0 < half < torch.inf and weak.free.median < torch.inf else None


def _toward(weak: Vulnerability, audited: Data, rivals: Tensor) -> float | None:
    flipped = weak.free.rows[(weak.free.norms > 0) & weak.free.norms.isfinite()]
    if not len(flipped):
        return None
    ways = rivals[flipped] - audited.X[flipped]
    return float(torch.nn.functional.cosine_similarity(ways, weak.perturbations[flipped], dim=1).mean())
