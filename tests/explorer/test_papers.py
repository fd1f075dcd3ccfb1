"""The settings of the four papers: data as asked for, hypotheses that turn green, and the same in Python."""

import contextlib
import io

import pytest
import torch

import brittle as bt
from brittle.explorer import ExplorerSubject, application
from brittle.explorer.papers import PAPERS
from tests.explorer.client import PORT, TOKEN, ask
from tests.explorer.test_plane import close

SMALL = {
    "vardi2022": {"dim": 200, "examples": 6, "coherence": 1, "width": 12, "until": -0.75},
    "frei2023": {"dim": 60, "examples": 12, "clusters": 2, "noise": 0.03, "width": 10, "until": -0.75},
    "melamed2023": {"dim": 120, "codimension": 100, "examples": 6, "width": 8, "until": -0.75},
    "wang2022": {"dim": 60, "examples": 4, "width": 80, "ball": 0.5},
}


@pytest.fixture(scope="module")
def app():
    return application(ExplorerSubject(), TOKEN, PORT)


@pytest.mark.parametrize("name", PAPERS)
def test_every_paper_runs_and_shows_its_theorems(app, name):
    frames = ask(app, "paper", {"paper": name, **SMALL[name]}).lines
    assert frames[0]["where"] == "start"
    assert len(frames) > 3
    for frame in frames:
        assert [each["id"] for each in frame["theorems"]] == list(PAPERS[name].theorems)
        assert frame["universal"]["margins"]["shape"][0] == SMALL[name]["examples"]
    last = [each["log_loss"] for each in frames if each["log_loss"] is not None][-1]
    assert last < (0.7 if name == "wang2022" else -0.7)


def test_the_hypotheses_of_vardi2022_turn_green_at_the_kkt_point(app):
    frames = ask(app, "paper", {"paper": "vardi2022", **SMALL["vardi2022"]}).lines
    before, after = frames[-2]["theorems"][0], frames[-1]["theorems"][0]
    assert before["verdict"] == "hypotheses_fail"
    assert [each["holds"] for each in before["hypotheses"]].count(False) == 1
    assert after["verdict"] == "confirmed"
    assert all(each["slack"] >= 0 for each in after["hypotheses"])
    assert frames[-1]["stationarity"] < 1e-9
    assert frames[-1]["universal"]["smallest"] <= after["promises"][0]["threshold"]


def test_a_smaller_ball_is_asked_of_the_theorems_too(app):
    frames = ask(app, "paper", {"paper": "wang2022", **SMALL["wang2022"]}).lines
    ball = next(each for each in frames[-1]["theorems"][0]["hypotheses"] if "distance from the start" in each["name"])
    assert ball["threshold"] == 0.5
    assert ball["holds"]


@pytest.mark.parametrize("name", PAPERS)
def test_the_python_lines_compute_the_same(app, name):
    small = {"paper": name, **SMALL[name]}
    lines = ask(app, "paper-python", small).json["lines"]
    found: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(lines, found)
    shown = ask(app, "paper", small).lines[-1]
    smallest = found["universal"].smallest
    known = shown["universal"]["smallest"]
    assert known is None if smallest == torch.inf else close(known, smallest)
    margin = float(found["network"].margins(found["data"].X, found["data"].y).min())
    assert shown["margin"] == pytest.approx(margin, abs=1e-9)


def test_every_control_of_a_paper_is_read():
    for name, paper in PAPERS.items():
        for key, control in paper.controls.items():
            assert control.least <= control.set <= control.most, (name, key)
        assert {bt.theorems.find(each).paper for each in paper.theorems} == {name}
