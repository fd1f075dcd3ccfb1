"""Constants that an ONNX file computes on its way, most of all shapes: whole numbers, exact in their own type."""

import math
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.common.limits import ALWAYS_ALLOWED, LARGEST_BYTES, LARGEST_RATIO, ByteLimit
from brittle.networks.graph import ROWS, Builder, GraphValue, compute_step, fill_arguments, keeps_rows, shadow
from brittle.networks.onnx_attributes import Attributes

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
        self._budgets: dict[str, ByteLimit] = {}

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
            self._budgets.setdefault(name, ByteLimit(path)).take(length, f"the arrays in '{name[:100]}'")
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


MOST = 64  # numbers in a shape, or in what becomes one
Whole = NDArray[Any]


class Shapes:
    """The shapes of the values that were computed so far, found without their numbers.

    `batch` holds, for every constant that depends on the number of examples, in which places it is that number.
    """

    def __init__(self, builder: Builder, shape: tuple[int, ...]) -> None:
        self.builder, self._done = builder, 0
        stored = sum(each.numel() * each.element_size() for each in builder.constants.values())
        self.weights: dict[tuple[str, bool, float], GraphValue] = {}  # made of the file's constants
        self._made, self._limit = 0, min(LARGEST_BYTES, max(ALWAYS_ALLOWED, LARGEST_RATIO * stored))
        self.batch: dict[str, NDArray[np.bool_]] = {}
        self._values: dict[str, Any] = {builder.input: torch.empty(ROWS, *shape, device="meta")}
        self._from_input = {builder.input}

    def of(self, name: str) -> list[int]:
        """The shape of a value; the examples come first."""
        for step in self.builder.steps[self._done :]:
            arguments = fill_arguments(step.arguments, self._values, lambda each: shadow(self.builder.constants[each]))
            value = self._values[step.output] = compute_step(self.builder.path, step, arguments)
            if self._from_input & set(step.inputs()):
                self._from_input.add(step.output)
                words = f"asks for a shape after '{step.operation}', which does not keep the examples of a batch apart"
                require(keeps_rows(step, arguments, value), words)
        self._done = len(self.builder.steps)
        value = self._values[name] if name in self._values else self.builder.constants.get(name)
        if not isinstance(value, Tensor):
            raise InputError(f"asks for the shape of '{name[:100]}', which is not known")
        return list(value.shape)

    def keep(self, name: str, value: Tensor) -> None:
        """One more constant, which is made of the file's; all of them in proportion to what the file holds."""
        self._made += 8 * value.numel()
        words = f"{self._limit} bytes are the most that constants may take which are made of the file's"
        require(self._made <= self._limit, words)
        self.builder.constants[name] = value
        self.builder.constant(name)

    def check_fixed(self, name: str) -> None:
        """Refuse what depends on the number of examples."""
        words = "which is the number of examples, in another place than the first of a shape"
        require(name not in self.batch, f"uses '{name[:100]}', {words}")

    def lengths(self, name: str) -> tuple[Whole, NDArray[np.bool_]]:
        """The shape of a value or constant as an array, and where it is the number of examples."""
        lengths = np.array(self.of(name), dtype=np.int64)
        batch = np.arange(len(lengths)) < (name in self._from_input)
        return np.where(batch, self.builder.rows or ROWS, lengths), batch


def fold_node(builder: Builder, shapes: Shapes, stored: Any, opset: int) -> bool:
    """Whether a node gives numbers that are known now; they are constants from here on."""
    names = [name for name in stored.input if name]
    given = [builder.constants.get(name) for name in names]
    batch = None
    if stored.op_type == "Shape":
        node = Attributes(stored, opset)
        limits = [node.integer(name, 0) if node.given(name) else None for name in ("start", "end")]
        numbers, batch = (each[slice(*limits)] for each in shapes.lengths(names[0]))
        result = torch.from_numpy(numbers.copy())
    elif stored.op_type == "Cast" and given[0] is not None:
        node = Attributes(stored, opset)
        result, batch = _cast(given[0], node.integer("to", 0)), shapes.batch.get(names[0])
    else:
        values = [each.numpy() for each in given if each is not None and _is_short(each)]
        if stored.op_type not in FOLDS or len(values) < len(given):
            return False
        node = Attributes(stored, opset)
        batch = _moved(node, values, names, shapes)
        numbers = _computed(node, values)
        result = torch.from_numpy(np.ascontiguousarray(numbers)).reshape(numbers.shape)
    node.finished()
    output = stored.output[0]
    shapes.keep(output, result)
    if batch is not None and batch.any():
        shapes.batch[output] = batch
    return True


def _is_short(value: Tensor) -> bool:
    return not value.is_floating_point() and value.numel() <= MOST


def _computed(node: Attributes, values: list[Whole]) -> Whole:
    try:
        with np.errstate(divide="raise", over="ignore"):
            result = np.asarray(FOLDS[node.kind](values, node))
    except (ValueError, IndexError, TypeError, KeyError, ArithmeticError) as error:
        raise InputError(f"computes a shape that cannot be had ({str(error)[:100]})") from None
    whole = result.dtype.kind in "iub" and result.size <= MOST
    require(whole, f"computes {result.size} numbers; {MOST} whole ones are the most for a shape")
    return result


def _moved(node: Attributes, values: list[Whole], names: list[str], shapes: Shapes) -> NDArray[np.bool_] | None:
    """Where the number of examples goes: whatever computes with it, or is chosen by it, is refused."""
    moving = names if node.kind == "Concat" else names[:1] if node.kind in MOVING else []
    for name in names[len(moving) :]:
        shapes.check_fixed(name)
    if not any(name in shapes.batch for name in moving):
        return None
    marks = [shapes.batch.get(name, np.zeros(value.shape, bool)) for name, value in zip(moving, values, strict=False)]
    return _computed(node, [*marks, *values[len(moving) :]])


def _cast(value: Tensor, to: int) -> Tensor:
    """A constant in another type: whole numbers wrap, real ones lose their fraction or are rounded."""
    require(to in TORCH_TYPES, f"casts a constant to the type {to}, which is not read")
    dtype = TORCH_TYPES[to]
    half = dtype in (torch.float16, torch.bfloat16)
    require(not half or value.dtype != torch.float64, "rounds a constant of 64 bits to 16, which is not read")
    result = value.to(dtype)
    if value.is_floating_point() and not dtype.is_floating_point and dtype != torch.bool:
        limits, whole = torch.iinfo(dtype), value.double().trunc()
        fits = bool(((whole >= limits.min) & (whole <= limits.max) & (whole < 2.0**63)).all())
        require(fits, f"casts a constant to {dtype}, which does not hold it")
    require(not dtype.is_floating_point or bool(result.isfinite().all()), f"casts a constant to {dtype}: infinite")
    return result


def _axes(values: list[Whole], node: Attributes) -> tuple[int, ...]:
    """An input since version 13 and an attribute before."""
    given = values[1] if len(values) > 1 else node.list("axes", [])
    return tuple(int(axis) for axis in given)


def _gather(values: list[Whole], node: Attributes) -> Whole:
    data, places = values
    return np.take(data, places, node.integer("axis", 0))


def _squeeze(values: list[Whole], node: Attributes) -> Whole:
    return np.squeeze(values[0], _axes(values, node) or None)


def _slice(values: list[Whole], node: Attributes) -> Whole:
    data, others = values[0], values[1:]
    starts, ends, *rest = others or [np.array(node.list(name, [])) for name in ("starts", "ends")]
    axes = rest[0] if rest else (node.list("axes", []) or range(len(starts)))
    steps = rest[1] if len(rest) > 1 else [1] * len(starts)
    places = [slice(None)] * data.ndim
    if len({int(axis) % max(1, data.ndim) for axis in axes}) < len(axes):
        raise ValueError("an axis is cut twice")
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        backwards = int(step) < 0 and int(end) < -MOST  # past the beginning
        places[int(axis)] = slice(int(start), None if backwards else int(end), int(step))
    return data[tuple(places)]


def _filled(values: list[Whole], node: Attributes) -> Whole:
    if math.prod(map(int, values[0])) > MOST:
        raise ValueError("it is long")
    value = onnx_tensor("the value", node.tensor("value")) if node.given("value") else torch.zeros(1)
    return np.full(tuple(values[0]), value.reshape(-1)[0].numpy())


def _arithmetic(run: Callable[[Whole, Whole], Whole]) -> Callable[[list[Whole], Attributes], Whole]:
    """In the type in which both are stored, beyond whose ends numbers wrap."""

    def compute(values: list[Whole], _: Attributes) -> Whole:
        first, other = values
        if first.dtype != other.dtype or first.dtype.kind not in "iu":
            raise ValueError(f"its numbers have the types {first.dtype} and {other.dtype}")
        shape = np.broadcast_shapes(first.shape, other.shape)
        result: Whole = run(np.atleast_1d(first), np.atleast_1d(other)).reshape(shape)
        return result

    return compute


def _quotient(first: Whole, other: Whole) -> Whole:
    """Rounded towards 0, where numpy rounds down."""
    down = np.floor_divide(first, other)
    result: Whole = down + ((down < 0) & (down * other != first)).astype(down.dtype)
    return result


FOLDS: dict[str, Callable[[list[Whole], Attributes], Whole]] = {
    "Gather": _gather, "Squeeze": _squeeze, "Slice": _slice, "ConstantOfShape": _filled,
    "Concat": lambda values, node: np.concatenate(values, node.integer("axis", 0)),
    "Unsqueeze": lambda values, node: np.expand_dims(values[0], _axes(values, node)),
    "Reshape": lambda values, _: values[0].reshape(tuple(values[1])),
    "Transpose": lambda values, node: values[0].transpose(node.list("perm", []) or None),
    "Identity": lambda values, _: values[0],
    "Add": _arithmetic(np.add), "Sub": _arithmetic(np.subtract), "Mul": _arithmetic(np.multiply),
    "Div": _arithmetic(_quotient),
}  # fmt: skip
MOVING = ("Gather", "Squeeze", "Slice", "Unsqueeze", "Reshape", "Transpose", "Identity")  # their first input
