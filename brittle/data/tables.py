"""Tables in .csv files: numbers in every column but one, which holds the label."""

import csv
import math
from array import array
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.common.errors import InputError, require, require_value
from brittle.common.limits import LARGEST_TEXT, ByteLimit
from brittle.data.arrays import LONGEST_NAME

Row = tuple[int, list[str]]  # line number in the file, cells


def read_csv(
    path: Path, label: str | int, header: bool | None, classes: tuple[int, int] | tuple[str, str] | None
) -> tuple[Tensor, Tensor | list[str], list[str] | None]:
    """X and y, numbers where all labels are and otherwise texts, and the names of the features where there are any."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            return _read(_rows(stream), label, header, classes)
    except UnicodeDecodeError:
        raise InputError("is not a text file") from None
    except csv.Error as error:
        raise InputError(f"is not a table ({error})") from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})") from None


def _read(
    rows: Iterator[Row], label: str | int, header: bool | None, classes: tuple[int, int] | tuple[str, str] | None
) -> tuple[Tensor, Tensor | list[str], list[str] | None]:
    """Row by row: a table is held as numbers, 8 bytes for each, and never as text."""
    first = next(rows, None)
    if first is None:
        raise InputError("has no rows; at least one example is needed")
    width = len(first[1])
    require(width >= 2, f"line {first[0]} has {width} column; features and a label are needed")
    named = _has_header(first[1], label, width) if header is None else header
    column = label_column(label, first[1] if named else None, width)
    numbers, labels = array("d"), []
    words: dict[str, str] = {}  # every label is kept once
    for row in rows if named else chain([first], rows):
        numbers.extend(_features(row, column, width))
        word = row[1][column].strip()
        labels.append(words.setdefault(word, word))
    require(len(labels) > 0, "has no rows; at least one example is needed")
    X = torch.frombuffer(numbers, dtype=torch.float64).reshape(len(labels), width - 1)
    called = [cell.strip() for place, cell in enumerate(first[1]) if place != column] if named else None
    return *_labelled(X, labels, classes), called


def _rows(stream: TextIO) -> Iterator[Row]:
    """The rows that hold anything, with the number of their last line."""
    lines = _Lines(stream)
    delimiter = _delimiter(stream.readline(LARGEST_TEXT))
    stream.seek(0)
    reader = csv.reader(lines, strict=True, delimiter=delimiter)
    for cells in reader:
        lines.taken = 0
        if any(cell.strip() for cell in cells):
            yield reader.line_num, cells


def _delimiter(line: str) -> str:
    """What divides the first line, outside of quotes: a comma, unless another mark is there as often."""
    outside = "".join(line.split('"')[::2])
    commas = outside.count(",")
    return next((mark for mark in "\t;|" if outside.count(mark) >= max(1, commas)), ",")


class _Lines:
    """The lines of a file, none of which, nor a row of several, is longer than a text may be."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.taken = stream, 0

    def __iter__(self) -> Iterator[str]:
        while line := self.stream.readline(LARGEST_TEXT):
            self.taken += len(line)
            require(self.taken < LARGEST_TEXT, f"has a row of more than {LARGEST_TEXT} characters")
            yield line


def _has_header(cells: list[str], label: str | int, width: int) -> bool:
    """A first line with a word in a feature's place is one of names; a label by name needs one."""
    if isinstance(label, str):
        return True
    column = label % width
    return any(_number(cell) is None for place, cell in enumerate(cells) if place != column)


def label_column(label: str | int, names: list[str] | None, width: int) -> int:
    """Its place, from its name or number."""
    if isinstance(label, int):
        require(-width <= label < width, f"label is {label}; the columns are numbered from 0 to {width - 1}")
        return label % width
    names = require_value(names, f"label is {label!r}; a label column by name needs a header line")
    names = [name.strip() for name in names]
    require(label in names, f"label is {label!r}; the columns are {', '.join(names[:10])}")
    return names.index(label)


def _features(row: Row, column: int, width: int) -> list[float]:
    line, cells = row
    require(len(cells) == width, f"line {line} has {len(cells)} columns; the first line has {width}")
    values = [_number(cell) for cell in cells]
    del values[column]
    features = [value for value in values if value is not None and math.isfinite(value)]
    if len(features) < width - 1:
        bad = next(place for place, cell in enumerate(cells) if place != column and not _is_finite(cell))
        raise InputError(f"line {line}, column {bad} holds {cells[bad][:40]!r}; a finite number is needed")
    return features


def _is_finite(cell: str) -> bool:
    value = _number(cell)
    return value is not None and math.isfinite(value)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _labelled(
    X: Tensor, labels: list[str], classes: tuple[int, int] | tuple[str, str] | None
) -> tuple[Tensor, Tensor | list[str]]:
    if classes is not None:
        return _two_labels(X, labels, [str(label) for label in classes])
    numbers = [_number(label) for label in labels]
    if all(number is not None for number in numbers):
        return X, torch.tensor(numbers, dtype=torch.float64)
    return X, labels


def _two_labels(X: Tensor, labels: list[str], classes: list[str]) -> tuple[Tensor, Tensor]:
    held = sorted(set(labels))
    for wanted in classes:
        require(any(_same(wanted, label) for label in held), f"no row has the label {wanted}; there are {held[:10]}")
    signs = {
        label: next((sign for sign, wanted in zip((-1, 1), classes, strict=True) if _same(wanted, label)), 0)
        for label in held
    }
    y = torch.tensor([signs[label] for label in labels], dtype=torch.float64)
    return X[y != 0], y[y != 0]


def _same(wanted: str, label: str) -> bool:
    """3 and 3.0 are one label."""
    number = _number(wanted)
    return wanted == label or (number is not None and number == _number(label))


# Tables in .parquet files: numbers in every column but one, which holds the label.


def read_parquet(path: Path, label: str | int) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    """X, y and what the features are called.

    The table's own description is held against what a file of its size may hold before it is read.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise InputError("reading .parquet needs the extra 'tables': pip install 'brittle[tables]'") from None
    limits = {"thrift_string_size_limit": LARGEST_TEXT, "thrift_container_size_limit": LARGEST_TEXT}
    try:
        with parquet.ParquetFile(path, memory_map=False, **limits) as file:
            _check_size(path, file.metadata)
            names = [str(name) for name in file.schema_arrow.names]
            place = label_column(label, names, len(names))
            _check_kinds(file.schema_arrow, place)
        # Every text is kept once: a small file may repeat a long one without end.
        with parquet.ParquetFile(path, memory_map=False, read_dictionary=[names[place]], **limits) as file:
            table = file.read(use_threads=False)
            features = [_numbers(table.column(each)) for each in range(len(names)) if each != place]
            called = [name for each, name in enumerate(names) if each != place]
            return np.stack(features, 1), _labels(table.column(place)), called
    except (arrow.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"is not a complete .parquet table ({str(error)[:200]})") from None


def _check_size(path: Path, metadata: Any) -> None:
    rows, columns = metadata.num_rows, metadata.num_columns
    require(rows > 0, "has no rows; at least one example is needed")
    require(columns >= 2, f"has {columns} columns; features and a label are needed")
    unpacked = sum(metadata.row_group(each).total_byte_size for each in range(metadata.num_row_groups))
    ByteLimit(path).take(max(8 * rows * columns, unpacked), "the table")


def _check_kinds(schema: Any, place: int) -> None:
    """Before anything is unpacked: numbers everywhere, and for labels texts too."""
    for each, column in enumerate(schema):
        if each == place:
            good = _is_number(column.type) or _is_text(column.type)
            require(good, f"the label column {column.name!r} has type {column.type}; numbers or texts are needed")
        else:
            words = "numbers are needed (which column is the label?)"
            require(_is_number(column.type), f"column {column.name!r} has type {column.type}; {words}")


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _numbers(column: Any) -> NDArray[Any]:
    _check_whole(column)
    values: NDArray[Any] = column.to_numpy().astype(np.float64)
    return values


def _labels(column: Any) -> NDArray[Any]:
    _check_whole(column)
    if not hasattr(column.type, "value_type"):
        return np.asarray(column.to_numpy())
    column = column.unify_dictionaries()
    words = column.chunk(0).dictionary.to_pylist()
    long = max((len(word) for word in words), default=0)
    require(long <= LONGEST_NAME, f"a label is a text of {long} characters; a class has a short name")
    places = np.concatenate([np.asarray(chunk.indices) for chunk in column.chunks])
    labels: NDArray[Any] = np.asarray(words)[places]
    return labels


def _check_whole(column: Any) -> None:
    require(column.null_count == 0, f"a column has {column.null_count} gaps; a value in every row is needed")
