"""What is known is passed on and returned: nobody's record changes behind their back."""

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch

from brittle.certificates import Example, RadiusInterval
from brittle.certificates.dual import first_iterate, solve_closed_form
from brittle.certificates.example import lengths
from brittle.certificates.margins import WeightSpan, localise
from brittle.networks import TwoLayer


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.fixture
def unknown():
    return RadiusInterval(0.0, math.inf, tensor(0.0, 0.0), cap=7.0)


@pytest.fixture
def example():
    """1 - φ(x₁) at the origin: the flips are those with δ₁ > 1."""
    network = TwoLayer(tensor([1.0, 0.0]), tensor(0.0), tensor(-1.0), tensor(1.0)[0])
    return Example(network, 0, tensor(0.0, 0.0), tensor(1.0)[0], margin=1.0)


def test_an_enclosure_only_gets_tighter(unknown):
    attacked = unknown.attacked(tensor(3.0, 4.0))
    assert (attacked.upper, attacked.ball) == (5.0, 5.0)
    assert attacked.attacked(tensor(6.0, 8.0)) is attacked
    proven = attacked.proven(2.0)
    assert proven.lower == 2.0
    assert proven.proven(1.0).lower == 2.0
    assert proven.proven(math.nan).lower == 2.0
    assert proven.attacked(tensor(0.0, 4.0)).lower == 2.0


def test_an_enclosure_stays_as_it_was(unknown):
    unknown.attacked(tensor(3.0, 4.0)).proven(2.0)
    assert (unknown.lower, unknown.upper, unknown.ball) == (0.0, math.inf, 7.0)
    assert not unknown.flip.any()
    with pytest.raises(FrozenInstanceError):
        unknown.lower = 1.0


def test_an_attack_returns_the_shortest_flip_of_all_directions(example, unknown):
    attacked = example.attacked(unknown, tensor([-1.0, 0.0], [1.0, 1.0], [5.0, 0.0]))
    assert attacked.upper == pytest.approx(1.0)
    assert example.network.margins((example.x + attacked.flip)[None], example.y[None]) < 0
    assert unknown.upper == math.inf
    assert example.attacked(unknown, tensor([-1.0, 0.0])) is unknown
    assert example.attacked(attacked, tensor([1.0, 1.0])) is attacked


def test_solving_leaves_the_saddle_as_it_was():
    rng = np.random.default_rng(3)
    W, b, v, x = rng.normal(size=(12, 3)), rng.normal(size=12), rng.normal(size=12), rng.normal(size=3)
    c = v * np.sign(np.maximum(W @ x + b, 0) @ v)
    model = localise(WeightSpan.of(W), W, b, c, 0.0, x, ball=1.0)
    start = first_iterate(model, np.zeros(3))
    saddle = solve_closed_form(model, start).saddle
    before = list(map(np.copy, (*saddle.concave, *saddle.kinked, saddle.A)))
    once, again = saddle.solve(start, rounds=9, tolerance=0.0), saddle.solve(start, rounds=9, tolerance=0.0)
    assert len(saddle.kinked.rows) > 0
    assert once.value == again.value
    assert np.array_equal(once.point, again.point)
    for part, after in zip(before, (*saddle.concave, *saddle.kinked, saddle.A), strict=True):
        assert np.array_equal(part, after)


def test_rows_in_a_subspace_need_its_dimensions_only():
    rng = np.random.default_rng(4)
    basis = np.linalg.qr(rng.normal(size=(9, 3)))[0]
    inner = rng.normal(size=(20, 3))
    W, wide = inner @ basis.T, WeightSpan.of(rng.normal(size=(20, 9)))
    span = WeightSpan.of(W)
    assert wide.basis is None
    assert span.coordinates.shape == (20, 3)
    assert span.rest.max() < 1e-11
    for delta in rng.normal(size=(50, 9)):
        epsilon, size = span.reduce(delta), np.linalg.norm(delta)
        assert np.linalg.norm(epsilon) <= span.stretch * size
        assert (np.abs(W @ delta - span.coordinates @ epsilon) <= span.rest * size).all()
        assert np.linalg.norm(epsilon) == pytest.approx(np.linalg.norm(basis.T @ delta))


@pytest.mark.parametrize("by", [1e-300, 1e-200, 1e-145, 1e-130, 1.0, 1e100, 1e145, 1e155, 1e200, 1e300])
def test_lengths_are_right_at_scales_whose_squares_are_no_floats(by):
    rows = tensor([3.0, 4.0], [0.0, 0.0], [-5.0, 12.0], [0.0, -2.0]) * by
    assert lengths(rows).tolist() == pytest.approx([5 * by, 0.0, 13 * by, 2 * by], rel=1e-14, abs=0.0)
    mixed = torch.cat([rows, tensor([3.0, 4.0], [0.0, 0.0])])
    assert lengths(mixed)[4:].tolist() == [5.0, 0.0]


def test_a_flip_has_finite_numbers_and_lies_in_the_box(example):
    assert example._flips(tensor(1.5, 0.0))
    assert not example._flips(tensor(0.5, 0.0))
    for bad in ([math.inf, 0.0], [1.5, math.inf], [1.5, -math.inf], [1.5, math.nan]):
        assert not example._flips(tensor(*bad))
    boxed = replace(example, box=(-1.0, 2.0))
    assert boxed._flips(tensor(1.5, -1.0))
    assert boxed._flips(tensor(2.0, 0.0))
    for outside in ([2.5, 0.0], [1.5, -1.5], [1.5, 2.5]):
        assert not boxed._flips(tensor(*outside))
        assert example._flips(tensor(*outside))
