"""No request works for ever: whoever reports progress is stopped here."""

import base64
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from brittle.common.errors import InputError, require
from brittle.common.progress import Progress
from brittle.networks import TwoLayer

LONGEST = 20.0  # seconds of computing for one request


@dataclass(frozen=True)
class Clock:
    """A watch that ends the work after so many `seconds` of computing, however busy the machine; they began at `begun`.

    It counts what its own thread does.
    """

    seconds: float = LONGEST
    begun: float = field(default_factory=time.thread_time)

    def __call__(self, progress: Progress) -> None:
        if self.left <= 0:
            raise InputError(f"this takes longer than {self.seconds:g} s: take fewer points or a smaller network")

    @property
    def left(self) -> float:
        """Seconds; negative when time is up."""
        return self.begun + self.seconds - time.thread_time()


# What a request asks for, read with care: every number has its limits, and what is missing has a default.


@dataclass(frozen=True)
class JsonQuery:
    """The `values` of a JSON object, by name."""

    values: Mapping[str, Any]

    @classmethod
    def of(cls, value: Any) -> "JsonQuery":
        require(isinstance(value, dict), "the request is no JSON object")
        return cls(value)

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number between two limits."""
        value = self.values.get(name, default)
        good = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        require(good, f"{name} is {value!r}; a whole number from {least} to {most} is needed")
        return int(value)

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A finite number between two limits."""
        return _number(name, self.values.get(name, default), low, high)

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.values.get(name, default)
        require(isinstance(value, bool), f"{name} is {value!r}; true or false is needed")
        return bool(value)

    def word(self, name: str, words: Sequence[str], default: str) -> str:
        value = self.values.get(name, default)
        require(value in words, f"{name} is {value!r}; it must be one of {', '.join(words)}")
        return str(value)

    def words(self, name: str, words: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
        """Some of these words."""
        given = self.values.get(name, list(default))
        good = isinstance(given, list) and all(each in words for each in given)
        require(good, f"{name} is {given!r}; a list of {', '.join(words)} is needed")
        return tuple(given)

    def numbers(self, name: str, most: int, size: float) -> list[float]:
        """A list of at most so many numbers of at most this size."""
        given = self.values.get(name)
        if not isinstance(given, list) or len(given) > most:
            raise InputError(f"{name} is no list of at most {most} numbers")
        return [_number(f"{name}[{place}]", each, -size, size) for place, each in enumerate(given)]

    def rows(self, name: str, columns: int, most: int, size: float) -> list[list[float]]:
        """A list of at most so many rows of numbers."""
        given = self.values.get(name)
        if not isinstance(given, list) or len(given) > most:
            raise InputError(f"{name} is no list of at most {most} rows")
        good = all(isinstance(row, list) and len(row) == columns for row in given)
        require(good, f"every row of {name} needs {columns} numbers")
        return [[_number(name, each, -size, size) for each in row] for row in given]

    def part(self, name: str) -> "JsonQuery | None":
        """An object inside."""
        value = self.values.get(name)
        return None if value is None else JsonQuery.of(value)


def _number(name: str, value: Any, low: float, high: float) -> float:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    good = real and math.isfinite(value) and low <= value <= high
    require(good, f"{name} is {value!r}; a number from {low:g} to {high:g} is needed")
    return float(value)


# Arrays on their way to the browser: exact where they are read, four bytes a number where they are only drawn.


def pack_float32(values: Tensor) -> dict[str, Any]:
    """Single precision, for pictures."""
    array = values.detach().float().contiguous().numpy().astype("<f4", copy=False)
    return {"shape": list(array.shape), "float32": base64.b64encode(array.tobytes()).decode()}


def weights(network: TwoLayer) -> dict[str, Any]:
    """A two-layer network, every digit of it."""
    return {
        "W": network.W.tolist(),
        "b": network.b.tolist(),
        "v": network.v.tolist(),
        "c": float(network.c),
    }
