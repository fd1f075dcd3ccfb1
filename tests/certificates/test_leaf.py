"""A branch without free neurons: the floor under its flips, against the nearest point of the polyhedron."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from brittle.certificates import Exact
from brittle.certificates.deep_exact import leaf
from brittle.certificates.deep_exact.leaf import leaf_floor
from brittle.certificates.deep_exact.problem import SdpProblem
from brittle.data import Data
from brittle.geometry.least_distance import least_distance
from brittle.networks import Deep

NONE = np.zeros(0, dtype=np.intp)


def polyhedron(seed, neurons=4, dim=3):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(1 + neurons, dim + 1))
    rows[0, -1] = abs(rows[0, -1]) + 0.1  # the margin at the example
    low = rng.normal(size=neurons) - 1.5
    slips = np.full(1 + neurons, 1e-12)
    return SdpProblem(rows, slips, low, low + rng.uniform(0.5, 4, size=neurons), NONE, np.arange(neurons))


def inequalities(problem):
    rows, heights = problem.rows[:, :-1], problem.rows[:, -1]
    A = np.vstack([-rows[:1], rows[1:], -rows[1:]])
    return A, np.concatenate([heights[:1], problem.low - heights[1:], heights[1:] - problem.high])


@pytest.mark.parametrize("seed", range(30))
def test_the_floor_is_that_of_the_nearest_point(seed):
    problem = polyhedron(seed)
    found = least_distance(*inequalities(problem))
    radius = (2 * leaf_floor(problem)) ** 0.5
    if found.point is None:
        assert radius > 1e6
    else:
        assert radius == pytest.approx(found.distance, rel=1e-7)
        assert radius <= found.distance


def test_both_kinds_occur():
    found = [least_distance(*inequalities(polyhedron(seed))).point for seed in range(30)]
    assert 3 < sum(point is None for point in found) < 27


@pytest.mark.parametrize("margin", [1e-3, 1e-9])
def test_a_constant_margin_is_never_flipped(margin):
    rows = np.array([[0.0, 0.0, margin], [1.0, 0.5, 0.2]])
    problem = SdpProblem(rows, np.full(2, 1e-15), np.array([0.0]), np.array([9.0]), NONE, np.arange(1))
    assert leaf_floor(problem) > 1e6
    slipping = SdpProblem(rows, np.array([2 * margin, 0.0]), np.array([0.0]), np.array([9.0]), NONE, np.arange(1))
    assert leaf_floor(slipping) == 0.0


@pytest.mark.parametrize("seed", range(12))
def test_any_multipliers_stay_below_the_truth_in_rational_arithmetic(seed, monkeypatch):
    """Bad ones too: h·ν ≤ ‖Aᵀν‖ r is checked in fractions for the radius that they are said to prove."""
    rng = np.random.default_rng(seed)
    problem = polyhedron(seed)
    A, h = inequalities(problem)
    nu = rng.exponential(size=len(h)) * 10.0 ** rng.integers(-9, 9, size=len(h))
    monkeypatch.setattr(leaf, "multipliers", lambda A, h: nu)
    floor = leaf_floor(problem)
    e = Fraction(1e-12)
    lift = sum((Fraction(float(a)) - e) * Fraction(float(b)) for a, b in zip(_exact_heights(problem), nu, strict=True))
    normal = [sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(column, nu, strict=True)) for column in A.T]
    squared = sum(each * each for each in normal)
    assert 2 * Fraction(floor) * squared <= max(lift, 0) ** 2


def _exact_heights(problem):
    heights = [Fraction(float(each)) for each in problem.rows[:, -1]]
    low, high = ([Fraction(float(each)) for each in ends] for ends in (problem.low, problem.high))
    below = [end - height for end, height in zip(low, heights[1:], strict=True)]
    above = [height - end for end, height in zip(high, heights[1:], strict=True)]
    return [heights[0], *below, *above]


def test_a_plateau_before_the_boundary_is_crossed():
    """N(x) = φ(φ(x - 2)) - φ(φ(-x)) + 1e-4 - 4·φ(φ(x) - 3): 1e-4 for x in [0, 2], and first negative near -1e-4."""
    weights = [[[1.0], [-1.0], [1.0]], [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], [[1.0, -1.0, -4.0]]]
    biases = [[-2.0, 0.0, 0.0], [0.0, 0.0, -3.0], [1e-4]]
    network = Deep.dense(*([torch.tensor(each, dtype=torch.float64) for each in part] for part in (weights, biases)))
    X = torch.tensor([[1.0], [0.5], [2.5]], dtype=torch.float64)
    found = Exact(gap=1e-3).bound(network, Data(X, torch.ones(3, dtype=torch.float64)))
    wall = 3 + 1.0001 / 3  # x - 2 + 1e-4 = 4(x - 3)
    radii = [min(x + 1e-4, wall - x) for x in (1.0, 0.5, 2.5)]
    assert found.exact.all()
    np.testing.assert_allclose(found.lower, radii, rtol=1.1e-3)
    assert (found.lower.numpy() <= np.array(radii) * (1 + 1e-12)).all()
