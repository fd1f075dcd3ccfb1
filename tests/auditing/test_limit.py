"""What the data allow: half the distance to the nearest rival, and the largest mean radius."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle.auditing.geometry import largest_mean, limit
from brittle.data import Data
from brittle.geometry import nearest_rivals
from brittle.networks import NearestNeighbour


def tensor(*rows):
    return torch.tensor(rows, dtype=torch.float64)


THREE = Data(tensor([0.0], [2.0], [5.0]), tensor(1.0, -1.0, 1.0))


def test_three_points_on_a_line_by_hand():
    """0 (+), 2 (-), 5 (+): r₁ + r₂ ≤ 2 and r₂ + r₃ ≤ 3, so Σ r is largest with r₂ = 0: 2 + 0 + 3."""
    found = limit(THREE, THREE, tensor(0.5, 1.0, 3.0)).proving(tensor(0.25, 0.5))
    assert found.radii.tolist() == [1.0, 1.0, 1.5]
    assert found.rivals.tolist() == [1, 0, 1]
    assert found.mean == pytest.approx(5 / 3)
    assert found.median == 1.0
    assert found.share == 1.0  # of ½, 1, 2
    assert found.proved_share == 0.25  # of ¼, ½: the lower one


def test_one_class_has_no_limit():
    one = Data(THREE.X, tensor(1.0, 1.0, 1.0))
    assert limit(one, one, tensor(1.0, 1.0, 1.0)) is None


def test_held_out_examples_are_compared_with_the_training_examples():
    held = Data(tensor([1.5], [4.0]), tensor(-1.0, -1.0))
    found = limit(THREE, held, tensor(1.0, 1.0))
    assert found.radii.tolist() == [0.75, 0.5]
    assert found.mean == pytest.approx((1.5 + 1.0) / 2)  # no pair of different classes among them
    assert found.proved_share is None


def test_an_example_that_coincides_with_a_rival_has_nothing_to_share():
    same = Data(tensor([0.0], [0.0], [4.0]), tensor(1.0, -1.0, 1.0))
    found = limit(same, same, tensor(0.0, 0.0, 1.0))
    assert found.radii.tolist() == [0.0, 0.0, 2.0]
    assert found.share == 0.5


@given(st.integers(0, 2**31))
def test_the_nearest_neighbour_reaches_the_yardstick_and_no_more_than_the_mean(seed):
    rng = torch.Generator().manual_seed(seed)
    X, y = torch.randn(12, 3, generator=rng).double(), torch.tensor([1.0, -1.0] * 6).double()
    distances, _ = nearest_rivals(X, y)
    radii = NearestNeighbour(X, y).radii(X, y)
    most = largest_mean(X, y, distances)
    assert most is not None
    assert float(radii.mean()) <= most * (1 + 1e-9)
    assert bool((radii >= distances / 2 * (1 - 1e-9)).all())
    assert most >= float(distances.mean()) / 2 * (1 - 1e-9)
    assert math.isfinite(most)
