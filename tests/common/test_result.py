"""Whatever a result holds becomes plain JSON, and says the same afterwards."""

import json
import math
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle.common.result import Result, jsonable


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
