"""From radii to proofs: what is certified is proved whole, and the commands write what the checker reads."""

import json

import numpy as np
import pytest
import torch

from benchmarks.forged import run
from brittle.certificates import Exact
from brittle.cli import main
from brittle.data import save_data
from brittle.networks import save_network
from brittle.proving import prove, write_beside
from brittle.truth import chosen
from proofcheck.__main__ import main as proofcheck

GAP = {"random-5x20": 1e-6, "deep-6": 1e-3}


@pytest.mark.parametrize(
    ("name", "row"), [("random-5x20", 15), ("random-5x20", 24), ("random-5x20", 26), ("deep-6", 5)]
)
def test_leaves_that_are_polyhedra_are_proved(tmp_path, name, row):
    """Where only branches without free neurons are left: with dead neurons, empty ones, and intervals of one point."""
    (recipe,) = chosen([name])
    network, data = recipe.build()
    one = data.take(torch.tensor([row]))
    found = Exact(gap=GAP[name]).bound(network, one)
    proof = prove(network, one, found.lower, found.flips)
    assert proof.losses.tolist() == [0.0]
    path = tmp_path / "proof.npz"
    proof.save(path)
    passed, output = run(path, *write_beside(proof, path, None, None))
    assert passed
    assert f"no flip within {float(found.lower[0])!r}" in output


SHALLOW, DEEP = ("random-5x20", "network.npz"), ("deep-6", "network.pt")


@pytest.mark.parametrize(("command", "name", "file"), [("certify", *SHALLOW), ("certify", *DEEP), ("audit", *SHALLOW)])
def test_the_commands_write_what_the_checker_proves(tmp_path, monkeypatch, capsys, command, name, file):
    """With the network beside the proof where the checker cannot read its file."""
    monkeypatch.chdir(tmp_path)
    (recipe,) = chosen([name])
    network, data = recipe.build()
    save_network(network, tmp_path / file)
    save_data(data.take(torch.tensor([0, 1])), tmp_path / "data.npz")
    options = ["--method", "dual"] if command == "certify" else ["--budget", "5"]
    assert main([command, file, "--data", "data.npz", "--proof", "proof.npz", "--json", "found.json", *options]) == 0
    readable = file if file.endswith("npz") else "proof.network.npz"
    assert {path.name for path in tmp_path.glob("proof.*")} == {"proof.npz", *([] if readable == file else [readable])}
    capsys.readouterr()
    assert proofcheck(["proof.npz", "--network", readable, "--data", "data.npz"]) == 0
    proved = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert len(proved) == 2
    if command == "certify":
        np.testing.assert_allclose(proved, json.loads((tmp_path / "found.json").read_text())["lower"], rtol=1e-8)
