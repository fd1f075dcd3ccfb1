"""The arrays of ONNX files: plain numbers of a known type, after their shape has been held against what is there."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.common.limits import LARGEST_BYTES

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


def onnx_tensor(path: str | Path, stored: Any) -> Tensor:
    """One array of the file."""
    array = f"{path}: array '{stored.name[:100]}'"
    inside = stored.data_location != EXTERNAL and not stored.HasField("segment")
    require(inside, f"{array} lies in another file; write all in one: onnx.save(onnx.load(path), path)")
    require(stored.data_type in TYPES, f"{array} is of the type {stored.data_type}; real numbers are needed")
    kind, field = TYPES[stored.data_type]
    dtype, shape = np.dtype(kind), tuple(stored.dims)
    count = math.prod(shape)
    held = len(stored.raw_data) // dtype.itemsize if stored.raw_data else len(getattr(stored, field))
    fits = min(shape, default=0) >= 0 and count == held and 8 * count <= LARGEST_BYTES
    require(fits, f"{array} declares the shape {shape} and holds {held} numbers")
    try:
        numbers = _numbers(stored, dtype, field)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{array} cannot be read ({error})") from None
    if stored.data_type == BRAIN_FLOAT:
        numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
    values = torch.from_numpy(numbers.reshape(shape).astype(numbers.dtype.newbyteorder("=")))
    finite = not values.is_floating_point() or bool(values.isfinite().all())
    require(finite, f"{array} holds NaN or infinity")
    return values.to(TORCH_TYPES[stored.data_type])


def _numbers(stored: Any, dtype: np.dtype, field: str) -> np.ndarray:
    if stored.raw_data:
        return np.frombuffer(stored.raw_data, dtype)
    numbers = np.array(getattr(stored, field))
    if stored.data_type in HALVES:  # halves stand in 32-bit fields bit by bit
        return numbers.astype(np.uint16).view(dtype)
    return numbers.astype(dtype)
