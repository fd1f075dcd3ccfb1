"""Whatever a result holds becomes plain JSON, and says the same afterwards."""

import json
import math
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import brittle
from brittle.common.ending import Status
from brittle.common.result import Result, jsonable, short


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner(Result):
    value: float


@dataclass(frozen=True)
class Outer(Result):
    inner: Inner
    many: tuple[Inner, ...]
    tensor: torch.Tensor
    array: np.ndarray
    number: np.float64
    place: Path
    colour: Colour
    table: dict


def test_nested_results_become_plain_json():
    result = Outer(
        Inner(math.inf), (Inner(1.0), Inner(math.nan)), torch.tensor([[1.0, math.nan]]), np.array([True, False]),
        np.float64(2.5), Path("a/b"), Colour.RED, {1: torch.tensor(3), "x": {Colour.RED}},
    )  # fmt: skip
    assert json.loads(json.dumps(result.to_json(), allow_nan=False)) == {
        "inner": {"value": None},
        "many": [{"value": 1.0}, {"value": None}],
        "tensor": [[1.0, None]],
        "array": [True, False],
        "number": 2.5,
        "place": "a/b",
        "colour": "red",
        "table": {"1": 3, "x": ["red"]},
    }


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
nested = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(nested)
def test_plain_json_is_left_as_it_is(value):
    assert jsonable(value) == value


@dataclass(frozen=True)
class Sentence(Result):
    words: str

    def __str__(self) -> str:
        return f"it says {self.words}"


@dataclass(frozen=True)
class Printed(Result):
    median_norm: float
    advice: str
    norms: torch.Tensor
    inner: Inner
    sentences: tuple[Sentence, ...]
    nothing: tuple[str, ...] = ()


def test_a_result_prints_as_a_short_table():
    norms, sentences = torch.tensor([[3.0, 1.0], [2.0, 4.0]]), (Sentence("a"), Sentence("b"))
    result = Printed(math.inf, "more time\nor less", norms, Inner(0.5), sentences)
    assert str(result) == repr(result) == f"{result}"
    assert str(result).splitlines() == [
        "Printed",
        "median norm  inf",
        "advice       more time",
        "             or less",
        "norms        (2, 2) min 1, median 2, max 4",
        "inner        value 0.5",
        "sentences    it says a, it says b",
        "nothing",
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.tensor(0.25, requires_grad=True), "0.25"),
        (np.int64(7), "7"),
        (np.array([5, 1, 2, 9]), "(4,) min 1, median 2, max 9"),
        (torch.tensor([math.nan, 2.0, math.inf], requires_grad=True), "(3,) min 2, median 2, max inf, nan 1"),
        (torch.tensor([math.nan]), "(1,) nan"),
        (torch.zeros(0, 3), "(0, 3) empty"),
        (torch.tensor([True, False, True]), "(3,) yes 2, no 1"),
        (Status.REACHED, "reached"),
        ((Status.OPEN, "x", None, True, 1.0, 2), "open, x, -, yes, 1, 2"),
        (list(range(7)), "7 values"),
        (dict.fromkeys(range(7)), "7 entries"),
        ({"a": 1, "b": 0.1234567}, "a 1, b 0.123457"),
        (Path("a/b"), "a/b"),
    ],
)
def test_every_value_has_a_few_words(value, words):
    assert short(value) == words


def test_no_kind_of_result_dumps_its_tensors():
    def kinds(kind: type) -> set[type]:
        return {kind}.union(*(kinds(other) for other in kind.__subclasses__()))

    assert [getattr(brittle, room) for room in brittle.ROOMS]  # where all kinds are
    assert all(kind.__repr__ is Result.__repr__ for kind in kinds(Result))
