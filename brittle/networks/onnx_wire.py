"""A look at an ONNX file before it is parsed: two bytes can be a message, which takes a hundred in memory."""

from pathlib import Path
from typing import Any

from brittle.common.errors import InputError
from brittle.common.limits import LARGEST_MODEL

Schema = dict[int, Any]  # from a field that holds messages to their schema, by the numbers of onnx.proto
TENSOR: Schema = {2: {}, 13: {}}
VALUE: Schema = {2: {1: {2: {1: {}}}}, 4: {}}
ATTRIBUTE: Schema = {5: TENSOR, 10: TENSOR}
NODE: Schema = {5: ATTRIBUTE}
SPARSE: Schema = {1: TENSOR, 2: TENSOR}
GRAPH: Schema = {1: NODE, 5: TENSOR, 11: VALUE, 12: VALUE, 13: VALUE, 14: {}, 15: SPARSE, 16: {}}
ATTRIBUTE |= {6: GRAPH, 11: GRAPH, 22: SPARSE, 23: SPARSE}
MODEL: Schema = {7: GRAPH, 8: {}, 14: {}, 20: {}, 25: {7: NODE, 9: {}}}


def check_wire(path: Path, content: bytes) -> None:
    """Refuse a file with more fields than a network has; each is visited once."""
    waiting: list[tuple[int, int, Schema]] = [(0, len(content), MODEL)]
    fields = 0
    try:
        while waiting:
            place, end, schema = waiting.pop()
            while place < end:
                fields += 1
                if fields > LARGEST_MODEL:
                    raise InputError(f"{path}: has more than {LARGEST_MODEL} fields, the most that is read")
                tag, place = _varint(content, place)
                start, place = _skipped(content, place, tag & 7)
                if tag & 7 == 2 and tag >> 3 in schema:
                    waiting.append((start, min(place, end), schema[tag >> 3]))
    except (IndexError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: is not an ONNX file") from None


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = content[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError("a number of more than ten bytes")


def _skipped(content: bytes, place: int, kind: int) -> tuple[int, int]:
    """Where a field's content starts and ends."""
    if kind == 0:
        return place, _varint(content, place)[1]
    if kind == 2:
        length, start = _varint(content, place)
        return start, start + length
    if kind in (1, 5):
        return place, place + (8 if kind == 1 else 4)
    raise ValueError("a group")
