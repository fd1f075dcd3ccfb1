"""brittle explore: what is wrong is one line, before any work; what is right is an address of this machine."""

import socket

import pytest
import torch

import brittle as bt
import brittle.cli.explore as command
import brittle.explorer as explorer
from brittle.cli import main
from brittle.data import Data


@pytest.fixture
def files(tmp_path):
    network = bt.networks.TorchLinearInit().draw(2, 5, torch.Generator().manual_seed(0))
    data = Data([[1.0, 2.0], [0.5, -1.0], [-1.0, 1.0]], [1.0, -1.0, 1.0])
    bt.networks.save_network(network, tmp_path / "net.npz")
    bt.data.save_data(data, tmp_path / "data.npz")
    return tmp_path


@pytest.fixture
def served(monkeypatch):
    """What would have been served; the server ends at once."""
    found = []

    def serve(subject, door, opened, state=""):
        found.append(subject)
        opened("http://127.0.0.1:1/token/")
        door.close()

    monkeypatch.setattr(explorer, "serve", serve)
    return found


def refused(capsys, *arguments):
    assert main(["explore", *map(str, arguments)]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    return lines[0]


def test_a_taken_port_is_one_line(capsys, files):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        line = refused(capsys, files / "net.npz", "--data", files / "data.npz", "--port", port)
    assert f"--port is {port}; it cannot be listened on" in line


def test_a_missing_extra_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert "pip install 'brittle[explore]'" in refused(capsys)


def test_what_does_not_fit_is_one_line(capsys, files):
    (files / "bad.npz").write_bytes(b"nothing")
    assert "bad.npz" in refused(capsys, files / "bad.npz", "--data", files / "data.npz")
    assert "--data is missing" in refused(capsys, files / "net.npz")
    assert "no such file" in refused(capsys, files / "none.npz", "--data", files / "data.npz")
    assert "without a network" in refused(capsys, "--test")
    assert "--port" in refused(capsys, "--port", "70000")


def test_without_a_browser_the_address_is_enough(capsys, files, served, monkeypatch):
    monkeypatch.setattr(command.webbrowser, "open", lambda address: False)
    assert main(["explore", str(files / "net.npz"), "--data", str(files / "data.npz")]) == 0
    said = capsys.readouterr().err
    assert "the explorer is at http://127.0.0.1:1/token/" in said
    assert "no browser was found" in said
    assert served[0].walk.title == "net.npz"
    assert "load_network" in served[0].walk.source


def test_data_alone_are_points_of_the_laboratory(files, served, monkeypatch):
    digits = Data([[0.0, 1.0], [1.0, 0.0]], [1.0, -1.0])
    network = bt.networks.TorchLinearInit().draw(2, 3, torch.Generator().manual_seed(0))
    monkeypatch.setattr(command, "make_default_subject", lambda rng: (network, digits))
    (files / "own.csv").write_text("a,b,label\n0.5,1,0\n1,-2,1\n2,2,1\n")
    assert main(["explore", "--data", str(files / "own.csv"), "--no-browser"]) == 0
    assert served[0].own.X.tolist() == [[0.5, 1.0], [1.0, -2.0], [2.0, 2.0]]
    assert served[0].own.y.tolist() == [-1.0, 1.0, 1.0]
