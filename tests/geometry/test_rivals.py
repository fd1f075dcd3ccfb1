"""The nearest example of another class."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle.common.errors import InputError
from brittle.geometry import nearest_rivals, vectors


@given(st.integers(0, 2**31), st.integers(2, 30), st.integers(1, 5), st.sampled_from([1, 7, 2**20]))
def test_it_is_the_nearest_of_all(seed, count, dim, at_once):
    rng = torch.Generator().manual_seed(seed)
    X, y = torch.randn(count, dim, generator=rng).double(), torch.randint(3, (count,), generator=rng)
    y[0], y[1] = 0, 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "AT_ONCE", at_once)
        distances, index = nearest_rivals(X, y)
    for i in range(count):
        others = [float((X[i] - X[j]).norm()) for j in range(count) if y[j] != y[i]]
        assert float(distances[i]) == pytest.approx(min(others), rel=1e-9)
        assert y[index[i]] != y[i]


def test_close_examples_far_from_the_origin_are_told_apart():
    X = torch.tensor([[1e6, 0.0], [1e6 + 1e-6, 0.0], [0.0, 0.0]], dtype=torch.float64)
    distances, _ = nearest_rivals(X, torch.tensor([1.0, -1.0, -1.0]))
    assert float(distances[0]) == pytest.approx(1e-6, rel=1e-3)


def test_one_class_has_no_rivals():
    with pytest.raises(InputError, match="all 3 examples have the label 1: there is no other class"):
        nearest_rivals(torch.eye(3), torch.ones(3))
