"""frei2023's figures: how the conjecture beyond linear separability is judged."""

import math

import pytest

from brittle.experiments import EXPERIMENTS


def _points(power: float, factor: float):
    """c/√d = factor·d^power, at networks that no linear rule separates."""
    common = {"separable": False, "error": 0.0, "shortest": 1.0, "rule_radius": 2.0, "clusters": 4}
    return [{**common, "dim": d, "seed": s, "size": factor * d ** (power + 0.5)} for d in (8, 16, 24) for s in range(3)]


@pytest.mark.parametrize(
    ("power", "factor", "holds"),
    [(-0.5, 2.0, True), (-0.5, 8.0, None), (0.2, 1.0, False)],
    ids=["below √d at the largest d", "above it and falling", "above it and growing"],
)
def test_a_universal_direction_that_is_still_too_long_refutes_nothing_while_it_shrinks(power, factor, holds):
    claims = EXPERIMENTS["frei2023/fig-c"].judge(_points(power, factor))
    assert [claim.holds for claim in claims] == [True, True, holds]
    assert ("not decided at this size: d ≤ 24" in claims[2].measured) is (holds is None)


def test_networks_that_no_multiple_flips_are_no_trend():
    points = [{**point, "size": None} for point in _points(0.0, 1.0)]
    claim = EXPERIMENTS["frei2023/fig-c"].judge(points)[2]
    assert claim.holds is None
    assert f"c/√d {math.inf} at d = 8" in claim.measured
