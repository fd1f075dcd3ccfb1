"""Tables in .parquet files: numbers in every column but one, which holds the label."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brittle.common.errors import InputError, require
from brittle.common.limits import LARGEST_TEXT, Budget
from brittle.settings.tables import label_column


def read_parquet(path: Path, label: str | int) -> tuple[NDArray[Any], NDArray[Any]]:
    """X and y, after the table's own description has been held against what a file of its size may hold."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise InputError("reading .parquet needs the extra 'tables': pip install 'brittle[tables]'") from None
    try:
        limits = {"thrift_string_size_limit": LARGEST_TEXT, "thrift_container_size_limit": LARGEST_TEXT}
        with parquet.ParquetFile(path, memory_map=False, **limits) as file:
            _check_size(path, file.metadata)
            table = file.read(use_threads=False)
    except (arrow.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"is not a complete .parquet table ({str(error)[:200]})") from None
    names = [str(name) for name in table.column_names]
    place = label_column(label, names, len(names))
    features = [_numbers(names[each], table.column(each)) for each in range(len(names)) if each != place]
    return np.stack(features, 1), _labels(names[place], table.column(place))


def _check_size(path: Path, metadata: Any) -> None:
    rows, columns = metadata.num_rows, metadata.num_columns
    require(rows > 0, "has no rows; at least one example is needed")
    require(columns >= 2, f"has {columns} columns; features and a label are needed")
    unpacked = sum(metadata.row_group(each).total_byte_size for each in range(metadata.num_row_groups))
    Budget(path).take(max(8 * rows * columns, unpacked), "the table")


def _numbers(name: str, column: Any) -> NDArray[Any]:
    from pyarrow import types

    number = types.is_floating(column.type) or types.is_integer(column.type) or types.is_boolean(column.type)
    require(number, f"column {name!r} has type {column.type}; numbers are needed (which column is the label?)")
    _check_whole(name, column)
    values: NDArray[Any] = column.to_numpy().astype(np.float64)
    return values


def _labels(name: str, column: Any) -> NDArray[Any]:
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    text = types.is_string(column.type) or types.is_large_string(column.type)
    number = types.is_floating(column.type) or types.is_integer(column.type) or types.is_boolean(column.type)
    require(text or number, f"the label column {name!r} has type {column.type}; numbers or texts are needed")
    _check_whole(name, column)
    return np.asarray(column.to_pylist()) if text else np.asarray(column.to_numpy())


def _check_whole(name: str, column: Any) -> None:
    require(column.null_count == 0, f"column {name!r} has {column.null_count} gaps; a value in every row is needed")
