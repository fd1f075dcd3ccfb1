"""A page holds what its cells hold: its numbers are computed again from the stored cells, by hand."""

import json
import shutil
from statistics import median

import pytest

from brittle.experiments import EXPERIMENTS, reproduce
from brittle.report.figures import contents, grid_words, reproduction, write_figure

FIGURE = "melamed2023/fig2"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("written")
    write_figure(reproduce(EXPERIMENTS[FIGURE], "smoke", place), place)
    return place


@pytest.fixture
def folder(written, tmp_path):
    """A copy that a test may spoil."""
    return shutil.copytree(written, tmp_path / "copy")


def stored(folder):
    """The cells as they lie in their files, by panel."""
    found = [json.loads(path.read_text()) for path in (folder / "cells").glob("*.json")]
    return {cell["params"]["panel"]: cell["measured"] for cell in found}


def test_the_numbers_of_a_page_are_those_of_its_cells(folder):
    page, cells = reproduction(contents(folder)), stored(folder)
    assert set(cells) == {"a", "b", "c"}
    for panel in "bc":
        far, near = (median([cells[name]["off_nearest"]]) for name in (panel, "a"))
        assert f"{far:.3f} against {near:.3f}" in page
        assert f"×{cells[panel]['normal']:.3g} (predicted {cells[panel]['predicted']:.3g})" in page
    assert "other code" not in page
    assert "Cells: " in page


def test_a_page_says_where_it_does_not_hold_what_its_cells_hold(folder):
    path = folder / "melamed2023-fig2" / "figure.json"
    content = json.loads(path.read_text())
    content["claims"][0]["measured"] = "0.367 against 0.240"
    path.write_text(json.dumps(content))
    assert "Measured with other code" in reproduction(contents(folder))


def test_a_page_says_where_its_cells_have_changed(folder):
    path = next((folder / "cells").glob("*.json"))
    cell = json.loads(path.read_text())
    path.write_text(json.dumps({**cell, "measured": {**cell["measured"], "off_nearest": 77.0}}))
    assert contents(folder)[0]["current"] is False


def test_a_page_says_where_cells_are_missing(folder):
    assert contents(folder)[0]["current"] is True
    next((folder / "cells").glob("*.json")).unlink()
    assert contents(folder)[0]["current"] is False


def test_a_page_says_where_cells_had_other_parameters(folder):
    path = folder / "melamed2023-fig2" / "figure.json"
    content = json.loads(path.read_text())
    for point in content["points"]:
        del point["height"]
    del content["grid"]
    path.write_text(json.dumps(content))
    assert contents(folder)[0]["current"] is False
    assert "Cells: unknown." in reproduction(contents(folder))


def test_the_grid_in_words():
    assert grid_words({"width": [9], "dim": [36, 100], "rate": [0.02, 0.5]}) == "dim 36, 100; rate 0.02, 0.5; width 9"
