"""brittle kkt: what it measures, solves, writes and refuses."""

import json

import numpy as np
import pytest
import torch

from brittle.cli import main
from brittle.data import load_data, save_data
from brittle.kkt import MarginProof, check_margin
from brittle.networks import TwoLayer, load_network, save_network
from tests.kkt.reference import chains, closed_form, fitted, gaussian, smaller_norm

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


LARGEST = {"normalised_margin", "upper", "proved_gap", "neurons", "seconds", "status", "leaves"}


def test_the_largest_margin_is_searched_proved_and_written(files, capsys):
    data, solved = "data.npz", run(capsys, "net.npz", "--data", "data.npz", "--solve")
    found = run(capsys, "net.npz", "--data", data, "--largest", "--out", "best.npz", "--proof", "proof.npz")
    assert found.keys() >= LARGEST
    assert found["status"] == "reached"
    assert 0 <= found["proved_gap"] <= 1e-6
    assert solved["normalised_margin"] <= found["upper"]
    best = load_network("best.npz")
    assert best.width == found["neurons"]
    again = run(capsys, "best.npz", "--data", data)
    assert again["normalised_margin"] == pytest.approx(found["normalised_margin"], rel=1e-9)
    assert 0.5 < again["share_of_largest_margin"] <= 1
    assert again["sentence"].startswith("This network has at least ")
    proof = MarginProof.load("proof.npz", load_data(data).y.numpy())
    assert check_margin(proof, load_data(data)).proved_gap <= 1e-6


def test_the_largest_margin_needs_no_network_and_goes_on_from_a_proof(files, capsys):
    first = run(capsys, "--data", "data.npz", "--largest", "--gap", "0.5", "--proof", "proof.npz")
    assert first["proved_gap"] <= 0.5
    then = run(capsys, "--data", "data.npz", "--largest", "--resume", "proof.npz", "--gap", "1e-6")
    assert then["proved_gap"] <= 1e-6


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
        (["--data", "data.npz"], "only --largest needs none"),
        (["--data", "data.npz", "--largest", "--solve"], "--solve and --largest are both given"),
        (["net.npz", "--data", "data.npz", "--proof", "p.npz"], "belong to --largest"),
        (["--data", "data.npz", "--largest", "--gap", "0"], "gap is 0"),
        (["--data", "data.npz", "--largest", "--resume", "net.npz"], "holds no proof of a margin"),
        (["--data", "data.npz", "--largest", "--resume", "gone.npz"], "gone.npz: no such file"),
        (["wrong.npz", "--data", "data.npz", "--largest"], "misclassifies"),
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


def written(name, X, y):
    """A data file as somebody may have it, unchecked."""
    np.savez(name, X=np.array(X, dtype=np.float64), y=np.array(y, dtype=np.float64))
    return ["kkt", "--data", name, "--largest"]


@pytest.mark.parametrize(
    ("X", "y", "line"),
    [
        ([[1, 2], [0, 1], [1, 2]], [1, -1, -1], "examples 0 and 2 are equal and carry the labels 1 and -1"),
        ([[1, float("nan")], [0, 1]], [1, -1], "holds NaN or infinity in 1 of 2 rows"),
        ([[1, 2], [0, 1], [2, 2]], [0, 1, 2], "class numbers"),
    ],
)
def test_data_without_a_largest_margin_end_in_one_line(files, capsys, X, y, line):
    assert main(written("bad.npz", X, y)) == 2
    seen = capsys.readouterr()
    assert (seen.out, seen.err.count("\n")) == ("", 1)
    assert line in seen.err


def test_one_class_and_one_example_have_a_largest_margin(files, capsys):
    """One neuron along the sum of what must be reached: γ* = ‖(x, 1)‖/2 of a single example."""
    for X, y in (([[3.0, 4.0]], [1]), ([[3.0, 4.0], [3.0, 4.0]], [-1, -1])):
        assert main([*written("few.npz", X, y), "--json", "-"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["normalised_margin"] == pytest.approx(26**0.5 / 2, rel=1e-6)
        assert found["proved_gap"] <= 1e-6


def test_an_output_bias_has_no_largest_margin(files, capsys):
    network = load_network("net.npz")
    save_network(TwoLayer(network.W, network.b, network.v, c=torch.tensor(0.5, dtype=torch.float64)), "biased.npz")
    assert main(["kkt", "biased.npz", "--data", "data.npz", "--largest"]) == 2
    assert "output bias 0.5" in capsys.readouterr().err


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
