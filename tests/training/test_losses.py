"""Losses against hand-derived values, autograd and their limits."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brittle.common.errors import InputError
from brittle.training import Exponential, Logistic

LOSSES = [Exponential("sum"), Exponential("mean"), Logistic("sum"), Logistic("mean")]
ids = [f"{type(loss).__name__} {loss.reduction}" for loss in LOSSES]


def direct(loss, q):
    values = torch.exp(-q) if isinstance(loss, Exponential) else torch.log1p(torch.exp(-q))
    return values.sum() if loss.reduction == "sum" else values.mean()


def test_a_case_by_hand():
    """q = (0, ln 3): e^{-q} = (1, 1/3), so L = 4/3 and the weights are 3/4 and 1/4."""
    q = torch.tensor([0.0, math.log(3)], dtype=torch.float64)
    assert Exponential("sum").total(q) == pytest.approx(math.log(4 / 3), abs=1e-15)
    assert Exponential("mean").total(q) == pytest.approx(math.log(2 / 3), abs=1e-15)
    torch.testing.assert_close(Exponential().weights(q), torch.tensor([0.75, 0.25], dtype=torch.float64))
    # ln(1 + e^{-q}) = (ln 2, ln 4/3), 1/(1 + e^q) = (1/2, 1/4)
    total = math.log(2) + math.log(4 / 3)
    assert Logistic("sum").total(q) == pytest.approx(math.log(total), abs=1e-15)
    expected = torch.tensor([0.5 / total, 0.25 / total], dtype=torch.float64)
    torch.testing.assert_close(Logistic().weights(q), expected)


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
@given(q=st.lists(st.floats(-30, 30), min_size=1, max_size=8))
def test_totals_and_weights_are_those_of_the_loss_itself(loss, q):
    q = torch.tensor(q, dtype=torch.float64, requires_grad=True)
    value = direct(loss, q)
    (gradient,) = torch.autograd.grad(value, q)
    assert loss.total(q.detach()) == pytest.approx(math.log(value.item()), rel=1e-11, abs=1e-11)
    torch.testing.assert_close(loss.weights(q.detach()), -gradient / value.detach(), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("loss", LOSSES, ids=ids)
@pytest.mark.parametrize("depth", [1e3, 1e6])
def test_nothing_underflows(loss, depth):
    q = torch.tensor([depth, depth + math.log(3)], dtype=torch.float64)
    count = 1.0 if loss.reduction == "sum" else 2.0
    assert loss.total(q) == pytest.approx(-depth + math.log(4 / 3 / count), rel=1e-14)
    torch.testing.assert_close(loss.weights(q), torch.tensor([0.75, 0.25], dtype=torch.float64), rtol=1e-9, atol=0)


def test_the_logistic_loss_of_an_error_is_more_than_its_margin():
    q = torch.tensor([-21.0], dtype=torch.float64)
    assert Logistic("sum").total(q) == pytest.approx(math.log(21 + math.log1p(math.exp(-21))), rel=1e-15)


def test_the_logistic_loss_has_no_seam():
    """Both formulas of ln ln(1 + e^{-q}) agree where one takes over from the other."""
    q = torch.tensor([18.0, 18.0 + 4e-15], dtype=torch.float64)
    low, high = Logistic().log_values(q)
    assert abs(float(high - low)) < 1e-14


def test_a_wrong_reduction_is_named():
    with pytest.raises(InputError, match="reduction is 'max'"):
        Exponential("max")
