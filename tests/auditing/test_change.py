"""Two audits beside each other: examples are matched by their places in the data, and proofs decide what is sure."""

import math

import pytest

import brittle as bt
from brittle.auditing.change import compare_audits


def audit(examples, norms, lower=None, held_out=False, **numbers):
    """The part of an audit's JSON that is compared."""
    rows = list(range(len(norms)))
    proofs = lower and {"rows": rows, "lower": lower, "upper": norms, "median_lower": numbers.get("proved", 0.5)}
    weak = {
        "examples": examples,
        "held_out": held_out,
        "free": {"rows": rows, "norms": norms, "median": 1.0},
        "certified": proofs,
    }
    return {
        "vulnerability": weak,
        "limit": {"share": numbers.get("share", 0.5), "proved_share": None},
        "regime": {"accuracy": 1.0},
    }


def test_the_same_examples_are_compared_wherever_they_stand():
    before = audit([7, 3, 9], [1.0, 2.0, 3.0], [0.5, 2.0, 3.0])
    after = audit([3, 7, 4], [1.0, 1.5, 9.0], [0.9, 1.2, 9.0])
    change = compare_audits(before, after)
    assert change.examples == 2
    assert (change.farther, change.surely_farther) == (1, 1)  # 7: flips at 1, and then nothing below 1.2 does
    assert (change.nearer, change.surely_nearer) == (1, 1)  # 3: nothing below 2, and then it flips at 1
    assert "provably for 1) and 1 nearer (provably for 1)" in change.sentence


def test_an_attack_alone_is_no_proof():
    change = compare_audits(audit([0, 1], [1.0, 1.0]), audit([0, 1], [2.0, 0.5]))
    assert (change.farther, change.nearer, change.surely_farther, change.surely_nearer) == (1, 1, 0, 0)


def test_a_flip_that_nobody_found_is_infinitely_far():
    change = compare_audits(audit([0, 1, 2], [None, None, 1.0]), audit([0, 1, 2], [None, 2.0, None]))
    assert (change.farther, change.nearer) == (1, 1)


def test_small_differences_are_none():
    change = compare_audits(audit([0], [1.0]), audit([0], [1.0005]))
    assert (change.farther, change.nearer) == (0, 0)


def test_held_out_examples_are_not_those_of_training():
    change = compare_audits(audit([0], [1.0]), audit([0], [2.0], held_out=True))
    assert change.examples == 0
    assert change.sentence == ""
    assert math.isnan(change.median)


def test_the_measures_stand_beside_each_other():
    change = compare_audits(audit([0], [1.0], [1.0], proved=0.25), audit([0], [1.0], share=0.75))
    told = {each.name: (each.before, each.after) for each in change.measures}
    assert told["proved for half of the examples"] == (0.25, None)
    assert told["share of what the data allow"] == (0.5, 0.75)
    assert change.to_frame().set_index("name").loc["share of what the data allow", "after"] == 0.75


@pytest.mark.parametrize("content", [{}, {"vulnerability": 3}, [], {"vulnerability": {"free": {"median": "x"}}}])
def test_what_is_no_audit_is_refused(content):
    with pytest.raises(bt.InputError, match="not the JSON of an audit"):
        compare_audits(content, content)
