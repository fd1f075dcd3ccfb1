"""brittle certify, from files to JSON, exit codes and the picture."""

import json

import pytest
import torch

from brittle.certificates import Exact
from brittle.cli import main
from brittle.data import Data, save_data
from brittle.networks import TorchLinearInit, TwoLayer, save_network
from brittle.report.plot.movement import sandwich


@pytest.fixture
def files(tmp_path, rng):
    network = TorchLinearInit().draw(4, 9, rng)
    X = torch.randn(5, 4, generator=rng, dtype=torch.float64)
    y = torch.where(network.logits(X) > 0, 1.0, -1.0).double()
    y[0] = -y[0]
    save_network(network, tmp_path / "net.npz")
    save_data(Data(X, y), tmp_path / "data.npz")
    return tmp_path, network, Data(X, y)


def run(files, capsys, *options):
    folder, *_ = files
    code = main(["certify", str(folder / "net.npz"), "--data", str(folder / "data.npz"), *options])
    return code, capsys.readouterr()


@pytest.mark.parametrize("method", ["lipschitz", "relaxation", "dual", "exact"])
def test_every_method_writes_its_enclosure(files, capsys, method):
    code, output = run(files, capsys, "--method", method, "--json", "-")
    content = json.loads(output.out)
    assert code == 0
    assert content["method"] == method
    assert all(low <= high for low, high in zip(content["lower"], content["upper"], strict=True))
    assert len(content["exact"]) == len(content["seconds"]) == 5
    assert content["counts"]["error"] == 1


def test_the_command_gives_what_the_library_gives(files, capsys):
    _, output = run(files, capsys, "--method", "exact", "--gap", "1e-5", "--examples", "3", "--json", "-")
    _, network, data = files
    expected = Exact(gap=1e-5).bound(network, Data(data.X[:3], data.y[:3]), rng=torch.Generator().manual_seed(0))
    assert json.loads(output.out)["lower"] == expected.lower.tolist()


def test_the_reason_why_nothing_is_proved_is_printed(files, capsys):
    folder, *_ = files
    W, v = torch.tensor([[0.1, 0.2], [0.3, 0.0]], dtype=torch.float64), torch.tensor([1.0, -1.0], dtype=torch.float64)
    save_network(TwoLayer(W, torch.zeros_like(v), v), folder / "net.npz")
    save_data(Data(torch.ones(3, 2), torch.ones(3)), folder / "data.npz")
    code, output = run(files, capsys, "--json", "-")
    assert code == 0
    assert "nothing is proved of 3 examples: rounding or underflow exceeds the margin" in output.err
    assert json.loads(output.out)["lower"] == [0.0] * 3


def test_a_table_without_json_and_a_picture(files, capsys):
    folder, *_ = files
    code, output = run(files, capsys, "--method", "dual", "--refined", "--plot", str(folder / "sandwich.svg"))
    assert code == 0
    assert "mean ratio" in output.out
    assert (folder / "sandwich.svg").read_text().startswith("<?xml")


def test_a_box_is_used_by_the_bounds_if_they_are_asked_to(files, capsys):
    lower = []
    for options in ([], ["--boxed"]):
        code, output = run(files, capsys, "--bounds", "-9", "9", *options, "--json", "-")
        assert code == 0
        lower.append(json.loads(output.out)["lower"])
    assert lower[1] != lower[0]
    assert [value > 0 for value in lower[1]] == [value > 0 for value in lower[0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "magic"], "--method is 'magic'"),
        (["--method", "dual", "--gap", "1e-3"], "--gap does not belong to the method dual, which takes --refined"),
        (["--method", "exact", "--gap", "0"], "gap is 0"),
        (["--boxed"], "--boxed is given without a box; pass --bounds LOW HIGH"),
        (["--plot", "picture.jpg"], "--plot is picture.jpg"),
        (["--examples", "0"], "--examples is 0"),
        (["--cap", "-2"], "cap is -2"),
        (["--test"], "no test examples"),
    ],
)
def test_bad_input_ends_in_one_line(files, capsys, options, message):
    code, output = run(files, capsys, *options)
    assert code == 2
    assert message in output.err
    assert len(output.err.strip().splitlines()) == 1


def test_the_picture_shows_every_example_once(files):
    _, network, data = files
    found = Exact().bound(network, data)
    (axes,) = sandwich(found).axes
    marks = {line.get_label(): len(line.get_xdata()) for line in axes.lines}
    assert marks["attack (upper bound)"] == 5
    assert marks["exact radius"] + marks["certificate (exact)"] == 5
