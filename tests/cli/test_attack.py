"""brittle attack: what it writes, prints and refuses."""

import json

import numpy as np
import pytest
import torch

from brittle.cli import main
from brittle.data import Data, Subspace, load_data, save_data
from brittle.networks import TorchLinearInit, load_network, save_network


@pytest.fixture
def files(tmp_path, rng):
    data = Subspace(dim=20, codimension=12).sample(10, rng, test=4)
    network = TorchLinearInit().draw(20, 40, rng)
    y, y_test = (network.logits(X).sign() for X in (data.X, data.X_test))
    save_network(network, tmp_path / "net.npz")
    save_data(Data(data.X, y, data.X_test, y_test, data.truth), tmp_path / "data.npz")
    return tmp_path


def run(capsys, files, *options):
    arguments = ["attack", str(files / "net.npz"), "--data", str(files / "data.npz"), *options, "--json", "-"]
    assert main(arguments) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, files, *options):
    assert main(["attack", str(files / "net.npz"), "--data", str(files / "data.npz"), *options]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1
    return seen.err


@pytest.mark.parametrize("kind", ["minimum-norm", "universal", "gradient-step", "pgd", "ray"])
def test_the_file_holds_what_the_figures_say(kind, capsys, files):
    options = ["--direction", "gradients"] if kind == "universal" else []
    content = run(capsys, files, "--attack", kind, *options, "--out", str(files / "adv.npz"))
    network, data = load_network(files / "net.npz"), load_data(files / "data.npz")
    found = np.load(files / "adv.npz")
    delta = torch.from_numpy(found["delta"])
    flipped = network.margins(data.X + delta, data.y) < 0
    assert flipped.tolist() == content["success"]
    assert delta.norm(dim=1).tolist() == pytest.approx(content["norms"])
    assert content["flipped"] == pytest.approx(float(flipped.double().mean()))
    assert content["seconds"] > 0
    if kind == "universal":
        assert content["curve"]["flipped"][0] == 0
        assert len(content["curve"]["sizes"]) == len(content["curve"]["flipped"])


def test_sides_of_the_subspace(capsys, files):
    data = load_data(files / "data.npz")
    for side, other in (("on", data.truth.complement), ("off", data.truth.basis)):
        run(capsys, files, "--attack", "pgd", "--subspace", side, "--out", str(files / "adv.npz"))
        delta = torch.from_numpy(np.load(files / "adv.npz")["delta"])
        assert (delta @ other).abs().max() <= 1e-12


def test_a_mask_from_a_file(capsys, files):
    mask = np.arange(20) < 15
    np.savez(files / "mask.npz", mask=mask)
    options = ["--subspace", "on", "--basis", str(files / "mask.npz"), "--out", str(files / "adv.npz")]
    run(capsys, files, *options)
    assert (np.load(files / "adv.npz")["delta"][:, ~mask] == 0).all()
    np.savez(files / "none.npz", other=mask)
    assert "neither" in refused(capsys, files, "--subspace", "on", "--basis", str(files / "none.npz"))


def test_the_same_seed_and_the_held_out_examples(capsys, files):
    one, other = (run(capsys, files, "--seed", "4") for _ in range(2))
    assert one["norms"] == other["norms"]
    assert run(capsys, files, "--test")["examples"] == 4


def test_a_table_without_json(capsys, files):
    assert main(["attack", str(files / "net.npz"), "--data", str(files / "data.npz")]) == 0
    assert "mean norm" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--attack", "nothing"], "--attack is 'nothing'"),
        (["--attack", "universal", "--direction", "up"], "--direction is 'up'"),
        (["--direction", "examples"], "--direction does not belong to the attack minimum-norm, which takes --starts"),
        (["--attack", "pgd", "--starts", "3"], "--starts does not belong to the attack pgd"),
        (["--subspace", "beside"], "on, off or free"),
        (["--bounds", "1", "0"], "below the highest"),
        (["--attack", "universal", "--direction", "means"], "cluster means"),
        (["--out", "no/such/folder/adv.npz"], "does not exist"),
        (["--attack", "foolbox:NoSuch"], "NoSuch"),
    ],
)
def test_mistakes_end_in_one_line(options, words, capsys, files):
    if options[-1].startswith("foolbox"):
        pytest.importorskip("foolbox")
    assert words in refused(capsys, files, *options)
