"""The table of verdicts that depend on the seed."""

import json

import pytest

from benchmarks.seeds import listed, main


def write(folder, seed, **verdicts):
    results = [{"id": identity, "verdict": verdict} for identity, verdict in verdicts.items()]
    (folder / f"{seed}.json").write_text(json.dumps({"results": results}))


def test_seeds_are_listed_by_ranges():
    assert listed("0..3,9") == [0, 1, 2, 3, 9]


@pytest.mark.parametrize(("other", "code"), [("hypotheses_fail", 1), ("confirmed", 0)])
def test_a_verdict_that_depends_on_the_seed_is_printed(tmp_path, capsys, other, code):
    write(tmp_path, 0, one="confirmed", two="violated")
    write(tmp_path, 7, one=other, two="violated")
    assert main(["--seeds", "0,7", "--keep", str(tmp_path)]) == code
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in printed[:code]] == [["seed", "7", "one", f"{other},"]] * code
    assert printed[-1] == f"{code} verdicts of 2 seeds differ from those of seed 0"
