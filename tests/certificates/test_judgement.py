"""A radius beyond a measured flip is a contradiction where the flip is sure; else the flip was a rounding."""

import math
from fractions import Fraction

import pytest
import torch

from brittle.certificates.example import Contradiction, Example, RadiusInterval, check_bound
from brittle.certificates.rounding import exact_sum
from brittle.networks import TwoLayer


def example() -> Example:
    """x ↦ x_1 at (1, 0): no flip is shorter than 1."""
    W, v = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).double(), torch.tensor([1.0, -1.0]).double()
    network, x = TwoLayer(W, torch.zeros(2).double(), v), torch.tensor([1.0, 0.0]).double()
    return Example(network, 0, x, torch.tensor(1.0).double(), 1.0, None)


def enclosure(lower: float, length: float) -> RadiusInterval:
    return RadiusInterval(lower, length, torch.tensor([-length, 0.0]).double(), 100.0)


def test_a_sure_flip_below_the_radius_is_a_contradiction():
    with pytest.raises(Contradiction, match=r"example 0 flips at 2\.0 and was certified to 3\.0"):
        check_bound(example(), enclosure(3.0, 2.0))


def test_a_flip_that_is_none_is_given_up():
    found = check_bound(example(), enclosure(0.9, 0.5))
    assert (found.lower, found.upper) == (0.9, math.inf)
    assert not found.flip.any()


def test_what_is_proved_and_what_flips_are_kept_where_they_agree():
    found = check_bound(example(), enclosure(0.9, 1.5))
    assert (found.lower, found.upper) == (0.9, 1.5)
    assert check_bound(example(), enclosure(1.5 * (1 + 1e-15), 1.5)).lower <= 1.5


@pytest.mark.parametrize(
    "terms", [[1e308, 1e308, 1e308], [-1e308, -1.5e308, 3.0], [0.5, 0.25], [1e308, -1e308, 5e-324]]
)
def test_sums_are_exact_also_where_they_overflow(terms):
    m, e = exact_sum(terms)
    exact = sum(map(Fraction, terms), Fraction(0))
    assert abs(Fraction(m) * Fraction(2) ** e - exact) <= abs(exact) * Fraction(2) ** -53
    assert (m > 0) == (exact > 0)
