"""brittle train: what it writes, prints and refuses, and that Ctrl-C loses nothing."""

import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from brittle.cli import main
from brittle.common.errors import InputError
from brittle.data import load_data
from brittle.networks import TwoLayer, load_network

SMALL = ["train", "--setting", "sphere", "--dim", "10", "--examples", "6", "--width", "20"]


def run(capsys, *arguments: str) -> dict:
    assert main([*arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_files_hold_what_the_result_says(capsys, tmp_path):
    net, data = tmp_path / "net.npz", tmp_path / "data.npz"
    seen = run(capsys, *SMALL, "--until", "loss=1e-5", "--seed", "3", "--out", str(net), "--data-out", str(data))
    keys = {"gradient_evaluations", "seconds", "log_loss", "normalised_margin", "share_on_margin", "stopped_by"}
    assert keys <= seen.keys()
    assert seen["stopped_by"] == "loss=1e-05"
    network, examples = load_network(net), load_data(data)
    assert isinstance(network, TwoLayer)
    assert network.start is not None
    q = network.margins(examples.X, examples.y)
    assert seen["normalised_margin"] == pytest.approx(float(q.min() / network.squared_norm))
    assert set(np.load(net).files) >= {"W", "b", "v", "W0", "b0", "v0"}
    assert not net.with_suffix(".checkpoint.npz").exists()
    # The same data from the file, and the network that was written as the start: nothing is left to do.
    again = run(capsys, "train", "--data", str(data), "--network", str(net), "--until", "loss=1e-5")
    assert again["steps"] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        "--regime recipe --until steps=5",
        "--regime descent --until margin=0.01 --until steps=5000 --rate 0.1 --decay 0.001 --decay-on all",
        "--regime descent --until steps=5 --batch 3 --loss exponential --reduction sum --layers first",
        "--regime lazy --init lazy --ball 1 --batch 3",
        "--regime adversarial --init lazy --until steps=2 --budget 0.1 --ball 10 --inner-steps 2 --project step",
        "--regime flow --until log_loss=-1 --pair heun --tolerance 1e-2 --no-span --precision float32",
        "--regime flow --until steps=3 --in-span --train-biases",
        "--regime descent --until steps=5 --decay 0.01 --no-squared",
        "--regime lazy --init lazy --init-scale-biases --ball 0.1 --batch 3 --no-inside --check epoch",
        "--regime adversarial --init lazy --until steps=2 --inner-steps 2 --inner-rate 0.1 --no-normalised",
    ],
)
def test_every_regime_runs(capsys, arguments):
    assert run(capsys, *SMALL, *arguments.split())["status"] == "reached"


def test_deep_networks(capsys, tmp_path):
    out = tmp_path / "net.pt"
    arguments = ["train", "--setting", "sphere", "--dim", "6", "--examples", "5", "--width", "8,7", "--out", str(out)]
    run(capsys, *arguments, "--regime", "descent", "--until", "steps=4")
    assert load_network(out).shape == (6, 8, 7, 1)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ("--until loss=zero", "until is 'loss=zero'"),
        ("--until accuracy=2", "accuracy is 2.0"),
        ("--regime descend", "--regime is 'descend'"),
        ("--regime recipe --tolerance 1e-3", "--tolerance does not belong to the regime recipe"),
        ("--regime descent --ball 3", "--ball does not belong to the regime descent"),
        ("--tolerance -1", "tolerance is -1.0"),
        ("--pair euler", "pair is 'euler'"),
        ("--loss hinge", "--loss is 'hinge'"),
        ("--width many", "--width is 'many'"),
        ("--init zeros", "--init is 'zeros'"),
        ("--init lazy --init-beta 2", "--init-beta does not belong to the initialisation lazy"),
        ("--regime recipe --train-biases", "--train-biases does not belong to the regime recipe, which takes --until"),
        ("--resume", "--resume needs --out or --checkpoint"),
        ("--out absent/net.npz", "does not exist"),
        ("--data nothing.npz", "nothing.npz: no such file"),
        ("--data empty.npz", "either --setting or --data"),
    ],
)
def test_mistakes_are_said_in_one_line(capsys, arguments, part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty.npz").touch()
    assert main([*SMALL, *arguments.split()]) == 2
    error = capsys.readouterr().err
    assert part in error
    assert error.count("\n") == 1


def test_labels_that_are_not_signs(capsys, tmp_path):
    np.savez(tmp_path / "data.npz", X=np.eye(3), y=np.array([0.5, 1, -1]))
    assert main(["train", "--data", str(tmp_path / "data.npz")]) == 2
    assert "0.5" in capsys.readouterr().err
    np.savez(tmp_path / "data.npz", X=np.zeros((0, 3)), y=np.zeros(0))
    assert main(["train", "--data", str(tmp_path / "data.npz")]) == 2
    assert "at least one example" in capsys.readouterr().err


def test_a_stop_out_of_reach_keeps_the_run(capsys, tmp_path):
    out = tmp_path / "net.npz"
    arguments = [*SMALL, "--until", "loss=1e-4", "--out", str(out)]
    assert main([*arguments, "--until", "steps=3"]) == 2
    assert "ended by steps=3 before loss=0.0001 was reached" in capsys.readouterr().err
    assert main([*arguments, "--resume"]) == 0
    resumed = load_network(out)
    assert main([*arguments]) == 0
    assert torch.equal(load_network(out).W, resumed.W)


def unfinished(folder):
    """The arguments of a run that has left a checkpoint, and that checkpoint."""
    arguments = [*SMALL, "--until", "loss=1e-4", "--out", str(folder / "net.npz")]
    assert main([*arguments, "--until", "steps=3"]) == 2
    (folder / "net.npz").unlink()
    return arguments, (folder / "net.checkpoint.npz").read_bytes()


def test_the_checkpoint_outlives_a_network_that_cannot_be_saved(capsys, tmp_path, monkeypatch):
    for wait in ("LEAST", "MOST"):  # on a slow machine the resumed run would write a checkpoint of its own on its way
        monkeypatch.setattr(f"brittle.training.base.{wait}_BETWEEN_CHECKPOINTS", math.inf)
    arguments, before = unfinished(tmp_path)

    def full(*_):
        raise InputError("net.npz: cannot be written (No space left on device)")

    for writer in ("networks.save_network", "cli.console.write_json"):
        with monkeypatch.context() as disk:
            disk.setattr(f"brittle.{writer}", full)
            assert main([*arguments, "--resume", "--json", str(tmp_path / "a.json")]) == 2
        assert (tmp_path / "net.checkpoint.npz").read_bytes() == before
    assert main([*arguments, "--resume"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["net.npz"]


def test_no_room_for_the_network_or_a_new_checkpoint(capsys, tmp_path):
    """A limit on the size of files is a full disk that every user may have."""
    resource = pytest.importorskip("resource")
    arguments, before = unfinished(tmp_path)
    for end in ([], ["--until", "steps=5"]):
        ended = subprocess.run(
            [sys.executable, "-m", "brittle", *arguments, *end, "--resume"],
            capture_output=True,
            timeout=300,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        )
        assert ended.returncode == 2
        assert ended.stderr.decode().count("\n") == 1
        assert "cannot be written (File too large)" in ended.stderr.decode()
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"net.checkpoint.npz": before}


def test_a_small_run_does_not_depend_on_the_number_of_threads(capsys, tmp_path):
    before = torch.get_num_threads()
    sphere = ["train", "--setting", "sphere", "--dim", "100", "--examples", "10", "--width", "1000"]
    try:
        for threads in ("1", "2"):
            out = str(tmp_path / f"{threads}.npz")
            assert main([*sphere, "--until", "loss=1e-3", "--threads", threads, "--out", out]) == 0
    finally:
        torch.set_num_threads(before)
    one, two = (load_network(tmp_path / f"{threads}.npz") for threads in ("1", "2"))
    assert torch.equal(one.W, two.W)
    assert torch.equal(one.v, two.v)


def test_too_large_a_rate_keeps_the_last_good_state(capsys, tmp_path):
    out = tmp_path / "net.npz"
    arguments = ["--regime", "descent", "--loss", "exponential", "--rate", "1e9", "--until", "steps=50"]
    assert main([*SMALL, *arguments, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert "rate 1e+09 is too large" in error
    assert str(tmp_path / "net.checkpoint.npz") in error
    assert bool(load_network(out).W.isfinite().all())


def test_ctrl_c_and_resume_end_in_the_same_network(tmp_path):
    """A run without an end, in a process of its own, is interrupted after its data are written, and goes on."""
    start = [*SMALL, "--seed", "1", "--out"]
    command = [sys.executable, "-m", "brittle", *start, str(tmp_path / "part.npz"), "--until", "log_loss=-1e12"]
    process = subprocess.Popen([*command, "--data-out", str(tmp_path / "data.npz")], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not (tmp_path / "data.npz").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    error = process.communicate()[1].decode()
    assert process.returncode == 130, error
    checkpoint = tmp_path / "part.checkpoint.npz"
    assert str(checkpoint) in error
    end = f"steps={int(np.load(checkpoint)['counters'][0]) + 50}"
    assert main([*start, str(tmp_path / "part.npz"), "--until", end, "--resume"]) == 0
    assert main([*start, str(tmp_path / "whole.npz"), "--until", end]) == 0
    part, whole = (load_network(tmp_path / name) for name in ("part.npz", "whole.npz"))
    assert torch.equal(part.W, whole.W)
    assert torch.equal(part.v, whole.v)
