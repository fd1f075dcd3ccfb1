"""The examples that an audit rests on, and what they say of a median."""

import math

import pytest
import torch

from brittle.auditing.pieces import draw_rows, median_interval


def test_every_label_gets_its_share():
    y = torch.tensor([0] * 70 + [1] * 28 + [2] * 2)
    few, many, whole = (draw_rows(y, count, torch.Generator().manual_seed(1)) for count in (25, 60, 1000))
    for rows in (few, many):
        assert (torch.bincount(y[rows], minlength=3) - len(rows) * torch.tensor([0.7, 0.28, 0.02])).abs().max() < 1
    assert torch.equal(few, many[:25])
    assert sorted(whole.tolist()) == list(range(100))
    other = draw_rows(y, 25, torch.Generator().manual_seed(2))
    assert set(few.tolist()) != set(other.tolist())


def test_the_interval_is_that_of_fair_coins():
    """From tables of the sign test: ranks 2 and 9 of ten (97.9 %), 6 and 15 of twenty (95.9 %)."""
    assert median_interval(torch.arange(1.0, 11.0)) == (2, 9)
    assert median_interval(torch.arange(1.0, 21.0)) == (6, 15)
    assert median_interval(torch.arange(1.0, 7.0)) == (1, 6)
    assert median_interval(torch.arange(1.0, 6.0)) == (0, math.inf)  # five values cannot say as much


@pytest.mark.parametrize("count", [9, 40])
def test_the_interval_holds_the_median_as_often_as_it_says(rng, count):
    draws = torch.rand(4000, count, generator=rng)
    low, high = torch.tensor([median_interval(row) for row in draws]).T
    assert 0.94 < float(((low <= 0.5) & (high >= 0.5)).double().mean()) < 0.985
