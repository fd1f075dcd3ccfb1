"""Tables in .parquet files: numbers in every column but one, which holds the label."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brittle.common.errors import InputError, require
from brittle.common.limits import LARGEST_TEXT, Budget
from brittle.settings.arrays import LONGEST_NAME
from brittle.settings.tables import label_column


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
    Budget(path).take(max(8 * rows * columns, unpacked), "the table")


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
