"""Whatever holds examples with labels, as data: arrays, pairs, tables with a label column, PyTorch's data sets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler

from brittle.common.errors import InputError, require, require_value
from brittle.common.kinds import check_kinds
from brittle.common.result import Result
from brittle.data.arrays import LARGEST_SAMPLE_BYTES, Examples, Labels
from brittle.data.base import Data, DataInfo

ROWS_AT_ONCE = 256
EXAMPLE_KEYS = ("x", "image", "images", "img", "input", "inputs", "features", "pixel_values", "data")
LABEL_KEYS = ("y", "label", "labels", "target", "targets", "class")


def as_data(X: Data | Examples, y: Labels | str | None = None) -> Data:
    """Data as they are; examples X with labels y (of a table the name of its label column), or the pair (X, y); a torch
    `Dataset` or `DataLoader` of such pairs, each example of which is taken once.

    Examples:
        >>> import numpy as np
        >>> import brittle as bt
        >>> bt.data.as_data(np.eye(2), np.array([0, 1])).y.tolist()
        [0, 1]
    """
    if isinstance(X, Data):
        require(y is None, "y is given beside a Data, which has labels of its own: leave it out")
        return X
    return Data(*split_pairs(X, y))


def split_pairs(X: Examples, y: Labels | str | None) -> tuple[Examples, Labels]:
    """Examples and labels, from whatever `as_data` takes."""
    if isinstance(X, Dataset | DataLoader):
        require(y is None, f"y is given beside a {type(X).__name__}, which has labels of its own: leave it out")
        return _collected(X)
    if isinstance(X, tuple) and len(X) == 2 and y is None:
        X, y = X
    if isinstance(y, str):
        return _divided(X, y)
    return X, require_value(y, "y is missing: give the labels of the examples, or data that have them")


def _divided(table: Any, label: str) -> tuple[Any, Any]:
    """The columns of a table but one, and that one."""
    named = hasattr(table, "columns") and hasattr(table, "drop")
    require(named, f"y is {label!r}, and X has no columns with names: give the labels themselves")
    columns = [str(each) for each in table.columns]
    require(label in columns, f"y is {label!r}; the columns are {', '.join(columns[:10])}")
    return table.drop(columns=[label]), table[label]


def _collected(source: Any) -> tuple[Tensor, Tensor | list[str]]:
    """All examples and labels, as long as there is room for them."""
    X, y, size = [], [], 0
    for batch in _batches(source):
        rows, labels = _pair(batch)
        size += 8 * rows.numel()
        fits = size <= LARGEST_SAMPLE_BYTES
        require(fits, f"the data take more than {LARGEST_SAMPLE_BYTES / 2**30:.3g} GiB of memory; give a subset")
        X.append(rows)
        y.append(labels)
    require(bool(X), f"the {type(source).__name__} has no examples; at least one is needed")
    same = len({rows.shape[1:] for rows in X}) == 1
    require(same, "the examples differ in shape; all of one shape are needed")
    numbers = [labels for labels in y if isinstance(labels, Tensor)]
    if len(numbers) == len(y):
        return torch.cat(X), torch.cat(numbers)
    return torch.cat(X), [str(label) for labels in y for label in labels]


def _batches(source: Any) -> Iterable[Any]:
    """A loader's own batches; where it goes through a whole data set, in the order of that, shuffled or not."""
    if isinstance(source, DataLoader):
        if not _takes_everything(source):
            return source
        return DataLoader(source.dataset, batch_size=source.batch_size or ROWS_AT_ONCE, collate_fn=source.collate_fn)
    return DataLoader(source, batch_size=ROWS_AT_ONCE, collate_fn=_stacked)


def _takes_everything(loader: DataLoader[Any]) -> bool:
    if isinstance(loader.dataset, IterableDataset) or loader.batch_size is None:
        return False
    sampler = loader.sampler
    known = loader.dataset  # `sampler.data_source` is what it was made for
    plain = type(sampler) in (SequentialSampler, RandomSampler) and getattr(sampler, "data_source", None) is known
    return plain and not getattr(sampler, "replacement", False) and len(sampler) == len(known)  # type: ignore[arg-type]


def _stacked(items: list[Any]) -> tuple[Any, Any]:
    """Examples of any kind that numpy understands, pictures of Pillow among them."""
    try:
        X, y = zip(*((item[0], item[1]) for item in map(_listed, items)), strict=True)
        return torch.stack([_row(each) for each in X]), _labels(y)
    except InputError:
        raise
    except (TypeError, KeyError, IndexError, ValueError, RuntimeError) as error:
        reason = str(error).partition("\n")[0][:160]
        raise InputError(f"the data set must give pairs (example, label) of one shape ({reason})") from None


def _listed(item: Any) -> Any:
    """An example and its label, where they stand in a dictionary; anything else as it is."""
    if not isinstance(item, Mapping):
        return item
    found = [[key for key in item if str(key).lower() in names] for names in (EXAMPLE_KEYS, LABEL_KEYS)]
    clear = [len(keys) for keys in found] == [1, 1]
    keys = ", ".join(map(str, list(item)[:8]))
    wanted = f"one of {', '.join(EXAMPLE_KEYS)} and one of {', '.join(LABEL_KEYS)}"
    require(clear, f"an example is a dictionary of {keys}; {wanted} are needed, or pairs (example, label)")
    return [item[keys[0]] for keys in found]


def _row(example: Any) -> Tensor:
    return example if isinstance(example, Tensor) else torch.from_numpy(np.array(example))


def _labels(y: tuple[Any, ...]) -> Tensor | list[str]:
    return list(y) if all(isinstance(each, str) for each in y) else torch.stack([torch.as_tensor(each) for each in y])


def _pair(batch: Any) -> tuple[Tensor, Tensor | list[str]]:
    batch = _listed(batch)
    paired = isinstance(batch, list | tuple) and len(batch) >= 2 and isinstance(batch[0], Tensor)
    require(paired, f"a batch is a {type(batch).__name__}; the pair (examples, labels) is needed")
    X, y, *_ = batch
    return X, y if isinstance(y, Tensor) else list(y)


# What a person asks first of data that somebody hands over.


@dataclass(frozen=True)
class Summary(Result):
    """Shape, labels and norms of data, and which truths they carry.

    `examples` and `test_examples` are counts, `labels` and `test_labels` those of each label. `dim` is the ambient
    dimension and `columns` what a row holds: fewer where `in_span`. `smallest_norm`, `mean_norm` and `largest_norm`
    are over the training examples; `truth` holds the numbers that are known, and the shapes of the vectors.

    Examples:
        >>> import brittle as bt
        >>> known = bt.data.summary(bt.data.Grid25().sample())
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


@check_kinds
def summary(data: Data) -> Summary:
    """What these data are, counted and measured.

    Examples:
        >>> import brittle as bt
        >>> round(bt.data.summary(bt.data.Line7().sample()).largest_norm, 6)
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


def _held(truth: DataInfo) -> dict[str, object]:
    """Numbers as they are, arrays by their shape."""
    values = {field.name: getattr(truth, field.name) for field in fields(truth)}
    return {
        name: list(value.shape) if isinstance(value, Tensor) else value
        for name, value in values.items()
        if value is not None
    }
