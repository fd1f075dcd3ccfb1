"""Shapes that an ONNX file computes on its way: whole numbers that are known before any example is."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.networks.graph import Builder, computed, filled, shadow
from brittle.networks.onnx_tensors import onnx_tensor

ROWS = 1009  # stands for a number of examples that is open: a prime, so that it shows where it went
MOST = 64  # numbers in a shape, or in what becomes one
WHOLE_TYPES = (6, 7)  # TensorProto.INT32, INT64
Whole = NDArray[np.int64]


class Shapes:
    """The shapes of the values that were computed so far, found without their numbers."""

    def __init__(self, builder: Builder, shape: tuple[int, ...]) -> None:
        rows = builder.rows or ROWS
        self.builder, self._done = builder, 0
        self._values: dict[str, Any] = {builder.input: torch.empty(rows, *shape, device="meta")}

    def of(self, name: str) -> list[int]:
        for step in self.builder.steps[self._done :]:
            arguments = filled(step.arguments, self._values, lambda each: shadow(self.builder.constants[each]))
            self._values[step.output] = computed(self.builder.path, step, arguments)
        self._done = len(self.builder.steps)
        value = self._values[name] if name in self._values else self.builder.constants.get(name)
        if not isinstance(value, Tensor):
            raise InputError(f"asks for the shape of '{name[:100]}', which is not known")
        return list(value.shape)


def folded(builder: Builder, shapes: Shapes, stored: Any) -> bool:
    """Whether a node gives whole numbers that are known now; they are constants from here on."""
    if stored.op_type == "Shape":
        lengths = shapes.of(stored.input[0])
        limits = {each.name: int(each.i) for each in stored.attribute}
        result = np.array(lengths[limits.get("start") : limits.get("end")], dtype=np.int64)
    else:
        given = [builder.constants.get(name) if name else None for name in stored.input]
        short = [each is not None and not each.is_floating_point() and each.numel() <= MOST for each in given]
        if stored.op_type not in FOLDS or not all(short):
            return False
        result = _computed(stored, [each.long().numpy() for each in given if each is not None])
    builder.constants[stored.output[0]] = torch.from_numpy(np.ascontiguousarray(result)).reshape(result.shape)
    builder.constant(stored.output[0])
    return True


def _computed(stored: Any, values: list[Whole]) -> Whole:
    attributes = {each.name: each for each in stored.attribute}
    try:
        with np.errstate(all="raise"):
            result = np.asarray(FOLDS[stored.op_type](values, attributes))
    except (ValueError, IndexError, TypeError, KeyError, ArithmeticError) as error:
        raise InputError(f"computes a shape that cannot be had ({str(error)[:100]})") from None
    whole = result.dtype == np.int64 and result.size <= MOST
    require(whole, f"computes {result.size} numbers; {MOST} whole ones are the most for a shape")
    return result


Attributes = dict[str, Any]


def _axes(values: list[Whole], attributes: Attributes) -> tuple[int, ...]:
    """An input since version 13 and an attribute before."""
    given = values[1] if len(values) > 1 else attributes["axes"].ints
    return tuple(int(axis) for axis in given)


def _gather(values: list[Whole], attributes: Attributes) -> Whole:
    data, places = values
    return np.take(data, places, int(attributes["axis"].i) if "axis" in attributes else 0)


def _squeeze(values: list[Whole], attributes: Attributes) -> Whole:
    return np.squeeze(values[0], _axes(values, attributes) if len(values) > 1 or "axes" in attributes else None)


def _slice(values: list[Whole], attributes: Attributes) -> Whole:
    data, others = values[0], values[1:]
    starts, ends, *rest = others or [np.array(attributes[name].ints) for name in ("starts", "ends")]
    axes = rest[0] if rest else (attributes["axes"].ints if "axes" in attributes else range(len(starts)))
    steps = rest[1] if len(rest) > 1 else [1] * len(starts)
    places = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        backwards = int(step) < 0 and int(end) < -MOST  # past the beginning
        places[int(axis)] = slice(int(start), None if backwards else int(end), int(step))
    return data[tuple(places)]


def _cast(values: list[Whole], attributes: Attributes) -> Whole:
    if attributes["to"].i not in WHOLE_TYPES:
        raise ValueError("it is cast to something else than whole numbers")
    return values[0]


def _filled(values: list[Whole], attributes: Attributes) -> Whole:
    if math.prod(map(int, values[0])) > MOST:
        raise ValueError("it is long")
    return np.full(tuple(values[0]), onnx_tensor("the value", attributes["value"].t).reshape(-1)[0])


def _pairs(run: Callable[[Whole, Whole], Whole]) -> Callable[[list[Whole], Attributes], Whole]:
    return lambda values, _: run(values[0], values[1])


FOLDS: dict[str, Callable[[list[Whole], Attributes], Whole]] = {
    "Gather": _gather, "Squeeze": _squeeze, "Slice": _slice, "Cast": _cast, "ConstantOfShape": _filled,
    "Concat": lambda values, attributes: np.concatenate(values, int(attributes["axis"].i)),
    "Unsqueeze": lambda values, attributes: np.expand_dims(values[0], _axes(values, attributes)),
    "Reshape": lambda values, _: values[0].reshape(tuple(values[1])),
    "Transpose": lambda values, attributes: values[0].transpose(
        list(attributes["perm"].ints) if "perm" in attributes else None
    ),
    "Identity": lambda values, _: values[0],
    "Add": _pairs(np.add), "Sub": _pairs(np.subtract), "Mul": _pairs(np.multiply), "Div": _pairs(np.floor_divide),
}  # fmt: skip
