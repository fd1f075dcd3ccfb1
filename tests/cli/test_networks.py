"""Every command that takes a network takes --architecture and --shape, and loads it in one place."""

import ast
import json
from pathlib import Path

import pytest
import torch
import typer
from torch import nn

from brittle import cli
from brittle.cli import COMMANDS, load, main
from brittle.cli.models import SHARED, NetworkArgument, with_networks
from brittle.data import Data, save_data

FILES = sorted(Path(cli.__file__).parent.glob("*.py"))
MODULE = """
from torch import nn


class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 2, 3), nn.{activation}(), nn.Flatten(), nn.Linear(4, 1))
"""


def names(path: Path) -> set[str]:
    """Every name that a file mentions."""
    tree = ast.walk(ast.parse(path.read_text()))
    return {node.id for node in tree if isinstance(node, ast.Name)}


def commands():
    """Every command with its options, those of groups too."""
    for name in COMMANDS:
        command = load(name)
        for each in getattr(command, "commands", {name: command}).values():
            yield name, {option.name for option in each.params}


def taking() -> set[str]:
    """The commands that take a network from a file."""
    return {path.stem for path in FILES if {"NetworkFile", "NetworkArgument"} & names(path)} & set(COMMANDS)


def sharing() -> set[str]:
    """The commands with the shared options."""
    return {name for name, options in commands() if set(SHARED) <= options}


def test_networks_are_loaded_in_one_place():
    assert {path.stem for path in FILES if "read_network" in names(path)} == {"models"}


def test_every_command_that_takes_a_network_has_the_shared_options():
    assert taking() == sharing() == {"attack", "audit", "certify", "check", "explore", "harden", "kkt", "train"}


def test_the_options_come_with_the_decorator():
    def command(network: NetworkArgument) -> None: ...

    def options(function) -> set[str]:
        app = typer.Typer(add_completion=False)
        app.command()(function)
        return {option.name for option in typer.main.get_command(app).params}

    assert options(command) == {"network"}
    assert options(with_networks(command)) == {"network", *SHARED}


@pytest.fixture
def files(tmp_path, rng, monkeypatch):
    """A convolution as a state dict, one logit, which is right on its data."""
    monkeypatch.chdir(tmp_path)
    for name, activation in ARCHITECTURES.items():
        (tmp_path / f"{name}.py").write_text(MODULE.format(activation=activation))
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4, 1)).double()
    torch.save(module.state_dict(), "conv.pt")
    X = torch.randn(6, 12, generator=rng, dtype=torch.float64)
    y = torch.where(module(X.view(6, 1, 3, 4))[:, 0] > 0, 1.0, -1.0).double()
    save_data(Data(X, y.detach()), "data.npz")
    return tmp_path


ARCHITECTURES = {"mine_one": "ReLU", "mine_smooth": "Tanh"}
SEEN_AS = {
    "mine_one": "conv.pt is a Deep network of 2 layers, 1 convolution, 1 linear layer; largest difference",
    "mine_smooth": "conv.pt is a black box, known by its outputs and gradients only: tanh is no ReLU",
}
QUICK = {
    "attack": ["attack", "conv.pt", "--data", "data.npz"],
    "certify": ["certify", "conv.pt", "--data", "data.npz", "--method", "lipschitz", "--constant", "spectral"],
    "check": ["check", "vardi2022/4.1", "--net", "conv.pt", "--data", "data.npz"],
    "harden": ["harden", "conv.pt", "--data", "data.npz", "--remedy", "weight-decay", "--out", "hard.npz"],
    "kkt": ["kkt", "conv.pt", "--data", "data.npz"],
    "train": ["train", "--data", "data.npz", "--network", "conv.pt", "--until", "steps=2"],
}
REFUSED = {  # after they have seen what kind of network it is
    "mine_one": {"check": "layer", "harden": "hard.npz: .npz holds two-layer networks only", "kkt": "output bias"},
    "mine_smooth": {
        "certify": "needs a network of affine layers and ReLUs",
        "check": "layer",
        "harden": "hard.npz: .npz holds two-layer networks only",
        "kkt": "conv.pt: a KKT point",
    },
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", QUICK)
def test_a_convolution_goes_wherever_a_network_goes(name, architecture, files, capsys):
    code = main([*QUICK[name], "--architecture", f"{architecture}:Net", "--shape", "1,3,4", "--json", "-"])
    seen, refused = capsys.readouterr(), REFUSED[architecture]
    assert seen.err.startswith(SEEN_AS[architecture])
    assert code == (2 if name in refused else 0)
    if name in refused:
        assert refused[name] in seen.err
        assert seen.err.count("\n") == 2
    else:
        assert json.loads(seen.out)


@pytest.mark.parametrize("name", QUICK)
def test_without_its_architecture_it_is_refused(name, files, capsys):
    assert main(QUICK[name]) == 2
    assert "conv.pt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([*QUICK["attack"], "--architecture", "Net"], "--architecture is 'Net'; MODULE:CLASS is needed"),
        ([*QUICK["attack"], "--architecture", "gone:Net"], "--architecture gone:Net cannot be imported"),
        ([*QUICK["attack"], "--architecture", "mine_one:nn"], "--architecture mine_one:nn cannot be built"),
        ([*QUICK["certify"], "--shape", "one"], "--shape is 'one'"),
        (["train", "--data", "data.npz", "--shape", "1,3,4"], "--shape was given without a network"),
        (["check", "vardi2022/4.1", "--architecture", "mine_one:Net"], "--architecture was given without a network"),
    ],
)
def test_mistakes_end_in_one_line(arguments, line, files, capsys):
    assert main(arguments) == 2
    seen = capsys.readouterr()
    assert line in seen.err
    assert seen.err.count("\n") == 1
