"""Coordinates of the checker: fewer than inputs where the first layer has fewer neurons and full rank."""

import numpy as np
import pytest

from proofcheck.network import Network


def network(W: np.ndarray) -> Network:
    m = len(W)
    return Network([W, np.ones((1, m))], [np.zeros(m), np.zeros(1)])


@pytest.mark.parametrize("seed", range(5))
def test_fewer_coordinates_mean_the_same_first_layer_and_no_longer_perturbations(seed):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(3, 7)) * 10.0 ** rng.integers(-3, 3, (3, 1))
    Z, E = network(W).frame
    assert Z.mid.shape == E.mid.shape == (3, 3)
    for epsilon in rng.normal(size=(20, 3)):
        delta = np.linalg.lstsq(W, Z.mid @ epsilon, rcond=None)[0]  # the shortest with this first layer
        np.testing.assert_allclose(W @ delta, Z.mid @ epsilon, rtol=1e-9, atol=1e-12 * abs(W).max())
        assert delta @ delta == pytest.approx(epsilon @ E.mid @ epsilon, rel=1e-8)
    np.testing.assert_allclose(E.mid, np.eye(3), atol=1e-6)


@pytest.mark.parametrize(
    "rows", [[[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]], [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], np.eye(3), np.eye(4, 3)]
)
def test_dependent_rows_and_wide_layers_keep_the_inputs(rows):
    W = np.array(rows)
    Z, E = network(W).frame
    assert (Z.mid == W).all()
    assert (E.mid == np.eye(3)).all()
