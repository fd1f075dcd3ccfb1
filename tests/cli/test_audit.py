"""brittle audit and harden: exit codes, files, and one clear line for every mistake."""

import json

import pytest
import torch
from torch import nn

from brittle.cli import main
from brittle.data import Data, Sphere, Subspace, load_data, save_data
from brittle.networks import LazyInit, TorchLinearInit, load_network, save_network

QUICK = ["--examples", "4", "--budget", "8", "--remedy", "none"]


@pytest.fixture
def files(tmp_path, rng, monkeypatch):
    """A network that is right on its data, whose directions off the data are untrained."""
    monkeypatch.chdir(tmp_path)
    data = Subspace(dim=12, codimension=6).sample(8, rng)
    network = TorchLinearInit().draw(12, 20, rng)
    save_network(network, "net.npz")
    save_data(Data(data.X, network.predict(data.X)), "data.npz")
    return tmp_path


def test_an_audit_prints_writes_and_reports(files, capsys):
    outputs = ["--report", "a.html", "--pictures", "p", "--json", "a.json"]
    assert main(["audit", "net.npz", "--data", "data.npz", *outputs, *QUICK]) == 0
    shown = capsys.readouterr().out
    assert "shortest flip anywhere" in shown
    content = json.loads((files / "a.json").read_text())
    assert content["vulnerability"]["certified"]["median_lower"] <= content["vulnerability"]["free"]["median"] * 1.001
    assert (files / "a.html").read_text().startswith("<!doctype html>")
    assert {path.name for path in (files / "p").iterdir()} == {"radii.png", "curves.png", "slice.png"}


def test_a_radius_can_be_demanded(files, capsys):
    assert main(["audit", "net.npz", "--data", "data.npz", "--fail-below", "1e-9", *QUICK]) == 0
    assert main(["audit", "net.npz", "--data", "data.npz", "--fail-below", "1e9", *QUICK]) == 1
    assert main(["audit", "net.npz", "--data", "data.npz", "--fail-below", "1e9", "--judge", "attacked", *QUICK]) == 1
    assert "below 1e+09" in capsys.readouterr().err


def test_two_networks_are_compared(files, rng, capsys):
    save_network(TorchLinearInit().draw(12, 20, rng), "second.npz")
    outputs = ["--report", "both.html", "--json", "both.json", "--summary", "both.md", "--fail-below", "1e-9"]
    main(["audit", "net.npz", "second.npz", "--data", "data.npz", *outputs, *QUICK])
    seen = capsys.readouterr()
    assert "median distance to a flip" in seen.out
    both = json.loads((files / "both.json").read_text())
    assert both["change"]["examples"] == 4
    assert both["first"]["vulnerability"]["examples"] == both["second"]["vulnerability"]["examples"]
    assert both["change"]["sentence"] in " ".join(seen.out.split())
    assert both["command"].startswith("brittle audit net.npz second.npz --data data.npz")
    page = (files / "both.html").read_text()
    assert "Audit of second.npz" in page
    assert '"other":{"title":"net.npz"' in page
    assert "| | before | now |" in (files / "both.md").read_text()


def test_a_run_is_compared_with_the_one_before_it(files, capsys):
    command = ["audit", "net.npz", "--data", "data.npz", *QUICK]
    assert main([*command, "--json", "last.json"]) == 0
    assert json.loads((files / "last.json").read_text())["seed"] == 0
    assert (
        main([*command, "--since", "last.json", "--summary", "s.md", "--fail-below", "1e9", "--judge", "attacked"]) == 1
    )
    assert "0 are farther" in " ".join(capsys.readouterr().out.split())
    assert (files / "s.md").read_text().startswith("### ❌ Audit of net.npz: the attacked median radius")
    (files / "no.json").write_text("[1]")
    assert main([*command, "--since", "no.json"]) == 2
    assert "--since is no.json; it must be what brittle audit --json wrote" in capsys.readouterr().err


def test_held_out_examples_can_be_audited_and_the_plan_be_asked_for(files, rng, capsys):
    network, data = load_network("net.npz"), Subspace(dim=12, codimension=6).sample(8, rng, test=5)
    save_data(Data(data.X, network.predict(data.X), data.X_test, network.predict(data.X_test)), "both.npz")
    command = ["audit", "net.npz", "--data", "both.npz", "--test", "--json", "-", *QUICK]
    assert main([*command, "--plan"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["plan"] == plan
    assert (plan["examples"], plan["budget"]) == (4, 8)
    assert (found["vulnerability"]["held_out"], found["vulnerability"]["available"]) == (True, 5)
    assert main(["audit", "net.npz", "--data", "data.npz", "--test", *QUICK]) == 2
    assert "no test examples" in capsys.readouterr().err


def test_hardening_writes_another_network(files, capsys):
    command = ["harden", "net.npz", "--data", "data.npz", "--remedy", "remove-off-subspace", "--out", "hard.npz"]
    assert main([*command, "--budget", "20", "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["predictions_changed"] == 0
    before, after = load_network("net.npz"), load_network("hard.npz")
    assert float(after.W.norm()) < float(before.W.norm())


def test_a_point_of_the_curve_is_chosen_by_its_kappa(files, capsys):
    command = ["harden", "net.npz", "--data", "data.npz", "--remedy", "maximum-radius", "--out", "hard.npz"]
    options = ["--steps", "24", "--lost-accuracy", "1", "--budget", "2"]
    assert main([*command, *options, "--json", "-"]) == 0
    curve = json.loads(capsys.readouterr().out)["curve"]
    assert main([*command, *options, "--kappa", f"{curve['points'][3]['kappa']:.3f}"]) == 0
    shown = capsys.readouterr().out
    assert "--kappa chooses" in shown
    last = next(line.split() for line in shown.splitlines() if line.startswith("after"))
    assert float(last[1]) == pytest.approx(curve["points"][3]["kappa"], abs=1e-3)


BAD = {
    "one class": (lambda X, y: Data(X, torch.ones_like(y)), "have the label 1"),
    "two labels": (lambda X, y: Data(torch.cat([X, X[:1]]), torch.cat([y, -y[:1]])), "same example with two labels"),
    "wrong": (lambda X, y: Data(X, -y), "the network misclassifies all"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_hardened_is_one_line(files, capsys, case):
    network = load_network("net.npz")
    X = load_data("data.npz").X
    change, line = BAD[case]
    save_data(change(X, network.predict(X)), "bad.npz")
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    command = ["harden", "net.npz", "--data", "bad.npz", "--out", "hard.npz", "--budget", "1"]
    assert main([*command, "--remedy", "maximum-radius", "--steps", "10"]) == 2
    error = capsys.readouterr().err
    assert line in error
    assert len(error.strip().splitlines()) == 1
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


def test_other_layers_do_not_fit_a_state(files, capsys):
    network = load_network("net.npz")
    names = {"0.weight": network.W, "0.bias": network.b, "2.weight": network.v[None], "2.bias": network.c[None]}
    torch.save(names, "state.pt")
    command = ["harden", "state.pt", "--data", "data.npz", "--remedy", "cluster-labels", "--out", "hard.pt"]
    command += ["--activation", "relu"]
    assert main(command) == 2
    assert "cluster-labels makes other layers than state.pt has: choose --out FILE.onnx" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["audit", "net.npz"], "--data is missing"),
        (["audit", "--data", "data.npz"], "--data was given without a model"),
        (["audit", "gone.npz", "--data", "data.npz"], "gone.npz: no such file"),
        (["audit", "net.npz", "--data", "data.npz", "--judge", "hope"], "--judge is 'hope'"),
        (["audit", "net.npz", "--data", "data.npz", "--budget", "-1"], "budget is -1.0"),
        (["audit", "net.npz", "--data", "data.npz", "--remedy", "prayer"], "remedy is 'prayer'"),
        (["audit", "net.npz", "--data", "data.npz", "--report", "no/a.html"], "the folder no does not exist"),
        (["harden", "net.npz", "--data", "data.npz", "--remedy", "prayer", "--out", "o.npz"], "--remedy is 'prayer'"),
        (["audit", "net.npz", "--data", "data.npz", "--since", "gone.json"], "--since is gone.json"),
        (["audit", "net.npz", "net.npz", "--data", "data.npz", "--since", "data.npz"], "--since was given with two"),
        (["audit", "net.npz", "gone.npz", "--data", "data.npz"], "gone.npz: no such file"),
        (["audit", "net.npz", "--data", "wide.npz"], "12 features"),
        (["audit", "net.npz", "--data", "classes.npz"], "needs the labels -1 and 1"),
    ],
)
def test_mistakes_get_one_line(files, rng, capsys, arguments, line):
    save_data(Sphere(dim=5).sample(4, rng), "wide.npz")
    save_data(Data(torch.randn(4, 12, generator=rng), torch.tensor([0, 1, 2, 0])), "classes.npz")
    before = sorted(files.iterdir())
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert line in error
    assert len(error.strip().splitlines()) == 1
    assert sorted(files.iterdir()) == before


def test_the_start_tells_the_regime(files, rng):
    start = LazyInit().draw(12, 100, rng)
    moved = start.trained(start.W + 0.01, start.b, start.v)
    data = Sphere(dim=12, radius=1.0).sample(6, rng)
    save_network(type(moved)(moved.W, moved.b, moved.v), "moved.npz")
    save_network(start, "start.npz")
    save_data(Data(data.X, moved.predict(data.X)), "own.npz")
    assert main(["audit", "moved.npz", "--data", "own.npz", "--init", "start.npz", "--json", "b.json", *QUICK]) == 0
    assert json.loads((files / "b.json").read_text())["regime"]["name"] == "lazy"


def test_a_state_dict_may_name_its_architecture(files, rng, capsys, monkeypatch):
    (files / "mine.py").write_text(
        "from torch import nn\n\n\n"
        "class Net(nn.Sequential):\n"
        "    def __init__(self):\n"
        "        super().__init__(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4, 2))\n"
    )
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4, 2))
    torch.save(module.state_dict(), "conv.pt")
    X = torch.randn(6, 12, generator=rng)
    save_data(Data(X, module(X.view(6, 1, 3, 4)).argmax(1)), "conv.npz")
    command = ["audit", "conv.pt", "--data", "conv.npz", "--architecture", "mine:Net", "--shape", "1,3,4", *QUICK]
    assert main([*command, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["network"]["kind"] == "2-layer ReLU network"
    assert main(["audit", "conv.pt", "--data", "conv.npz", "--architecture", "mine:Gone", *QUICK]) == 2
    assert main(["audit", "conv.pt", "--data", "conv.npz", "--architecture", "mine:Net", "--shape", "a", *QUICK]) == 2
    assert "--shape is 'a'" in capsys.readouterr().err
