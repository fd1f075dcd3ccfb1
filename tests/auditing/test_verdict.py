"""Sentences say on how many examples they rest, compare the same examples, and conclude nothing from a part of them."""

from dataclasses import replace

import torch

from brittle.auditing.proofs import Certified
from brittle.auditing.sample import median, median_interval
from brittle.auditing.verdict import _how_far, off_subspace_cost, written
from brittle.auditing.vulnerability import Radii, Vulnerability


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def radii(*norms: float, count: int | None = None) -> Radii:
    return Radii.of(tensor(*norms), len(norms) if count is None else count)


def weak(free: Radii, on: Radii | None = None, certified: Certified | None = None) -> Vulnerability:
    return Vulnerability(torch.arange(5), False, 50, 10.0, free, free, on, None, (), certified, torch.zeros(5, 2))


def test_a_proof_of_some_examples_is_set_beside_their_flips():
    lower, status = tensor(0.5, 1.0, 3.0), ("proved", "proved", "exact")
    some = Certified(torch.arange(3), lower, lower, status, "dual", 1.0, 1.0, median_interval(lower), partial=False)
    subject = weak(radii(1, 2, 3, 9, 9), certified=some)
    assert _how_far(subject) == (
        "The median of 5 of 50 training examples flips at distance 3 (95 % interval 0 to ∞), 30.0% of its norm; of the "
        "3 that there was work to certify, half provably hold out to 1, where the attack needs 2; the radius of 1 is "
        "known exactly."
    )
    whole = replace(subject, free=radii(1, 2, 3), held_out=True, available=3)
    assert _how_far(whole) == (
        "The median of all 3 held-out examples flips at distance 2 (95 % interval 0 to ∞), 20.0% of its norm; half of "
        "them provably hold out to 1; the radius of 1 is known exactly."
    )
    assert some.counts == {"exact": 1, "proved": 2, "open": 0, "error": 0}
    assert some.open_rows.tolist() == [0, 1]


def test_nothing_is_concluded_from_a_part_of_the_examples():
    free, on = radii(1, 2, 3), radii(2, 4, 6)
    assert off_subspace_cost(weak(free, on)) == 2
    assert off_subspace_cost(weak(free, radii(2, 4, count=3))) is None
    assert off_subspace_cost(weak(radii(1, 2, count=3), on)) is None


def test_a_verdict_that_the_clock_cut_short_says_so():
    assert "not reproducible at this budget" in written(weak(radii(1, 2, 3)), None, (), [], partial=True)
    assert "reproducible" not in written(weak(radii(1, 2, 3)), None, (), [], partial=False)


def test_the_median_is_the_lower_middle():
    assert median(tensor(1, 2, 3, 4)) == 2
