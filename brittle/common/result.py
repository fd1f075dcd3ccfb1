"""Results are plain values: they print, compare and turn into JSON the same way everywhere."""

import dataclasses
import enum
import html
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from brittle.common.errors import InputError

SPECIAL = {each: f"\\{each}" for each in "&%$#_{}"}
SPECIAL |= {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\^{}"}
MATHEMATICS = {
    "≤": "\\leq", "≥": "\\geq", "√": "\\surd", "±": "\\pm", "²": "^2", "‖": "\\Vert", "½": "\\tfrac12",
    "∇": "\\nabla", "Σ": "\\Sigma", "Π": "\\Pi", "Δ": "\\Delta", "α": "\\alpha", "β": "\\beta", "γ": "\\gamma",
    "δ": "\\delta", "ε": "\\varepsilon", "η": "\\eta", "θ": "\\theta", "λ": "\\lambda", "μ": "\\mu", "ρ": "\\rho",
    "σ": "\\sigma", "τ": "\\tau", "⊥": "\\perp", "∞": "\\infty", "·": "\\cdot", "∈": "\\in", "≠": "\\neq",
}  # fmt: skip


def tabular(headings: Sequence[str], rows: Iterable[Sequence[str]], columns: str) -> str:
    """A tabular with the rules of booktabs; `columns` are their alignments, a letter each."""
    lines = [" & ".join(map(latex, row)) + r" \\" for row in (headings, *rows)]
    body = [lines[0], r"\midrule", *lines[1:]]
    begin, end = [f"\\begin{{tabular}}{{{columns}}}", r"\toprule"], [r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join([*begin, *body, *end])


def latex(text: str) -> str:
    """The text with LaTeX's own characters escaped and mathematical ones as mathematics."""
    return "".join(
        f"\\ensuremath{{{MATHEMATICS[each]}}}" if each in MATHEMATICS else SPECIAL.get(each, each) for each in text
    )


PLAIN = (bool, int, float, str)


class Result:
    """A frozen dataclass of constant shape: JSON for programs, a short table for terminals and notebooks."""

    def __init_subclass__(cls) -> None:
        """Otherwise `dataclass` would write a __repr__ that dumps every tensor."""
        super().__init_subclass__()
        if "__repr__" not in vars(cls):
            cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def content(self) -> dict[str, Any]:
        """What is shown and written, by name: the fields, unless a kind of result leaves some out or adds others."""
        assert dataclasses.is_dataclass(self)
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def to_json(self) -> dict[str, Any]:
        """The content as plain values."""
        return {name: jsonable(value) for name, value in self.content().items()}

    def plain(self) -> dict[str, Any]:
        """What of the content is a number or a word."""
        return {name: value for name, value in self.content().items() if isinstance(value, PLAIN)}

    def by_example(self) -> dict[str, Any]:
        """What there is one value of for every example: all lists of plain values in the content, if of one length."""
        lists = plain_lists(self.content())
        return lists if len({len(value) for value in lists.values()}) == 1 else {}

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for every example, or a single one where the result is not about examples."""
        return frame(self.by_example() or [self.plain()])

    def to_latex(self) -> str:
        """A tabular with the rules of booktabs: what `print` shows."""
        return tabular(("", type(self).__name__), [*map(list, self.summary().items())], "ll")

    def summary(self) -> dict[str, str]:
        """The content in a few words each."""
        return {name.replace("_", " "): short(value) for name, value in self.content().items()}

    def __str__(self) -> str:
        rows = self.summary()
        width = max(map(len, rows), default=0)
        lines = [f"{name:{width}}  {value}".rstrip() for name, value in rows.items()]
        return "\n".join([type(self).__name__, *(line.replace("\n", "\n" + " " * (width + 2)) for line in lines)])

    def __repr__(self) -> str:
        return str(self)

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


def frame(rows: Any) -> Any:
    """A pandas DataFrame of columns, or of rows that are dictionaries."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise InputError("to_frame needs the extra 'tables': pip install 'brittle[tables]'") from None
    return DataFrame(rows)


def plain_lists(content: dict[str, Any]) -> dict[str, list[Any]]:
    """Tensors, lists and tuples of plain values, as lists; words stand for what is enumerated."""
    found = {}
    for name, value in content.items():
        flat = hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1
        values = value.tolist() if flat else value
        if isinstance(values, list | tuple) and values:
            values = [each.value if isinstance(each, enum.Enum) else each for each in values]
            if all(isinstance(each, PLAIN) for each in values):
                found[name] = values
    return found


def short(value: Any) -> str:
    """A value in a few words: tensors by their spread, long lists by their length, other objects by their kind."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, enum.Enum):
        return short(value.value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if hasattr(value, "tolist"):  # tensors and arrays, without importing their libraries
        return spread(value)
    if isinstance(value, Result):
        return short(value.content()) if type(value).__str__ is Result.__str__ else str(value)
    if isinstance(value, list | tuple | set | frozenset):
        return f"{len(value)} values" if len(value) > 6 else ", ".join(short(item) for item in value)
    if isinstance(value, dict) and len(value) > 6:
        return f"{len(value)} entries"
    if isinstance(value, dict):
        return ", ".join(f"{name} {short(item)}" for name, item in value.items())
    return type(value).__name__ if dataclasses.is_dataclass(value) else str(value)


def spread(array: Any) -> str:
    """The shape of a tensor with its smallest, (lower) middle and largest number; a single number as it is."""
    import torch

    shape = tuple(array.shape)
    values = (array.detach() if isinstance(array, torch.Tensor) else torch.tensor(array)).reshape(-1)
    if not shape or not len(values):
        return f"{shape} empty" if shape else short(values.item())
    if values.dtype == torch.bool:
        return f"{shape} yes {int(values.sum())}, no {int((~values).sum())}"
    known = values[~values.isnan()]
    unknown = f", nan {len(values) - len(known)}" if len(known) < len(values) else ""
    if not len(known):
        return f"{shape} nan"
    low, middle, high = (short(each.item()) for each in (known.min(), known.median(), known.max()))
    return f"{shape} min {low}, median {middle}, max {high}{unknown}"


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
