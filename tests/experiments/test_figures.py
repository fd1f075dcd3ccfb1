"""Every figure's smoke preset, from the cells to the files, and what only some figures promise."""

import csv
import io
import json
import math
import os
import re
import xml.etree.ElementTree as ElementTree

import pytest
import torch

from brittle.cli import main
from brittle.common.errors import InputError
from brittle.data import Sphere
from brittle.experiments import EXPERIMENTS, FigurePlan, find, reproduce
from brittle.experiments.base import PRESETS, Experiment
from brittle.experiments.vardi2022.cells import UniversalCell, recipe_iterations
from brittle.networks import TorchLinearInit
from brittle.report.figures import draw, write_figure
from brittle.training import Flow, Loss, SgdSchedule


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all figures, so that they share cells, those of other processes of this run too."""
    base = tmp_path_factory.getbasetemp()
    return base.parent / "smoke" if "PYTEST_XDIST_WORKER" in os.environ else base / "smoke"


@pytest.mark.parametrize("figure_id", EXPERIMENTS)
def test_smoke(figure_id, folder):
    experiment = EXPERIMENTS[figure_id]
    result = reproduce(experiment, "smoke", folder)
    assert len(result.points) + len(result.unreached) == len(experiment.cells("smoke"))
    assert len(result.claims) > 0
    assert len(result.points) > 0 or all(claim.holds is None for claim in result.claims)
    assert all(claim.measured for claim in result.claims)
    place = write_figure(result, folder)
    content = json.loads((place / "figure.json").read_text())
    assert content["claims"] == [claim.to_json() for claim in result.claims]
    assert content["points"] == list(result.points)
    rows = list(csv.DictReader(io.StringIO((place / "points.csv").read_text())))
    assert [int(row["seed"]) for row in rows] == [point["seed"] for point in result.points]
    assert (place / "figure.png").read_bytes().startswith(b"\x89PNG")
    ElementTree.parse(place / "figure.svg")
    check_page((place / "index.html").read_text(), result)


def check_page(text, result):
    """Every claim is there, and nothing is fetched from anywhere."""
    assert text.count("<svg") == 1
    assert text.count('<td class="yes">') + text.count('<td class="no">') + text.count('<td class="open">') == len(
        result.claims
    )
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', text)


@pytest.mark.parametrize("figure_id", EXPERIMENTS)
def test_every_preset_has_cells_and_no_points_are_undecided(figure_id):
    experiment = EXPERIMENTS[figure_id]
    for preset in PRESETS:
        cells = experiment.cells(preset)
        assert len({cell.key for cell in cells}) == len(cells)
        assert all(cell.cost() > 0 for cell in cells)
    assert all(claim.holds is None for claim in experiment.judge([]))
    draw(experiment.picture([]))


@pytest.mark.parametrize("figure_id", EXPERIMENTS)
def test_every_figure_says_what_is_drawn(figure_id):
    words = type(EXPERIMENTS[figure_id]).__doc__
    assert words
    assert words != Experiment.__doc__


def test_figures_of_one_family_share_cells():
    figures = find("vardi2022")
    assert [figure.id for figure in figures] == [
        f"vardi2022/{name}" for name in ("fig1a", "fig1b", "fig2a", "fig2b", "sec6")
    ]
    together = FigurePlan(tuple(figures), "smoke")
    alone = [FigurePlan((figure,), "smoke") for figure in figures]
    assert len(together.costs) < sum(len(plan.costs) for plan in alone)
    assert set(alone[2].costs) == set(alone[3].costs) < set(alone[0].costs)


def test_a_plan_knows_what_is_left(folder):
    experiment = EXPERIMENTS["vardi2022/fig2b"]
    reproduce(experiment, "smoke", folder)
    plan = FigurePlan((experiment,), "smoke")
    assert plan.cost() > 0
    assert plan.cost(folder) == 0


def test_unknown_figures():
    assert find("all") == list(EXPERIMENTS.values())
    with pytest.raises(InputError, match="vardi2022/fig1a"):
        find("vardi2022/fig9")


def test_the_recipe_takes_as_many_iterations_as_estimated(rng):
    data = Sphere(20).sample(6, rng)
    network = TorchLinearInit().draw(20, 40, rng)
    recipe = SgdSchedule(until=Loss(1e-8), every=20)
    estimated = recipe_iterations(Flow(until=recipe.until).train(network, data), recipe)
    taken = recipe.train(network, data).steps
    assert estimated == pytest.approx(taken, rel=0.08)


def test_a_cell_measures_the_direction_of_the_paper():
    """c by brute force: the first size on a fine grid at which every example on the margin is flipped."""
    point = UniversalCell(dim=30, alpha=0.8, width=80, seed=3, at="flow").measure()
    rng = torch.Generator().manual_seed(3)
    data = Sphere(30).sample(15, rng)
    network = Flow(until=Loss(1e-30)).train(TorchLinearInit().draw(30, 80, rng), data).network
    q = network.margins(data.X, data.y)
    I = q <= 1.1 * q.min()  # noqa: E741
    z = data.y[I] @ data.X[I]
    sizes = torch.linspace(0, math.sqrt(30), 4001, dtype=torch.float64)
    moved = [data.X[I] - c * data.y[I, None] * z / z.norm() for c in sizes]
    first = next(float(c) for c, X in zip(sizes, moved, strict=True) if (network.margins(X, data.y[I]) < 0).all())
    assert point["size"] == pytest.approx(first, abs=2e-3)
    assert point["on_margin"] == int(I.sum())
    assert point["off_margin"] == len(data) - int(I.sum())


def test_the_same_cell_gives_the_same_numbers():
    cell = UniversalCell(dim=30, alpha=0.5, width=50, seed=1, at="kkt")
    first, second = cell.measure(), cell.measure()
    assert first == second
    assert first["reached"]
    assert first["stationarity"] < 1e-9


def test_a_failing_claim_ends_with_1_and_bad_input_with_2(tmp_path, capsys, monkeypatch):
    arguments = ["reproduce", "vardi2022/fig2b", "--preset", "smoke", "--out", str(tmp_path), "--jobs", "1"]
    some = ["--only", "dim=64", "--only", "alpha=0.5"]
    assert main([*arguments, *some, "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["holds"] is True
    assert content["figures"][0]["claims"][0]["holds"] is True
    failing = content["figures"][0]["claims"][0] | {"holds": False}
    monkeypatch.setattr(
        type(EXPERIMENTS["vardi2022/fig2b"]), "judge", lambda self, points: [_claim(failing["text"], "no", False)]
    )
    assert main([*arguments, *some, "--page", str(tmp_path / "page.md")]) == 1
    assert "does not hold" in (tmp_path / "page.md").read_text()
    for wrong in (["--preset", "tiny"], ["--only", "dim"], ["--only", "dim=5"], ["--engine", "mpi"]):
        assert main([*arguments, *wrong]) == 2
    assert main(["reproduce", "nobody/fig1"]) == 2
    errors = capsys.readouterr().err
    assert "tiny" in errors
    assert "nobody/fig1" in errors


def _claim(*fields):
    from brittle.experiments import Claim

    return Claim(*fields)


def test_the_list_of_figures(capsys):
    assert main(["figures", "--jobs", "2", "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [figure["id"] for figure in content["figures"]] == list(EXPERIMENTS)
    for figure in content["figures"]:
        assert 0 < figure["smoke"]["seconds"] <= figure["full"]["seconds"]
