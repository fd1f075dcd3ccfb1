"""Results are plain values: they print, compare and turn into JSON the same way everywhere."""

import dataclasses
import enum
import html
import math
from pathlib import Path
from typing import Any


class Result:
    """A frozen dataclass of constant shape: JSON for programs, a short table for terminals and notebooks."""

    def to_json(self) -> dict[str, Any]:
        assert dataclasses.is_dataclass(self)
        return {field.name: jsonable(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def summary(self) -> dict[str, str]:
        """Every field in a few words."""
        return {name.replace("_", " "): short(value) for name, value in self.to_json().items()}

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table(title=type(self).__name__, title_justify="left", show_header=False, box=None, pad_edge=False)
        for name, value in self.summary().items():
            table.add_row(name, value)
        return table

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self.summary().items()
        )
        return f"<table><caption>{html.escape(type(self).__name__)}</caption>{rows}</table>"


def short(value: Any) -> str:
    """A JSON value in a few words; long lists by their length."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list) and len(value) > 6:
        return f"{len(value)} values"
    if isinstance(value, list):
        return ", ".join(short(item) for item in value)
    if isinstance(value, dict) and len(value) > 6:
        return f"{len(value)} entries"
    if isinstance(value, dict):
        return ", ".join(f"{name} {short(item)}" for name, item in value.items())
    return str(value)


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
