"""The nearest point of a polyhedron against a cone solver, closed forms and its own certificate."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brittle.geometry import least_distance

seeds = st.integers(0, 10**6)


def feasible(seed, rows, columns):
    """Half-spaces that some point satisfies."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, columns)) * 10 ** rng.uniform(-3, 3, (rows, 1))
    inside = rng.standard_normal(columns)
    return A, A @ inside - np.abs(A @ inside) * rng.uniform(0, 2, rows)


@settings(max_examples=30)
@given(seeds, st.integers(1, 12), st.integers(1, 6))
def test_it_agrees_with_a_cone_solver(seed, rows, columns):
    A, h = feasible(seed, rows, columns)
    size = np.linalg.norm(A, axis=1)
    delta = cp.Variable(columns)
    expected = cp.Problem(cp.Minimize(cp.norm(delta)), [(A / size[:, None]) @ delta >= h / size]).solve(
        solver=cp.CLARABEL
    )
    nearest = least_distance(A, h)
    assert nearest.distance == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert ((A / size[:, None]) @ nearest.point >= h / size - 1e-9).all()
    assert nearest.lower == pytest.approx(nearest.distance, rel=1e-9, abs=1e-12)


@given(seeds, st.integers(1, 10), st.integers(1, 5))
def test_the_bound_holds_for_every_point_inside(seed, rows, columns):
    A, h = feasible(seed, rows, columns)
    inside = np.random.default_rng(seed + 1).standard_normal((200, columns)) * 5
    inside = inside[(inside @ A.T >= h).all(1)]
    assert (np.linalg.norm(inside, axis=1) >= least_distance(A, h).lower * (1 - 1e-12)).all()


def test_one_half_space_is_as_far_as_its_plane():
    nearest = least_distance(np.array([[3.0, 4.0]]), np.array([10.0]))
    np.testing.assert_allclose(nearest.point, [1.2, 1.6], rtol=1e-14)
    assert nearest.lower == pytest.approx(2.0, rel=1e-14)


def test_a_polyhedron_around_the_origin_is_at_distance_zero():
    nearest = least_distance(np.array([[1.0, 2.0], [-1.0, 0.0]]), np.array([-1.0, 0.0]))
    assert nearest.distance == nearest.lower == 0


@pytest.mark.parametrize(
    ("A", "h"), [([[1.0, 0.0], [-1.0, 0.0]], [1.0, 1.0]), ([[0.0, 0.0]], [1.0]), ([[1.0], [-2.0]], [3.0, -5.0])]
)
def test_an_empty_polyhedron_has_no_nearest_point(A, h):
    nearest = least_distance(np.array(A), np.array(h))
    assert nearest.point is None
    assert nearest.distance == nearest.lower == np.inf


@pytest.mark.parametrize("factor", [1e-8, 1.0, 1e8])
def test_the_unit_does_not_matter(factor):
    A, h = feasible(3, 8, 4)
    assert least_distance(A, factor * h).distance == pytest.approx(factor * least_distance(A, h).distance, rel=1e-9)


def test_many_parallel_half_spaces_are_no_obstacle():
    rng = np.random.default_rng(0)
    A = np.repeat(rng.standard_normal((3, 20)), 40, axis=0) + 1e-9 * rng.standard_normal((120, 20))
    nearest = least_distance(A, np.ones(120))
    assert nearest.lower == pytest.approx(nearest.distance, rel=1e-6)
    assert (A @ nearest.point >= 1 - 1e-6).all()


@pytest.mark.parametrize(("A", "h"), [([[np.nan, 1.0]], [1.0]), ([[1e-140]], [1e200]), ([[1e200], [-1.0]], [1.0, 1.0])])
def test_nothing_is_claimed_where_numbers_overflow(A, h):
    nearest = least_distance(np.array(A), np.array(h))
    assert nearest.point is None
    assert nearest.lower == nearest.distance == 0


@settings(max_examples=30)
@given(seeds, st.integers(1, 8), st.sampled_from([0.0, 1e-3, 1e-6, 1e-9]))
def test_many_dimensions_are_those_of_the_half_spaces_alone(seed, rows, tilt):
    """In the span of the normals the system is square; half-spaces that are nearly parallel must not lose digits."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, 60))
    if tilt:
        A = np.concatenate([A, A[:1] + tilt * rng.standard_normal((1, 60))])
    h = A @ rng.standard_normal(60)
    span, coordinates = np.linalg.qr(A.T)
    tall, square = least_distance(A, h), least_distance(coordinates.T, h)
    assert tall.distance == pytest.approx(square.distance, rel=1e-8)
    assert tall.lower == pytest.approx(square.lower, rel=1e-8)
    if not tilt:
        np.testing.assert_allclose(tall.point, span @ square.point, atol=1e-10 * (1 + square.distance))
