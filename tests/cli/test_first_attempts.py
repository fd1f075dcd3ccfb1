"""What an engineer tries first: a trained network in every form in which people keep one, and pictures as they are.

The networks have the layers that people use: a normalised input, a convolution, batch norms, max pooling, dropout,
identity, and probabilities at the end. Whatever file they come from, their radii are those of the module in Python.
"""

import importlib
import json
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import brittle as bt
from brittle.cli import main

MODULES = """
from torch import nn


class Classes(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Dropout())
        self.head = nn.Sequential(nn.Flatten(), nn.Identity(), nn.Linear(8, 3))

    def forward(self, x):
        return self.head(self.body((x - 0.5) / 0.3))


class OneLogit(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(16, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1))
"""
LAST = {"Classes": nn.Softmax(1), "OneLogit": nn.Sigmoid()}
FILES = {
    "a state dict": "{}.pt",
    "TorchScript": "{}.script.pt",
    "TorchScript of probabilities": "{}.likely.pt",
    "an exported program": "{}.pt2",
    "ONNX": "{}.onnx",
    "ONNX of probabilities": "{}.likely.onnx",
}


def to_onnx(module: nn.Module, X: torch.Tensor, path: str) -> None:
    torch.onnx.export(module, (X,), path, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "rows"}})


def write(name: str, module: nn.Module, X: torch.Tensor) -> None:
    """In every form of `FILES`."""
    likely = nn.Sequential(module, LAST[name]).eval()
    torch.save(module.state_dict(), f"{name}.pt")
    with warnings.catch_warnings(action="ignore"):
        torch.jit.script(module).save(f"{name}.script.pt")
        torch.jit.trace(likely, X).save(f"{name}.likely.pt")
        torch.export.save(torch.export.export(module, (X,)), f"{name}.pt2")
        to_onnx(module, X, f"{name}.onnx")
        to_onnx(likely, X, f"{name}.likely.onnx")


def made(module: nn.Module, X: torch.Tensor) -> tuple[nn.Module, torch.Tensor]:
    """With the statistics of X in its batch norm, and several classes among its labels."""
    last = list(module.parameters())[-1]
    with torch.no_grad():
        for _ in range(30):
            module(X)
        last -= module.eval()(X).mean(0)
        logits = module(X)
    labels = logits.argmax(1) if logits.shape[1] > 1 else (logits[:, 0] > 0).long()
    assert len(labels.unique()) > 1
    return module, labels


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The folder with all files, and for each network the median radius of its module, in Python."""
    folder, found = tmp_path_factory.mktemp("first"), {}
    (folder / "first_modules.py").write_text(MODULES)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        torch.manual_seed(0)
        X = torch.rand(12, 1, 4, 4)
        for name in LAST:
            module, y = made(getattr(importlib.import_module("first_modules"), name)(), X)
            np.savez(f"{name}.npz", X=X.numpy(), y=y.numpy(), X_test=X[:5].numpy(), y_test=y[:5].numpy())
            write(name, module, X)
            audit = bt.audit(module, X, y, examples=3, budget=2, remedies="none")
            found[name] = audit.vulnerability.free.median
    return folder, found


def run(capsys, *arguments: str) -> tuple[dict, str]:
    assert main([*arguments, "--examples", "3", "--budget", "2", "--remedy", "none", "--json", "-"]) == 0
    seen = capsys.readouterr()
    return json.loads(seen.out), seen.err


@pytest.mark.parametrize("form", FILES)
@pytest.mark.parametrize("name", LAST)
def test_every_form_has_the_radii_of_the_module(name, form, expected, monkeypatch, capsys):
    folder, medians = expected
    monkeypatch.chdir(folder)
    options = ["--architecture", f"first_modules:{name}"] if form == "a state dict" else []
    found, said = run(capsys, "audit", FILES[form].format(name), "--data", f"{name}.npz", *options)
    assert found["network"]["kind"].endswith("ReLU network")
    assert found["vulnerability"]["free"]["median"] == pytest.approx(medians[name], rel=1e-4)
    assert 0 < found["vulnerability"]["certified"]["median_lower"] <= medians[name] * (1 + 1e-4)
    assert ("which is left out: the logits before it decide" in said) == ("likely" in FILES[form])
    assert ("the labels 0 and 1 are read as -1 and +1" in said) == (name == "OneLogit")


def test_the_test_set_is_audited(expected, monkeypatch, capsys):
    monkeypatch.chdir(expected[0])
    found, _ = run(capsys, "audit", "OneLogit.onnx", "--data", "OneLogit.npz", "--test")
    assert (found["vulnerability"]["held_out"], found["vulnerability"]["available"]) == (True, 5)


def test_a_state_with_batch_norm_asks_for_its_module(expected, monkeypatch, capsys):
    monkeypatch.chdir(expected[0])
    assert main(["audit", "OneLogit.pt", "--data", "OneLogit.npz"]) == 2
    assert "--architecture MODULE:CLASS" in capsys.readouterr().err


MENDED = {
    "hard.pt": ("OneLogit.pt", "--architecture", "first_modules:OneLogit"),
    "hard.safetensors": ("OneLogit.pt", "--architecture", "first_modules:OneLogit"),
    "hard.onnx": ("OneLogit.onnx",),
    "hard.pt2": ("OneLogit.pt2",),
}


@pytest.mark.parametrize("out", MENDED)
def test_the_mended_network_comes_back_as_it_came(out, expected, monkeypatch, capsys):
    monkeypatch.chdir(expected[0])
    remedy = ("--remedy", "remove-off-subspace", "--budget", "2")
    assert main(["harden", *MENDED[out], "--data", "OneLogit.npz", *remedy, "--out", out]) == 0
    capsys.readouterr()
    if out.endswith((".pt", ".safetensors")):  # under its own names, in float32
        old, new = torch.load("OneLogit.pt"), torch.load(out) if out.endswith(".pt") else load_file(out)
        assert {name: value.dtype for name, value in new.items()} == {name: each.dtype for name, each in old.items()}
        importlib.import_module("first_modules").OneLogit().load_state_dict(new, strict=True)
    found, _ = run(capsys, "audit", out, *MENDED[out][1:], "--data", "OneLogit.npz")
    assert found["vulnerability"]["free"]["median"] > 1.02 * expected[1]["OneLogit"]
