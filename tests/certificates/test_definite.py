"""Floors of Hessians refuse what is no curvature, and hold to the last of what they claim."""

import numpy as np
import pytest

from brittle.certificates.deep_dual.definite import chain_floor, cholesky_floor

WEIGHTS = (np.eye(3), np.full((2, 3), 0.1))


def curvatures(place: int, value: float) -> list[np.ndarray]:
    flat = np.full(5, 0.5)
    flat[place] = value
    return [flat[:3], flat[3:]]


def hessian(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Ĥ, written out from its definition."""
    H = np.diag([1.0] * 3 + [2.0] * 5)
    H[3:6, :3] = -np.sqrt(first)[:, None] * WEIGHTS[0]
    H[6:, 3:6] = -np.sqrt(second)[:, None] * WEIGHTS[1] / np.sqrt(first)
    return np.tril(H) + np.tril(H, -1).T


def test_a_floor_is_proved_up_to_the_smallest_eigenvalue_and_no_further():
    least = float(np.linalg.eigvalsh(hessian(*curvatures(0, 0.5)))[0])
    assert cholesky_floor(WEIGHTS, curvatures(0, 0.5), least * (1 - 1e-6)) == least * (1 - 1e-6)
    assert cholesky_floor(WEIGHTS, curvatures(0, 0.5), least * (1 + 1e-6)) == 0


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("value", [0.0, -0.5, np.inf, np.nan])
def test_one_curvature_that_is_none_proves_nothing(place, value):
    assert cholesky_floor(WEIGHTS, curvatures(place, value), 1e-3) == 0


@pytest.mark.parametrize("wanted", [0.0, -1e-3, 0.99, 1.5, np.nan])
def test_floors_outside_their_range_are_not_proved(wanted):
    assert cholesky_floor(WEIGHTS, curvatures(0, 0.5), wanted) == 0


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_a_chain_refuses_each_number_that_is_none(bad):
    assert chain_floor((0.5, 0.5), (1.0, 1.0)) > 0
    for curved in ((bad, 1.0), (1.0, bad)):
        assert chain_floor((0.5, 0.5), curved) == 0
    for norms in ((bad, 0.5), (0.5, bad)):
        assert (chain_floor(norms, (1.0, 1.0)) > 0) == (bad == 0)  # a layer without weights is a layer


def test_a_chain_claims_nine_tenths_of_the_smallest_eigenvalue():
    T = np.array([[1, -0.5, 0], [-0.5, 2, -0.75], [0, -0.75, 2.0]])
    assert chain_floor((0.5, 0.75), (1.0, 1.0)) == pytest.approx(0.9 * np.linalg.eigvalsh(T)[0])
    scaled = np.array([[1, -1, 0], [-1, 2, -0.375], [0, -0.375, 2.0]])
    assert chain_floor((0.5, 0.75), (4.0, 1.0)) == pytest.approx(0.9 * np.linalg.eigvalsh(scaled)[0])
