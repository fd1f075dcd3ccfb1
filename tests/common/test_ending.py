"""Every ending has its word and its advice, and is no more than its word in a file."""

import json
import pickle

import pytest

from brittle.common.ending import Status
from brittle.common.result import jsonable


@pytest.mark.parametrize("ending", Status)
def test_an_ending_is_its_word_with_one_line_of_advice(ending):
    assert ending == ending.value == str(ending) == f"{ending}"
    assert hash(ending) == hash(ending.value)
    assert Status(ending.value) is ending
    assert ending.advice.strip()
    assert "\n" not in ending.advice


@pytest.mark.parametrize("ending", Status)
def test_an_ending_survives_files_and_processes(ending):
    assert json.loads(json.dumps(jsonable({"status": ending}))) == {"status": ending.value}
    assert type(jsonable(ending)) is str
    assert pickle.loads(pickle.dumps(ending)) is ending


def test_there_is_a_word_for_every_way_to_end():
    training = {"reached", "budget", "stalled", "diverged", "interrupted"}
    certificates = {"error", "exact", "capped", "open"}
    assert set(Status) == training | certificates | {"solved", "inaccurate", "rounding"}


def test_an_unknown_word_is_no_ending():
    with pytest.raises(ValueError, match="perhaps"):
        Status("perhaps")
