"""The laboratory's numbers are the library's: measured again, by its own scripts and on the command line."""

import base64
import contextlib
import io
import json

import pytest
import torch

import brittle as bt
from brittle.cli import main
from brittle.data import Data
from brittle.explorer import ExplorerSubject, application, own_points
from tests.explorer.client import PORT, TOKEN, ask

CORNERS = [[1.2, 1.1, 1], [-1.2, -0.9, 1], [1.0, -1.2, -1], [-1.1, 1.3, -1], [0.4, 0.5, 1], [0.3, -0.4, -1]]
KKT = {"jump": "kkt", "width": 30, "parts": ["radii", "universal", "kkt"]}


@pytest.fixture(scope="module")
def app():
    return application(ExplorerSubject(own=Data([[0.0, 1.0], [1.0, 0.0]], [1.0, -1.0])), TOKEN, PORT)


@pytest.fixture(scope="module")
def landed(app):
    return ask(app, "plane", {"points": CORNERS, **KKT}).json


def data_of(points):
    table = torch.tensor(points, dtype=torch.float64)
    return Data(table[:, :2], table[:, 2])


def network_of(weights):
    return bt.networks.TwoLayer(*(torch.tensor(weights[name], dtype=torch.float64) for name in "Wbv"))


def close(one, other):
    one, other = (torch.as_tensor(each, dtype=torch.float64) for each in (one, other))
    return torch.allclose(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("preset", ["moons", "rings", "line", "xor", "sphere", "clusters", "own"])
def test_presets_have_both_labels_and_are_the_same_again(app, preset):
    asked = {"preset": preset, "count": 12, "seed": 3}
    points = ask(app, "points", asked).json["points"]
    assert points == ask(app, "points", asked).json["points"]
    assert {row[2] for row in points} == {-1, 1}
    assert all(round(each, 4) == each for row in points for each in row)
    assert preset in ("line", "own") or len(points) == 12


def test_hardening_trains_for_the_radius_as_the_library_does(app, landed):
    asked = {"points": CORNERS, "network": landed["network"], "jump": "radius", "parts": ["radii", "universal"]}
    found = ask(app, "plane", asked).json
    data, start = data_of(CORNERS), network_of(landed["network"])
    regime = bt.training.MaximumRadius(until=bt.training.Steps(150))
    made = regime.train(start, data, torch.Generator().manual_seed(0)).network
    assert close(found["network"]["W"], made.W)
    assert min(found["margins"]) > 0
    assert close(found["radii"]["lower"], bt.certificates.Exact(seconds=1.0, nodes=100).bound(made, data).lower)
    moved = [[x + 0.01, y, label] for x, y, label in CORNERS]
    again = ask(app, "plane", {**asked, "points": moved, "network": found["network"], "patient": False}).json
    assert not again["behind"]
    assert min(again["margins"]) > 0


def test_the_jump_lands_on_a_kkt_point_with_proved_radii(landed):
    assert landed["kkt"]["stationarity"] < 1e-9
    assert min(landed["margins"]) == pytest.approx(1, abs=1e-9)
    assert landed["radii"]["status"] == ["exact"] * len(CORNERS)
    data, network = data_of(CORNERS), network_of(landed["network"])
    assert bt.kkt.residual(network, data).stationarity < 1e-9
    moved = data.X + torch.tensor(landed["radii"]["flips"], dtype=torch.float64)
    assert (network.margins(moved, data.y) < 0).all()
    for k in range(12):  # a net of directions finds nothing inside the balls
        turn = torch.tensor(k * 0.5236, dtype=torch.float64)
        step = 0.999 * torch.tensor(landed["radii"]["lower"])[:, None] * torch.stack([turn.cos(), turn.sin()])
        assert (network.margins(data.X + step, data.y) > 0).all()


def test_the_python_lines_compute_the_same(app, landed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ask(app, "python", {"points": CORNERS, "network": landed["network"]}).json["lines"]
    found: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(lines, found)
    assert close(landed["radii"]["lower"], found["bounds"].lower)
    assert close(landed["universal"]["smallest"], found["universal"].smallest)
    command = next(line for line in lines.splitlines() if line.startswith("# brittle certify"))
    assert main([*command.split()[2:-1], "out.json"]) == 0
    certified = json.loads((tmp_path / "out.json").read_text())
    assert close(landed["radii"]["lower"], certified["lower"])
    assert close(landed["radii"]["upper"], certified["upper"])
    assert main(["kkt", "net.npz", "--data", "data.npz", "--json", "kkt.json"]) == 0
    measured = json.loads((tmp_path / "kkt.json").read_text())
    assert close(landed["kkt"]["normalised_margin"], measured["normalised_margin"])
    assert close(landed["kkt"]["multipliers"], measured["multipliers"])


def test_a_moved_point_is_followed_to_the_point_that_is_solved_for(app, landed):
    points = [[*row] for row in CORNERS]
    points[0][0] += 0.02
    moved = ask(app, "plane", {"points": points, "network": landed["network"], "patient": False, **KKT}).json
    assert moved["origin"] == "followed"
    again = bt.kkt.solve(network_of(landed["network"]), data_of(points))
    assert moved["kkt"]["normalised_margin"] == pytest.approx(again.normalised_margin, rel=1e-9)


def test_who_does_not_wait_sees_the_old_network_on_the_new_points(app, landed):
    points = [[*row] for row in CORNERS]
    points[0][:2] = [-1.5, 1.5]  # among the others
    asked = {"points": points, "network": landed["network"], **KKT}
    behind = ask(app, "plane", asked | {"patient": False}).json
    assert behind["behind"]
    assert behind["network"] == landed["network"]
    assert behind["margins"][0] < 0
    assert behind["radii"]["status"][0] == "error"
    patient = ask(app, "plane", asked).json
    assert patient["origin"] == "solved"
    assert min(patient["margins"]) > 0


def test_universal_intervals_say_who_is_flipped(landed):
    data, network = data_of(CORNERS), network_of(landed["network"])
    known = landed["universal"]
    z = torch.tensor(known["z"], dtype=torch.float64)
    for c in torch.linspace(0.05, 1.3 * (known["smallest"] or 3), 15).tolist():
        flipped = {k for k, start, stop in known["intervals"] if start < c and (stop is None or c < stop)}
        assert flipped == set((network.margins(data.X - c * data.y[:, None] * z, data.y) < 0).nonzero()[:, 0].tolist())


def test_the_grid_holds_the_logits_from_the_lower_left(app, landed):
    body = {"points": CORNERS, "network": landed["network"], "parts": ["grid"], "half": 2, "aspect": 1.5, "x": 0.5}
    grid = ask(app, "plane", body).json["grid"]
    rows, columns = grid["logits"]["shape"]
    assert columns == 1.5 * rows
    values = torch.frombuffer(bytearray(base64.b64decode(grid["logits"]["float32"])), dtype=torch.float32)
    corners = torch.tensor([[-2.5, -2.0], [3.5, -2.0], [-2.5, 2.0]], dtype=torch.float64)
    expected = network_of(landed["network"]).logits(corners)
    assert torch.allclose(values.view(rows, columns)[[0, 0, -1], [0, -1, 0]].double(), expected, rtol=1e-5, atol=1e-5)


def test_the_flow_comes_frame_by_frame(app):
    frames = ask(app, "flow", {"points": CORNERS, "width": 20, "until": -4}).lines
    losses = [each["log_loss"] for each in frames[1:]]
    assert frames[0]["log_loss"] is None
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == pytest.approx(-4, abs=0.01)
    data, network = data_of(CORNERS), network_of(frames[-1]["network"])
    assert frames[-1]["margin"] == pytest.approx(float(network.margins(data.X, data.y).min()), abs=1e-12)
    loss = torch.exp(-network.margins(data.X, data.y)).mean().log()
    assert losses[-1] == pytest.approx(float(loss), abs=1e-9)


def test_hypotheses_come_with_their_slack(app, landed):
    body = {"points": CORNERS, "network": landed["network"], "parts": ["theorems"]}
    found = {each["id"]: each for each in ask(app, "plane", body).json["theorems"]}
    verdict = bt.theorems.check("vardi2022/4.1", data_of(CORNERS), network_of(landed["network"]))
    shown = found["vardi2022/4.1"]["hypotheses"]
    assert [each["holds"] for each in shown] == [each.holds for each in verdict.hypotheses]
    assert close([each["slack"] for each in shown], [each.slack for each in verdict.hypotheses])
    assert found["frei2023/4.1"]["verdict"] == "not_applicable"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (Data([[1.0, 2.0, 3.0]], [1.0]), "two"),
        (Data([[1.0, 2.0], [0.0, 1.0], [2.0, 2.0]], [0, 1, 2]), "classes"),
        (Data([[float(k), 0.0] for k in range(70)], [1.0, -1.0] * 35), "up to 60"),
        (Data([[1e6, 2.0], [0.0, 1.0]], [1.0, -1.0]), "reaches to 100"),
    ],
)
def test_points_that_do_not_fit_the_laboratory_are_refused(data, word):
    with pytest.raises(bt.InputError, match=word):
        own_points(data, "own.csv")
