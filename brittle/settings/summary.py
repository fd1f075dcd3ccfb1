"""What a person asks first of data that somebody hands over."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from brittle.common.kinds import kinds_checked
from brittle.common.result import Result
from brittle.settings.base import Data, Truth


@dataclass(frozen=True)
class Summary(Result):
    """Shape, labels and norms of data, and which truths they carry.

    `examples` and `test_examples` are counts, `labels` and `test_labels` those of each label. `dim` is the ambient
    dimension and `columns` what a row holds: fewer where `in_span`. `smallest_norm`, `mean_norm` and `largest_norm`
    are over the training examples; `truth` holds the numbers that are known, and the shapes of the vectors.

    Examples:
        >>> import brittle as bt
        >>> known = bt.settings.summary(bt.settings.Grid25().sample())
        >>> known.examples, known.dim, known.labels
        (25, 3, {'-1': 12, '1': 13})
    """

    examples: int
    dim: int
    columns: int
    in_span: bool
    labels: dict[str, int]
    test_examples: int
    test_labels: dict[str, int]
    smallest_norm: float
    mean_norm: float
    largest_norm: float
    truth: dict[str, object]


@kinds_checked
def summary(data: Data) -> Summary:
    """What these data are, counted and measured.

    Examples:
        >>> import brittle as bt
        >>> round(bt.settings.summary(bt.settings.Line7().sample()).largest_norm, 6)
        1.414214
    """
    norms = data.X.norm(dim=1)
    return Summary(
        examples=len(data),
        dim=data.dim,
        columns=data.columns,
        in_span=data.in_span,
        labels=_counts(data.y),
        test_examples=0 if data.X_test is None else len(data.X_test),
        test_labels={} if data.y_test is None else _counts(data.y_test),
        smallest_norm=norms.min().item(),
        mean_norm=norms.mean().item(),
        largest_norm=norms.max().item(),
        truth=_held(data.truth),
    )


def _counts(y: Tensor) -> dict[str, int]:
    values, counts = torch.unique(y, return_counts=True)
    return {f"{value:g}": count for value, count in zip(values.tolist(), counts.tolist(), strict=True)}


def _held(truth: Truth) -> dict[str, object]:
    """Numbers as they are, arrays by their shape."""
    values = {field.name: getattr(truth, field.name) for field in fields(truth)}
    return {
        name: list(value.shape) if isinstance(value, Tensor) else value
        for name, value in values.items()
        if value is not None
    }
