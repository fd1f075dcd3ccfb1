"""Data files: .npz with everything that `Data` holds, .pt tensors, .csv and .parquet tables, folders of pictures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from brittle.common.errors import KINDS_OF_DATA, InputError, about, require, suffix_of
from brittle.common.files import existing, read_npz, write_npz
from brittle.common.kinds import check_kinds
from brittle.common.parts import option
from brittle.common.torch_files import PickledCall, Storages, describe_value, open_pt
from brittle.data.arrays import Examples, Labels
from brittle.data.base import Data, DataInfo, GivenSet
from brittle.data.picture_folder import picture_folder
from brittle.data.tables import read_csv, read_parquet
from brittle.data.transforms import CLASSES, two_classes

EXAMPLES = ("X", "y", "X_test", "y_test")
VECTORS = ("means", "mean_labels", "basis", "complement", "offset")
INDICES = ("cluster", "cluster_test")
COUNTS = ("dim", "codimension")
NUMBERS = ("radius", "coherence", "noise")
TEXTS = ("y", "y_test", "names", "features")  # which may be texts
NAMES = (*EXAMPLES, *VECTORS, *INDICES, *COUNTS, *NUMBERS, "image", "names", "features")
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class File(GivenSet):
    """The examples of a .npz, .pt, .csv or .parquet file at `path`, or of a folder of pictures with one for each class.

    `label` is the label column of a table, by name or by position; `header` says whether a .csv has names in its first
    line (None: look). `classes` keeps two labels and calls them -1 and +1.

    Examples:
        >>> import brittle as bt
        >>> bt.data.save_data(bt.data.Line7().sample(), "line.npz")
        >>> data = bt.data.File("line.npz").sample()
        >>> len(data), data.dim
        (7, 2)
    """

    name: ClassVar = "file"

    path: str | Path = field(metadata=option(f"The data: {KINDS_OF_DATA}."))
    label: str | int = field(
        default=-1,
        metadata=option(
            "The table's label column, by name or number from 0 (-1: the last).",
            kind=str,
            read=lambda text, given: int(text) if text.lstrip("-").isdigit() else text,
        ),
    )
    header: bool | None = field(default=None, metadata=option("Whether the .csv begins with names."))
    classes: tuple[int, int] | tuple[str, str] | None = field(default=None, metadata=CLASSES)

    def load(self) -> Data:
        path = Path(self.path)
        if path.is_dir():
            return _named(path, lambda: self._chosen(picture_folder(path)))
        suffix = suffix_of(existing(path))
        if suffix == ".csv":
            return _named(path, lambda: _table(*read_csv(path, self.label, self.header, self.classes)))
        if suffix == ".parquet":
            return _named(path, lambda: self._chosen(_table(*read_parquet(path, self.label))))
        require(suffix in READERS, f"{path}: the suffix is {suffix!r}; {KINDS_OF_DATA} are read")
        return _named(path, lambda: self._chosen(data_from(READERS[suffix](path))))

    def _chosen(self, data: Data) -> Data:
        return data if self.classes is None else two_classes(data, _numbers(data.truth.names, self.classes))


def _table(X: Examples, y: Labels, features: Sequence[str] | None) -> Data:
    """Names of columns that are not all different say nothing."""
    clear = features is not None and len(set(features)) == len(features)
    return Data(X, y, truth=DataInfo(features=tuple(features) if clear and features else None))


@check_kinds
def load_data(path: str | Path) -> Data:
    """Data from a .npz or .pt file, a .csv or .parquet table (label in the last column) or a folder of pictures.

    Examples:
        >>> import brittle as bt
        >>> bt.data.save_data(bt.data.Grid25().sample(), "grid.npz")
        >>> bt.data.load_data("grid.npz").X.shape
        torch.Size([25, 3])
    """
    return File(path).load()


@check_kinds
def save_data(data: Data, path: str | Path) -> None:
    """Everything that `data` holds, its truth too, as .npz; `load_data` gives it back.

    Examples:
        >>> import brittle as bt
        >>> bt.data.save_data(bt.data.Line7().sample(), "line.npz")
        >>> bt.data.load_data("line.npz").truth.codimension
        1
    """
    require(Path(path).suffix.lower() == ".npz", f"{path}: data are written as .npz; choose such a name")
    values = {name: getattr(data, name) for name in EXAMPLES}
    values |= {field.name: getattr(data.truth, field.name) for field in fields(DataInfo)}
    arrays = {name: _array(value) for name, value in values.items() if value is not None}
    write_npz(path, arrays)


def data_from(arrays: Arrays) -> Data:
    """Data from named arrays of numbers."""
    for name in ("X", "y"):
        require(name in arrays, f"array '{name}' is missing; X (examples, features) and y (labels) are needed")
    try:
        X, y, X_test, y_test = (_own(arrays.get(name)) for name in EXAMPLES)
        return Data(X, y, X_test, y_test, truth_from(arrays))
    except InputError as error:
        raise InputError(f"array {error}") from None


def truth_from(arrays: Arrays) -> DataInfo:
    known: dict[str, Any] = {name: _vector(arrays, name) for name in VECTORS}
    known |= {name: _whole(arrays, name) for name in INDICES}
    known |= {name: _count(arrays, name) for name in COUNTS}
    known |= {name: _number(arrays, name) for name in NUMBERS}
    image = _whole(arrays, "image")
    if image is not None:
        shaped = image.ndim == 1 and bool((image > 0).all())
        require(shaped, "image must be the shape of one example, such as [28, 28]")
        known["image"] = tuple(image.tolist())
    for name in ("names", "features"):
        if name in arrays:
            texts = arrays[name].ndim == 1 and arrays[name].dtype.kind == "U"
            require(texts, f"{name} must be a list of texts")
            known[name] = tuple(arrays[name].tolist())
    for name in ("basis", "complement"):
        _check_orthonormal(name, known[name])
    return DataInfo(**known)


def _own(array: np.ndarray | None) -> np.ndarray | Tensor | None:
    """Without the copy that `Data` makes of an array, whose owner may change it: this one was just read."""
    plain = array is not None and array.dtype == np.float64 and array.flags.c_contiguous and array.flags.writeable
    return torch.from_numpy(array) if plain else array


def _array(value: Any) -> np.ndarray:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)


def _tensor(arrays: Arrays, name: str) -> Tensor | None:
    if name not in arrays:
        return None
    array = arrays[name]
    kind = np.int64 if array.dtype.kind in "iu" else np.float64
    if array.dtype.kind == "b":
        return torch.from_numpy(np.ascontiguousarray(array))
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes an infinity, which is refused later
        return torch.from_numpy(np.ascontiguousarray(array, dtype=kind))


def _vector(arrays: Arrays, name: str) -> Tensor | None:
    tensor = _tensor(arrays, name)
    if tensor is None:
        return None
    require(bool(torch.isfinite(tensor).all()), f"{name} holds NaN or infinity")
    signs = name != "mean_labels" or bool((tensor.abs() == 1).all())
    require(signs, "mean_labels must be -1 and 1")
    return tensor.double()


def _whole(arrays: Arrays, name: str) -> Tensor | None:
    tensor = _vector(arrays, name)
    if tensor is None:
        return None
    whole = tensor.numel() > 0 and bool(((tensor == tensor.round()) & (tensor.abs() < 2**53)).all())
    require(whole, f"{name} must hold whole numbers")
    return tensor.long()


def _number(arrays: Arrays, name: str) -> float | None:
    return _single(_vector(arrays, name), f"{name} must be one number of at least 0")


def _count(arrays: Arrays, name: str) -> int | None:
    count = _single(_whole(arrays, name), f"{name} must be one whole number of at least 0")
    return None if count is None else int(count)


def _single(tensor: Tensor | None, otherwise: str) -> float | None:
    if tensor is not None:
        require(tensor.numel() == 1 and bool(tensor >= 0), otherwise)
    return None if tensor is None else tensor.item()


def _check_orthonormal(name: str, basis: Tensor | None) -> None:
    if basis is None or basis.ndim != 2:
        return
    tall = basis.shape[1] <= basis.shape[0]
    require(tall, f"{name} must have orthonormal columns (there are {basis.shape[1]} of length {basis.shape[0]})")
    distance = (basis.T @ basis - torch.eye(basis.shape[1], dtype=torch.float64)).abs().max() if basis.numel() else 0
    require(bool(distance < 1e-6), f"{name} must have orthonormal columns (they are off by {float(distance):.2g})")


def _named(path: Path, read: Callable[[], Data]) -> Data:
    """Whatever is wrong with the content, say in which file."""
    try:
        return read()
    except InputError as error:
        raise about(path, error) from None


def _read_npz(path: Path) -> Arrays:
    return read_npz(path, NAMES, TEXTS)


def _read_pt(path: Path) -> Arrays:
    """A dictionary of named tensors, or the pair (X, y)."""
    with open_pt(path) as (content, storages):
        if isinstance(content, list | tuple) and len(content) == 2:
            content = dict(zip(("X", "y"), content, strict=True))
        found = f"must hold a dictionary with the tensors X and y, or the pair (X, y), not {describe_value(content)}"
        require(isinstance(content, dict), found)
        return {name: _plain(name, content[name], storages) for name in NAMES if name in content}


def _plain(name: str, value: Any, storages: Storages) -> np.ndarray:
    """A tensor, a number, or a list of numbers or of rows of numbers."""
    if isinstance(value, PickledCall):
        tensor = storages.tensor(name, value)
        require(not tensor.is_complex(), f"array '{name}' must be a dense real tensor")
        return (tensor.double() if tensor.is_floating_point() else tensor).numpy()
    cells: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
    if cells and all(isinstance(row, list | tuple) and len(row) == len(cells[0]) for row in cells):
        cells = [cell for row in cells for cell in row]
    numbers = all(isinstance(cell, bool | int | float) for cell in cells)
    require(numbers, f"array '{name}' has type {type(value).__name__}; a tensor is needed")
    return np.asarray(value)


READERS: dict[str, Callable[[Path], Arrays]] = {".npz": _read_npz, ".pt": _read_pt}


def _numbers(names: tuple[str, ...] | None, classes: tuple[Any, Any]) -> tuple[int, int]:
    """By their names, where they have names."""
    try:
        low, high = (names.index(str(each)) if names and str(each) in names else int(each) for each in classes)
    except ValueError:
        known = "numbers" if names is None else ", ".join(names[:10])
        raise InputError(f"classes is {classes!r}; the labels are {known} here") from None
    return low, high
