"""The walk through an audit: every number as the command line gives it, every flip where it says it is."""

import base64
import json

import pytest
import torch

import brittle as bt
from brittle.cli import main
from brittle.data import Data, Subspace
from brittle.explorer import ExplorerSubject, NetworkWalk, application
from tests.explorer.client import PORT, TOKEN, ask
from tests.explorer.test_plane import close


@pytest.fixture(scope="module")
def subject():
    rng = torch.Generator().manual_seed(0)
    data = Subspace(8, 3).sample(14, rng)
    network = bt.networks.Kaiming().draw(8, 25, rng)
    y = network.predict(data.X)
    assert len(set(y.tolist())) == 2
    return network, Data(data.X, y, truth=data.truth)


@pytest.fixture(scope="module")
def app(subject):
    return application(ExplorerSubject(NetworkWalk(*subject, "net.npz", "network, data = given")), TOKEN, PORT)


def unpacked(packed):
    values = torch.frombuffer(bytearray(base64.b64decode(packed["float32"])), dtype=torch.float32)
    return values.view(packed["shape"]).double()


def test_the_list_shows_margins_and_gradient_steps(app, subject):
    network, data = subject
    found = ask(app, "examples").json
    assert close(found["margins"], network.margins(data.X, data.y))
    steps = bt.attacks.GradientStep().run(network, data)
    assert [each is not None for each in found["steps"]] == steps.success.tolist()
    assert close([each or 0.0 for each in found["steps"]], torch.where(steps.success, steps.norms, 0.0))
    assert found["codimension"] == 3
    assert ask(app, "about").json["walk"] == "net.npz"


def test_an_example_has_the_numbers_of_the_command_line(app, subject, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    network, data = subject
    bt.networks.save_network(network, "net.npz")
    bt.data.save_data(data, "data.npz")
    found = ask(app, "example", {"row": 0}).json
    arguments = ["certify", "net.npz", "--data", "data.npz", "--method", "exact", "--seconds", "4", "--nodes", "200"]
    assert main([*arguments, "--examples", "1", "--json", "out.json"]) == 0
    certified = json.loads((tmp_path / "out.json").read_text())
    assert close([found["lower"], found["upper"]], [certified["lower"][0], certified["upper"][0]])
    assert found["status"] == certified["status"][0] == "exact"


def test_flips_lie_on_and_off_the_subspace(app, subject):
    data = subject[1]
    found = ask(app, "example", {"row": 3}).json
    basis = data.truth.basis
    on, off = unpacked(found["flips"]["on"]), unpacked(found["flips"]["off"])
    assert (on - basis @ (basis.T @ on)).norm() < 1e-5
    assert (basis.T @ off).norm() < 1e-5
    assert found["lower"] <= found["upper"] <= min(found["lengths"]["on"], found["lengths"]["off"]) * (1 + 1e-9)
    assert found["becomes"] == -found["label"]
    assert found["moved"][0]["by"] == pytest.approx(float(max(unpacked(found["flips"]["flip"]), key=abs)), rel=1e-5)
    distances = (data.X - data.X[3]).norm(dim=1)[data.y != data.y[3]]
    assert found["rival_distance"] == pytest.approx(float(distances.min()))


@pytest.mark.parametrize("way", ["flip", "on", "off", "gradient", "rival", "example", "universal", "random"])
def test_rays_go_the_way_that_is_asked(app, subject, way):
    network, data = subject
    found = ask(app, "ray", {"row": 2, "way": way, "example": 5, "seed": 4}).json
    assert found["exact"]
    assert found["values"][0] == pytest.approx(float(network.margins(data.X[2:3], data.y[2:3])), abs=1e-12)
    shortest = ask(app, "example", {"row": 2}).json
    if way == "flip":
        assert found["first_flip"] == pytest.approx(shortest["upper"], rel=1e-6)
    if found["first_flip"] is not None:
        assert found["first_flip"] >= shortest["lower"] * (1 - 1e-9)
        k = next(k for k, size in enumerate(found["sizes"]) if size > found["first_flip"])
        assert found["values"][k - 1] >= -1e-9
        assert found["values"][k] <= 1e-9


def test_the_slice_has_the_example_in_its_middle(app, subject):
    network, data = subject
    found = ask(app, "slice", {"row": 1}).json
    margins = unpacked(found["margins"])
    middle = len(margins) // 2
    assert margins[middle, middle] == pytest.approx(float(network.margins(data.X[1:2], data.y[1:2])), rel=1e-5)
    assert found["flip"][1] == pytest.approx(0, abs=1e-9)
    place = (found["flip"][0] / found["half"] + 1) / 2 * (len(margins) - 1)
    assert margins[middle, round(place) - 1] > 0 > margins[middle, round(place) + 1]
    assert unpacked(found["others"])[1].norm() < 1e-6
    again = ask(app, "slice", {"row": 1, "across": "flip"})  # the same way twice
    assert again.status == 200


def test_one_direction_for_all(app, subject):
    network, data = subject
    found = ask(app, "universal", {"direction": "gradients"}).json
    attack = bt.attacks.Universal(direction=bt.attacks.DIRECTIONS["gradients"]).run(network, data)
    assert found["count"] == 14
    assert close(found["smallest"] or 0.0, attack.smallest if attack.smallest < torch.inf else 0.0)


def test_the_python_lines_compute_the_same(app, subject, capsys):
    lines = ask(app, "walk-python", {"row": 4}).json["lines"]
    found: dict = {"given": subject}
    exec(lines, found)
    assert close(ask(app, "example", {"row": 4}).json["lower"], found["bounds"].lower[0])


@pytest.mark.parametrize("body", [{"row": 14}, {"row": -1}, {"row": "0"}, {"row": 0, "way": "out"}])
def test_there_is_no_other_example_and_no_other_way(app, body):
    assert ask(app, "ray", body).status == 400


def test_classes_and_pictures():
    rng = torch.Generator().manual_seed(1)
    network = bt.networks.TorchLinearInit().draw_deep(12, (6, 5), rng, outputs=3)
    X = torch.randn(9, 12, generator=rng, dtype=torch.float64)
    data = Data(X.view(9, 1, 3, 4), network.predict(X))
    app = application(ExplorerSubject(NetworkWalk(network, data, "deep")), TOKEN, PORT)
    about = ask(app, "examples").json
    assert about["image"] == [1, 3, 4]
    assert about["directions"] == ["falling"]
    found = ask(app, "example", {"row": 0}).json
    assert 0 < found["lower"] <= found["upper"]
    assert found["becomes"] != found["label"]
    assert ask(app, "ray", {"row": 0, "way": "universal"}).json["exact"]
    assert ask(app, "universal").status == 200
