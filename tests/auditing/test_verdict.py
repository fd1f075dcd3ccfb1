"""Sentences compare medians over the same examples, and say over how many."""

from dataclasses import replace

import torch

from brittle.auditing.verdict import _how_far, compared
from brittle.auditing.vulnerability import Certified, Radii, Vulnerability, median


def radii(*norms: float) -> Radii:
    values = torch.tensor(norms, dtype=torch.float64)
    return Radii(torch.arange(len(norms)), values, median(values), partial=False)


def test_medians_are_over_the_examples_that_both_reached():
    """Over all five examples the first median would be 5."""
    assert compared(radii(1, 2, 3, 9, 9), radii(4, 5, 6)) == (2, 5, 3)


def test_a_proof_of_some_examples_is_set_beside_their_flips():
    rows, lower = torch.tensor([0, 1, 2]), torch.tensor([0.5, 1.0, 1.5], dtype=torch.float64)
    some = Certified(rows, lower, lower, lower > 0, "dual", median(lower), median(lower), partial=True)
    free = radii(1, 2, 3, 9, 9)
    weak = Vulnerability(torch.arange(5), 10.0, free, free, None, None, (), some, torch.zeros(5, 2))
    assert _how_far(weak) == (
        "The median of 5 examples flips at distance 3, 30.0% of its norm; "
        "of the 3 that there was time to certify, half provably hold out to 1, where the attack needs 2."
    )
    whole = replace(weak, free=radii(1, 2, 3))
    assert _how_far(whole).endswith("flips at distance 2, 20.0% of its norm; half of them provably hold out to 1.")
