"""brittle kkt: what it measures, solves, writes and refuses."""

import json

import pytest
import torch

from brittle.cli import main
from brittle.networks import TwoLayer, load_network, save_network
from brittle.settings import save_data
from tests.margin.reference import chains, closed_form, fitted, gaussian, smaller_norm

KEYS = {
    "stationarity",
    "complementarity",
    "normalised_margin",
    "share_on_margin",
    "neurons",
    "seconds",
    "multipliers",
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = gaussian(8, 5, 0)
    save_data(data, "data.npz")
    save_network(fitted(data, 40, 0), "net.npz")
    return tmp_path


def run(capsys, *arguments):
    assert main(["kkt", *arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_network_is_measured(files, capsys):
    content = run(capsys, "net.npz", "--data", "data.npz")
    assert content.keys() >= KEYS
    assert 0.1 < content["stationarity_any_multipliers"] <= content["stationarity"] <= 1
    assert content["neurons"] == 40


def test_a_kkt_point_is_solved_written_and_measured_again(files, capsys):
    solved = run(capsys, "net.npz", "--data", "data.npz", "--solve", "--out", "kkt.npz")
    assert solved.keys() >= KEYS
    assert solved["status"] == "solved"
    again = run(capsys, "kkt.npz", "--data", "data.npz")
    assert max(again["stationarity"], again["complementarity"]) <= 1e-9
    assert again["normalised_margin"] == pytest.approx(solved["normalised_margin"], rel=1e-9)
    assert again["neurons"] == solved["neurons"] == load_network("kkt.npz").width


def test_networks_without_biases(files, capsys):
    network, data = smaller_norm(6)
    save_network(network, "small.npz")
    save_data(data, "orthogonal.npz")
    assert run(capsys, "small.npz", "--data", "orthogonal.npz", "--without-biases")["stationarity"] < 1e-10
    assert run(capsys, "small.npz", "--data", "orthogonal.npz")["stationarity"] > 0.1


def test_an_accuracy_that_is_missed_ends_with_1(files, capsys):
    assert main(["kkt", "net.npz", "--data", "data.npz", "--solve", "--tolerance", "1e-30"]) == 1
    seen = capsys.readouterr()
    assert "inaccurate" in seen.out
    assert "read the residual" in seen.err


def test_the_table_is_short(files, capsys):
    assert main(["kkt", "net.npz", "--data", "data.npz"]) == 0
    shown = capsys.readouterr().out
    assert "stationarity" in shown
    assert "kinks" not in shown


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["net.npz", "--data", "data.npz", "--out", "kkt.npz"], "--out is given without --solve"),
        (["net.npz", "--data", "data.npz", "--solve", "--out", "gone/kkt.npz"], "the folder gone does not exist"),
        (["gone.npz", "--data", "data.npz"], "gone.npz: no such file"),
        (["wrong.npz", "--data", "data.npz"], "misclassifies"),
        (["wrong.npz", "--data", "data.npz", "--solve"], "misclassifies"),
        (["closed.npz", "--data", "data.npz"], "takes 6 features"),
        (["net.npz", "--data", "data.npz", "--without-biases"], "b must be zero"),
        (["net.npz", "--data", "data.npz", "--solve", "--tolerance", "0"], "tolerance is 0"),
    ],
)
def test_mistakes_end_in_one_line(files, capsys, arguments, line):
    network = load_network("net.npz")
    save_network(TwoLayer(network.W, network.b, -torch.ones_like(network.v)), "wrong.npz")
    save_network(closed_form(6, 6)[0], "closed.npz")
    assert main(["kkt", *arguments]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1
    assert line in seen.err


def test_deep_networks_and_several_classes_are_measured(files, capsys):
    network, data = chains(6, 3)
    save_network(network, "deep.pt")
    save_data(data, "orthogonal.npz")
    content = run(capsys, "deep.pt", "--data", "orthogonal.npz", "--without-biases")
    assert content.keys() >= KEYS
    assert max(content["stationarity"], content["complementarity"], content["balance"]) < 1e-9
    assert content["neurons"] == 4
    assert main(["kkt", "deep.pt", "--data", "orthogonal.npz", "--solve"]) == 2
    assert "needs a two-layer network with one output; it has 3 layers" in capsys.readouterr().err
