"""A command imports only what it uses."""

import json
import subprocess
import sys

import torch

from brittle.data import Data, save_data
from brittle.networks import TorchLinearInit, save_network

NEEDLESS = ("matplotlib", "jinja2", "sklearn", *(f"brittle.{room}" for room in ("auditing", "report", "theorems")))
NEEDLESS += ("brittle.training", "brittle.experiments.run", "brittle.experiments.vardi2022")
CODE = f"""
import json, sys
from brittle.cli import main
for options in [["--proof", "p.npz"], ["--proof", "p.npz", "--keep", "kept"]]:
    assert main(["certify", "net.npz", "--data", "data.npz", "--json", "a.json", *options]) == 0
print(json.dumps([name for name in {NEEDLESS} if name in sys.modules]))
"""


def test_certify_imports_no_pictures_theorems_and_figures(tmp_path, rng):
    network, X = TorchLinearInit().draw(4, 5, rng), torch.randn(3, 4, generator=rng, dtype=torch.float64)
    save_network(network, tmp_path / "net.npz")
    save_data(Data(X, network.predict(X)), tmp_path / "data.npz")
    ended = subprocess.run([sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout.splitlines()[-1]) == []
