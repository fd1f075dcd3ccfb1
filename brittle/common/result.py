"""Results are plain values: they print, compare and turn into JSON the same way everywhere."""

import dataclasses
import enum
import math
from pathlib import Path
from typing import Any


class Result:
    """A frozen dataclass of constant shape that can be written as JSON."""

    def to_json(self) -> dict[str, Any]:
        assert dataclasses.is_dataclass(self)
        return {field.name: jsonable(getattr(self, field.name)) for field in dataclasses.fields(self)}


def jsonable(value: Any) -> Any:
    """Tensors become lists, infinities and NaN become null (JSON has no word for them)."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if hasattr(value, "tolist"):  # tensors and arrays, without importing their libraries
        return jsonable(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, enum.Enum):
        return jsonable(value.value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    return value
