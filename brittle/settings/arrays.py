"""Numbers and labels as people have them (tensors, arrays, lists, tables), as tensors."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.settings.checks import LARGEST_CLASS_NUMBER

LONGEST_NAME = 256  # characters of the name of a class

Examples: TypeAlias = Tensor | NDArray[Any] | Sequence[Any] | Any  # Any: pandas and its like, which need not be there
Labels: TypeAlias = Tensor | NDArray[Any] | Sequence[Any] | Any
Names = tuple[str, ...]


def as_rows(name: str, X: Examples) -> tuple[Tensor, tuple[int, ...] | None]:
    """Examples as flat rows, and the shape of one of them where it has several axes."""
    values = X.detach().cpu() if isinstance(X, Tensor) else _numbers(name, X)
    if values.ndim <= 2:
        return values, None
    shape = tuple(values.shape[1:])
    return values.reshape(len(values), math.prod(shape)), shape


def column_names(X: Any) -> tuple[str, ...] | None:
    """What a table calls its columns; None for what has no names."""
    named = hasattr(X, "columns") and hasattr(X, "dtypes")
    names = tuple(map(str, X.columns)) if named else ()
    return names if len(set(names)) == len(names) > 0 else None


def _numbers(name: str, X: Any) -> Tensor:
    require(not hasattr(X, "toarray"), f"{name} is a sparse {type(X).__name__}; give {name}.toarray()")
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        words = [str(column) for column, kind in zip(X.columns, X.dtypes, strict=True) if not _is_number(kind)]
        require(not words, f"{name} has columns that hold no numbers: {', '.join(words[:5])}")
    return _tensor(name, _array(name, X), whole=np.float64)  # as which they end: pictures of bytes take room once


def _is_number(kind: Any) -> bool:
    """Of pandas' own types too, some of which are numbers with gaps."""
    return str(getattr(kind, "kind", "")) in ("f", "i", "u", "b")


def _array(name: str, values: Any) -> NDArray[Any]:
    try:
        if isinstance(values, list | tuple) and any(isinstance(each, Tensor) for each in values):
            values = [np.asarray(each) for each in values]
        return np.asarray(values)
    except (ValueError, TypeError, RuntimeError):
        raise InputError(f"{name} is a {type(values).__name__} whose parts differ in shape or kind") from None


def _tensor(name: str, array: NDArray[Any], whole: type = np.int64) -> Tensor:
    """Floats as float64, integers as the type `whole`."""
    if array.dtype.kind == "O":  # numbers beside None, or numbers of several kinds
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{name} holds something that is no number, such as {_example(array)}") from None
    kinds = {"f": np.float64, "i": whole, "u": whole, "b": np.bool_}
    require(array.dtype.kind in kinds, f"{name} has type {array.dtype}; real numbers are needed")
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes an infinity, which is refused later
        return torch.from_numpy(np.array(array, dtype=kinds[array.dtype.kind], order="C"))


def _example(array: NDArray[Any]) -> str:
    return repr(next(each for each in array.flat if not isinstance(each, int | float)))[:60]


def numbered(labels: Mapping[str, Labels], names: Names | None) -> tuple[dict[str, Tensor], Names | None]:
    """Labels as numbers, and what their classes are called.

    Texts are numbered in the order of `names`, in alphabetical order where there are none; two become -1 and +1.
    """
    arrays = {name: y.detach().cpu() if isinstance(y, Tensor) else _array(name, y) for name, y in labels.items()}
    flat = {name: _one_each(y) for name, y in arrays.items()}
    words = {name: _words(y) for name, y in flat.items()}
    if not any(words.values()):
        return {name: y if isinstance(y, Tensor) else _tensor(name, y) for name, y in flat.items()}, names
    for name, texts in words.items():
        require(texts is not None, f"{name} holds numbers where other labels are texts; give texts everywhere")
    known = names or _names({text for texts in words.values() for text in texts or ()})
    return {name: _signs(_places(name, texts or [], known), len(known)) for name, texts in words.items()}, known


def _one_each(y: Tensor | NDArray[Any]) -> Tensor | NDArray[Any]:
    """One label for each example, also where it stands in a column or is the place of the only 1 in a row of zeros."""
    if y.ndim != 2 or not len(y):
        return y
    if y.shape[1] == 1:
        return y.reshape(-1)
    units = isinstance(y, Tensor) or y.dtype.kind in "fiub"
    if units and bool(((y == 0) | (y == 1)).all()) and bool(((y == 1).sum(1) == 1).all()):
        return (y == 1).int().argmax(1) if isinstance(y, Tensor) else y.argmax(1)
    return y


def _words(y: Tensor | NDArray[Any]) -> list[str] | None:
    """The labels, where they are texts."""
    if isinstance(y, Tensor) or y.ndim != 1 or not len(y):
        return None
    texts = y.dtype.kind == "U" or (y.dtype.kind in "OT" and all(isinstance(each, str) for each in y))
    return [str(each) for each in y] if texts else None


def _names(texts: set[str]) -> Names:
    few = len(texts) <= LARGEST_CLASS_NUMBER
    require(few, f"the labels are {len(texts)} different texts; at most {LARGEST_CLASS_NUMBER} classes are read")
    long = max(texts, key=len)
    require(len(long) <= LONGEST_NAME, f"a label is a text of {len(long)} characters; a class has a short name")
    return tuple(sorted(texts))


def _places(name: str, texts: list[str], names: Names) -> Tensor:
    places = {word: place for place, word in enumerate(names)}
    strange = next((text for text in texts if text not in places), None)
    require(strange is None, f"{name} holds {strange!r}, which is none of the classes {', '.join(names[:10])}")
    return torch.tensor([places[text] for text in texts])


def _signs(y: Tensor, classes: int) -> Tensor:
    return (2 * y - 1).double() if classes == 2 else y
