"""`assert_robust` in the tests of a model: radii of a linear classifier are known by hand."""

import pytest
import torch
from torch import nn

import brittle as bt
from brittle.testing import assert_robust

X = torch.tensor([[1.0, 0.0], [0.5, 3.0], [-2.0, 1.0], [0.25, 0.0]])
Y = torch.tensor([1.0, 1.0, -1.0, -1.0])  # by the sign of the first feature the distances are 1, 0.5, 2, and an error


@pytest.fixture(scope="module")
def model():
    """x ↦ relu(x₁) - relu(-x₁) = x₁."""
    first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 1, bias=False)
    first.weight.data, second.weight.data = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([[1.0, -1.0]])
    return nn.Sequential(first, nn.ReLU(), second)


@pytest.mark.parametrize(("radius", "share"), [(0.49, 0.75), (0.99, 0.5), (1.9, 0.25), (5.0, 0.0)])
def test_it_passes_where_enough_examples_hold(model, radius, share):
    assert (assert_robust(model, X, Y, radius, share).lower >= radius).sum() == 4 * share


@pytest.mark.parametrize(("radius", "share"), [(0.51, 0.75), (1.01, 0.5), (2.01, 0.25), (0.1, 1.0)])
def test_it_fails_where_too_few_do(model, radius, share):
    with pytest.raises(AssertionError, match=f"provably hold out to the radius {radius:g}"):
        assert_robust(model, X, Y, radius, share)


def test_the_message_names_what_is_broken_and_what_is_open(model):
    with pytest.raises(AssertionError) as failure:
        assert_robust(model, X, Y, 0.7, 0.75)
    message = str(failure.value)
    assert "2 of 4 examples" in message
    assert "2 are broken (examples 1 at 0.5, 3 at 0;" in message
    assert "0 are open" in message


def test_a_looser_method_leaves_examples_open(model):
    wide = bt.networks.TorchLinearInit().draw(2, 30, torch.Generator().manual_seed(0))
    loose = bt.certificates.Lipschitz()
    found = loose.bound(wide, bt.data.Data(X, wide.predict(X)))
    row = int((found.upper - found.lower).argmax())
    between = float(found.lower[row] + found.upper[row]) / 2
    with pytest.raises(AssertionError, match=r"[1-9]\d* are open"):
        assert_robust(wide, X, wide.predict(X), between, 1.0, method=loose)


@pytest.mark.parametrize(("radius", "share", "line"), [(0.0, 1.0, "radius is 0.0"), (1.0, 1.5, "share is 1.5")])
def test_bad_input_is_said(model, radius, share, line):
    with pytest.raises(bt.InputError, match=line):
        assert_robust(model, X, Y, radius, share)
