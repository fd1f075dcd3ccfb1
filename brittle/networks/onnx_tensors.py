"""The arrays of ONNX files: plain numbers of a known type, after their shape has been held against what is there."""

import math
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.common.limits import LARGEST_BYTES, Budget

EXTERNAL = 1
TYPES = {  # by TensorProto.DataType: how the bytes are read, and the field that holds single numbers otherwise
    1: ("<f4", "float_data"), 11: ("<f8", "double_data"), 10: ("<f2", "int32_data"), 16: ("<u2", "int32_data"),
    7: ("<i8", "int64_data"), 6: ("<i4", "int32_data"), 5: ("<i2", "int32_data"), 3: ("|i1", "int32_data"),
    2: ("|u1", "int32_data"), 9: ("|b1", "int32_data"),
}  # fmt: skip
TORCH_TYPES = {
    1: torch.float32, 11: torch.float64, 10: torch.float16, 16: torch.bfloat16, 7: torch.int64, 6: torch.int32,
    5: torch.int16, 3: torch.int8, 2: torch.uint8, 9: torch.bool,
}  # fmt: skip
HALVES = (10, 16)
BRAIN_FLOAT = 16


class ExternalData:
    """The files of one folder that hold the arrays of an ONNX file there: plain files, each read within a budget."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._budgets: dict[str, Budget] = {}

    def bytes_of(self, array: str, stored: Any, size: int) -> bytes:
        """The `size` bytes that an array needs, from where it says."""
        entries = {each.key: each.value for each in stored.external_data}
        require(len(entries) == len(stored.external_data), f"{array} names one thing about its file twice")
        name = entries.get("location", "")
        odd = name in (".", "..") or any(each in "/\\:" or not each.isprintable() for each in name)
        plain = 0 < len(name) <= 255 and not odd
        require(plain, f"{array} lies in '{name[:100]}', which is no file of the same folder")
        start = _count(array, "offset", entries.get("offset", "0"))
        length = _count(array, "length", entries.get("length", str(size)))
        require(length == size, f"{array} needs {size} bytes, and {length} are named in '{name[:100]}'")
        return self._read(array, name, start, length)

    def _read(self, array: str, name: str, start: int, length: int) -> bytes:
        path = self._folder / name
        try:
            stream = open(path, "rb", opener=_opened)  # noqa: SIM115
        except (OSError, ValueError) as error:
            reason = "it is a link" if path.is_symlink() else getattr(error, "strerror", None) or error
            raise InputError(f"{array} lies in '{name[:100]}', which cannot be read ({reason})") from None
        with stream:
            state = os.fstat(stream.fileno())
            plain = stat.S_ISREG(state.st_mode) and not path.is_symlink()
            require(plain, f"{array} lies in '{name[:100]}', which is no plain file")
            end = start + length
            require(end <= state.st_size, f"{array} ends at {end} in '{name[:100]}', which holds {state.st_size} bytes")
            self._budgets.setdefault(name, Budget(path)).take(length, f"the arrays in '{name[:100]}'")
            stream.seek(start)
            content = stream.read(length)
        require(len(content) == length, f"{array}: '{name[:100]}' changed while it was read")
        return content


def _opened(path: str, flags: int) -> int:
    """Links are not followed, and a pipe is not waited for."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _count(array: str, key: str, value: str) -> int:
    fits = value.isascii() and value.isdecimal() and len(value) < 19
    require(fits, f"{array} has '{value[:40]}' as the {key} of its numbers; a whole number of bytes is needed")
    return int(value)


def onnx_tensor(path: str | Path, stored: Any, external: ExternalData | None = None) -> Tensor:
    """One array of the file, or of one beside it."""
    array = f"{path}: array '{stored.name[:100]}'"
    outside = stored.data_location == EXTERNAL
    inside = not outside or (external is not None and not stored.raw_data)
    require(inside and not stored.HasField("segment"), f"{array} lies in parts, or in a file that is not read")
    require(stored.data_type in TYPES, f"{array} is of the type {stored.data_type}; real numbers are needed")
    kind, field = TYPES[stored.data_type]
    dtype, shape = np.dtype(kind), tuple(stored.dims)
    count = math.prod(shape)
    fits = min(shape, default=0) >= 0 and 8 * count <= LARGEST_BYTES
    require(fits, f"{array} declares the shape {shape}, which is too large")
    raw = stored.raw_data
    if external is not None and outside:
        raw = external.bytes_of(array, stored, count * dtype.itemsize)
    held = len(raw) // dtype.itemsize if raw else len(getattr(stored, field))
    require(count == held, f"{array} declares the shape {shape} and holds {held} numbers")
    try:
        numbers = np.frombuffer(raw, dtype) if raw else _numbers(stored, dtype, field)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{array} cannot be read ({error})") from None
    if stored.data_type == BRAIN_FLOAT:
        numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
    values = torch.from_numpy(numbers.reshape(shape).astype(numbers.dtype.newbyteorder("=")))
    finite = not values.is_floating_point() or bool(values.isfinite().all())
    require(finite, f"{array} holds NaN or infinity")
    return values.to(TORCH_TYPES[stored.data_type])


def _numbers(stored: Any, dtype: np.dtype, field: str) -> np.ndarray:
    numbers = np.array(getattr(stored, field))
    if stored.data_type in HALVES:  # halves stand in 32-bit fields bit by bit
        return numbers.astype(np.uint16).view(dtype)
    return numbers.astype(dtype)
