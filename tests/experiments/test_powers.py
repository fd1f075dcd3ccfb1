"""Exponents with intervals: by another library, and what they decide."""

import numpy as np
import pytest
from scipy.stats import linregress, t

from brittle.experiments.summary import Power, exponent


def test_the_interval_is_that_of_a_linear_regression():
    rng = np.random.default_rng(0)
    sizes = np.repeat([10.0, 20.0, 50.0, 90.0], 3)
    values = 7 * sizes**-0.4 * np.exp(0.1 * rng.normal(size=12))
    found, line = exponent("c", "d", sizes.tolist(), values.tolist()), linregress(np.log(sizes), np.log(values))
    half = t.ppf(0.975, 10) * line.stderr
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((line.slope, line.slope - half, line.slope + half))
    assert str(found).startswith("d^(-0.")


def test_two_sizes_give_no_interval():
    assert exponent("c", "d", [1.0, 2.0, 2.0], [1.0, 2.0, 3.0]) is None


@pytest.mark.parametrize(
    ("low", "high", "below", "at_most", "at_least"),
    [
        (-0.7, -0.6, True, True, False),
        (-0.45, -0.4, False, False, True),
        (-0.6, -0.45, None, True, True),
        (-0.6, -0.2, None, None, True),
        (-0.9, -0.45, None, True, None),
        (-0.9, -0.2, None, None, None),
    ],
)
def test_what_an_interval_decides(low, high, below, at_most, at_least):
    power = Power("d", (low + high) / 2, low, high)
    assert power.below(-0.5) is below
    assert power.at_most(-0.5, 0.15) is at_most
    assert power.at_least(-0.5, 0.15) is at_least
    assert power.holds(-0.5) is (below is None)
