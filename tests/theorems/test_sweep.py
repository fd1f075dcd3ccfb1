"""A theorem at every combination of some sizes: each row is the check that one would have made by hand."""

import math
from dataclasses import replace

import pytest
import torch

from brittle.common.errors import InputError
from brittle.common.result import latex
from brittle.report.theorem_index import write_latex
from brittle.theorems import CheckOutcome, check_default, find, sweep
from brittle.theorems.comparison import at_most
from brittle.theorems.trials import _looseness, _tightest, combinations, is_violated


def seeded():
    return torch.Generator().manual_seed(3)


def test_every_row_is_the_check_with_these_fields():
    theorem = find("melamed2023/4.1")
    cases = sweep(theorem, {"dim": (60, 90), "codimension": (30, 50)}, seeded())
    assert [dict(case.values) for case in cases] == [
        {"dim": dim, "codimension": codimension} for dim in (60, 90) for codimension in (30, 50)
    ]
    for case in cases:
        alone = check_default(replace(theorem, **case.values), seeded(), beyond=True)
        assert case.verdict.measured == alone.measured
        assert case.verdict.hypotheses == alone.hypotheses


def test_sizes_without_an_instance_are_told_in_their_row():
    cases = sweep(find("melamed2023/4.1"), {"codimension": (50, 70)}, seeded())
    assert all(case.verdict is not None for case in cases)
    impossible = sweep(replace(find("melamed2023/4.1"), dim=60), {"codimension": (50, 70)}, seeded())
    assert [case.outcome == "impossible" for case in impossible] == [False, True]
    assert "codimension is 70" in impossible[1].problem


def test_the_decisive_comparisons_are_shown():
    case = sweep(find("vardi2022/C.5"), {"dim": (2000,)}, seeded())[0]
    assert case.verdict.verdict is CheckOutcome.HYPOTHESES_FAIL
    assert case.hypothesis.name in case.verdict.failed
    assert case.conclusion == case.verdict.beyond[0]


def test_one_violation_is_enough():
    cases = sweep(find("melamed2023/R3.1-printed"), {"dim": (10, 100)}, seeded())
    assert is_violated(cases)
    assert not is_violated(sweep(find("melamed2023/B.1"), {"dim": (10,)}, seeded()))


def test_an_axis_needs_values():
    with pytest.raises(InputError, match="no value of dim"):
        combinations(find("melamed2023/B.1"), {"dim": ()})


def test_latex_has_no_character_that_it_would_stumble_over(tmp_path):
    assert latex("50 % of {x_1} & ‖x‖² ≤ √d") == (
        r"50 \% of \{x\_1\} \& \ensuremath{\Vert}x\ensuremath{\Vert}\ensuremath{^2} "
        r"\ensuremath{\leq} \ensuremath{\surd}d"
    )
    write_latex(tmp_path / "t.tex", sweep(find("vardi2022/C.5"), {"dim": (2000, 3000)}, seeded()))
    text = (tmp_path / "t.tex").read_text()
    assert text.isascii()
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 3
    assert all(row.count("&") == 5 for row in rows)


def test_a_slack_counts_beside_the_size_of_its_threshold():
    """-8 where at most -4 is asked has half of it to spare; what fails comes first, what is 0 but for rounding last."""
    far, near = at_most("far", -8.0, -4.0), at_most("near", 1.0, 4.0)
    zero, failed = at_most("zero", 0.0, 0.0), at_most("failed", 9.0, -1.0)
    assert [_looseness(each)[1] for each in (far, near, zero, failed)] == [1.0, 0.75, math.inf, -10.0]
    assert _tightest((far, near, zero)) is near
    assert _tightest((far, near, failed)) is failed
    assert _tightest(()) is None
