"""Numbers and labels as people have them (tensors, arrays, lists, tables), as tensors."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.common.errors import InputError, require, require_count
from brittle.common.parts import option

if TYPE_CHECKING:
    from brittle.data.base import DataInfo


LARGEST_CLASS_NUMBER = 10**6
LARGEST_SAMPLE_BYTES = 4 * 2**30


def check_examples(name: str, X: Tensor) -> Tensor:
    """X as float64."""
    require(X.ndim == 2, f"{name} has shape {tuple(X.shape)}; one row per example and one column per feature is needed")
    require(X.shape[0] > 0, f"{name} has no rows; at least one example is needed")
    require(X.shape[1] > 0, f"{name} has no columns; at least one feature is needed")
    require(X.dtype != torch.bool and not X.is_complex(), f"{name} has type {X.dtype}; real numbers are needed")
    X = X.double()
    if not torch.isfinite(X.sum()):  # ten times as fast as asking every entry; a finite sum has finite terms
        bad = int((~torch.isfinite(X)).any(1).sum())
        require(bad == 0, f"{name} holds NaN or infinity in {bad} of {len(X)} rows")
    return X


def check_labels(labels: dict[str, Tensor], counts: dict[str, int]) -> dict[str, Tensor]:
    """All of them as float64 signs, or all of them as int64 class numbers."""
    for name, y in labels.items():
        require(y.ndim == 1, f"{name} has shape {tuple(y.shape)}; one label per example is needed")
        require(len(y) == counts[name], f"{name} has {len(y)} labels for {counts[name]} examples")
    values = torch.cat([y.double() for y in labels.values()])
    # Only +1: a float is a one-class sample of a sign problem, an integer is the class number 1.
    floats = all(y.is_floating_point() for y in labels.values())
    signs = bool((values == -1).any()) or (floats and bool((values == 1).all()))
    for name, y in labels.items():
        _check_values(name, y.double(), signs)
    return {name: y.double() if signs else y.long() for name, y in labels.items()}


def _check_values(name: str, y: Tensor, signs: bool) -> None:
    wrong = y.abs() != 1 if signs else (y < 0) | (y != y.round()) | (y > LARGEST_CLASS_NUMBER)
    wrong |= ~torch.isfinite(y)
    shown = f"{y[wrong][0].item():g}" if wrong.any() else ""
    require(not wrong.any(), f"{name} holds {shown}; labels are -1 and 1, or class numbers 0, 1, 2, ...")


def check_truth(truth: "DataInfo", examples: int, columns: int, tests: int | None) -> None:
    """The truth fits the data that it speaks of."""
    dim = columns if truth.dim is None else truth.dim
    require(dim >= columns, f"dim is {dim}; it must be at least the {columns} columns of X")
    clusters = _length(truth.means)
    _shaped("means", truth.means, (clusters, columns))
    _shaped("mean_labels", truth.mean_labels, (clusters,))
    _numbered("cluster", truth.cluster, examples, clusters)
    _numbered("cluster_test", truth.cluster_test, tests, clusters)
    _shaped("basis", truth.basis, (columns, _width(truth.basis)))
    _shaped("complement", truth.complement, (columns, _width(truth.complement)))
    _shaped("offset", truth.offset, (columns,))
    if truth.image is not None:
        pixels = math.prod(truth.image)
        require(pixels == columns, f"image is {truth.image}, which is {pixels} numbers; X has {columns} columns")
    if truth.names is not None:
        clear = len(set(truth.names)) == len(truth.names) and all(isinstance(each, str) for each in truth.names)
        require(clear, f"names is {truth.names[:10]!r}; a text for every class is needed, all different")
    if truth.features is not None:
        named = len(truth.features) == columns and all(isinstance(each, str) for each in truth.features)
        require(named, f"features are {len(truth.features)} names; a text for each of the {columns} columns is needed")
    if truth.codimension is not None:
        low = 0 <= truth.codimension <= dim
        require(low, f"codimension is {truth.codimension}; it must lie between 0 and the dimension {dim}")


def _length(array: Tensor | None) -> int | None:
    return None if array is None or array.ndim == 0 else len(array)


def _width(array: Tensor | None) -> int | None:
    return None if array is None or array.ndim != 2 else array.shape[1]


def _shaped(name: str, array: Tensor | None, shape: tuple[int | None, ...]) -> None:
    """None in `shape` stands for any length."""
    if array is None:
        return
    fits = array.ndim == len(shape)
    fits = fits and all(want is None or want == have for want, have in zip(shape, array.shape, strict=True))
    wanted = ", ".join("any" if length is None else str(length) for length in shape)
    require(fits, f"{name} has shape {tuple(array.shape)}; ({wanted}) is needed")


def _numbered(name: str, array: Tensor | None, count: int | None, clusters: int | None) -> None:
    if array is None:
        return
    require(count is not None, f"{name} is given without test examples")
    _shaped(name, array, (count,))
    least, most = int(array.min()), int(array.max())
    require(least >= 0, f"{name} holds {least}; clusters are numbered from 0")
    known = clusters is None or most < clusters
    require(known, f"{name} holds {most}; the clusters are numbered from 0 to {(clusters or 0) - 1}")


def require_dim(name: str, dim: int) -> None:
    """A dimension: whole numbers beyond 2^53 are not exact as float64."""
    require_count(name, dim)
    require(dim <= 2**53, f"{name} is {dim}; it must be at most 2^53")


DIM = option("Dimension d of the space.", check=require_dim)


def require_room(rows: int, columns: int, advice: str) -> None:
    """Refuse a matrix that would exhaust the memory."""
    size = 8 * rows * columns
    fits = size <= LARGEST_SAMPLE_BYTES
    require(fits, f"{rows} examples of dimension {columns} take {size / 2**30:.3g} GiB of memory; {advice}")


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


def number_labels(labels: Mapping[str, Labels], names: Names | None) -> tuple[dict[str, Tensor], Names | None]:
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
