"""What data must look like before anybody computes with them."""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from brittle.common.errors import require, require_count
from brittle.common.parts import option

if TYPE_CHECKING:
    from brittle.settings.base import Truth

LARGEST_CLASS_NUMBER = 10**6
LARGEST_SAMPLE_BYTES = 4 * 2**30


def checked_examples(name: str, X: Tensor) -> Tensor:
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


def checked_labels(labels: dict[str, Tensor], counts: dict[str, int]) -> dict[str, Tensor]:
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


def check_truth(truth: "Truth", examples: int, columns: int, tests: int | None) -> None:
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
