"""Where a command is to write is looked at before it reads or computes anything, and a bad place costs one line."""

from pathlib import Path

import numpy as np
import pytest

from brittle.cli import main
from brittle.common.errors import InputError
from brittle.data import Sphere, save_data
from brittle.networks import TorchLinearInit, save_network

# The network and the data do not exist: whoever complains about them has begun to work.
FILES = ["net.npz", "--data", "data.npz"]
SPHERE = ["--setting", "sphere", "--dim", "5", "--examples", "4"]
NETWORKS, DATA, PICTURES = "net.npz", "data.npz", "a.png"
OPTIONS = [
    (["attack", *FILES], "--out", DATA),
    (["audit", *FILES], "--report", "a.html"),
    (["certify", *FILES], "--plot", PICTURES),
    (["data", "sample", *SPHERE], "--out", DATA),
    (["harden", *FILES, "--remedy", "max-margin"], "--out", NETWORKS),
    (["kkt", *FILES, "--solve"], "--out", NETWORKS),
    (["reproduce", "vardi2022/fig2b", "--preset", "smoke"], "--page", "a.md"),
    (["theorems"], "--markdown", "a.md"),
    (["train", *SPHERE], "--out", NETWORKS),
    (["train", *SPHERE], "--data-out", DATA),
    (["train", *SPHERE], "--checkpoint", "run.npz"),
]
EVERY = [
    *(command for command, _, _ in OPTIONS),
    ["check", "melamed2023/B.1"],
    ["data", "fetch", "mnist"],
    ["data", "list"],
    ["data", "show", "data.npz"],
    ["figures"],
    ["simulate", "vardi2022/4.1", "--dim", "100"],
]
PLACES = OPTIONS + [(command, "--json", "a.json") for command in {" ".join(each): each for each in EVERY}.values()]
FOLDERS = [
    (["audit", *FILES], "--pictures"),
    (["reproduce", "vardi2022/fig2b", "--preset", "smoke"], "--out"),
]


def named(value):
    return " ".join(value) if isinstance(value, list) else value


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, arguments):
    before = sorted(Path().rglob("*"))
    assert main(arguments) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1
    assert sorted(Path().rglob("*")) == before
    return seen.err


@pytest.mark.parametrize(("command", "option", "name"), PLACES, ids=named)
@pytest.mark.parametrize(
    ("place", "words"),
    [("absent/{}", "the folder absent does not exist"), ("{}", "is a folder"), ("/proc/{}", "cannot be written")],
    ids=["absent", "folder", "read-only"],
)
def test_a_file_that_cannot_be_written(capsys, command, option, name, place, words):
    if place == "{}":
        Path(name).mkdir()
    if place.startswith("/proc") and not Path("/proc/self").exists():
        pytest.skip("/proc is Linux's")
    error = refused(capsys, [*command, option, place.format(name)])
    assert words in error
    assert place.format(name) in error


@pytest.mark.parametrize(("command", "option"), FOLDERS, ids=named)
def test_a_folder_that_cannot_be_made(capsys, command, option):
    Path("file").write_text("")
    assert "file is not a folder" in refused(capsys, [*command, option, "file"])
    assert "file is not a folder" in refused(capsys, [*command, option, "file/below"])
    if Path("/proc/self").exists():
        assert "cannot be written" in refused(capsys, [*command, option, "/proc/below"])


SUFFIXES = [(command, option) for command, option, name in OPTIONS if name in (NETWORKS, DATA, PICTURES)]


@pytest.mark.parametrize(("command", "option"), SUFFIXES, ids=named)
@pytest.mark.parametrize("place", ["a.txt", "a", "."])
def test_a_wrong_suffix(capsys, command, option, place):
    error = refused(capsys, [*command, option, place])
    assert f"{option} is {place}" in error or "is a folder" in error


def test_two_options_that_name_one_file(capsys):
    error = refused(capsys, ["train", *SPHERE, "--out", "a.npz", "--data-out", "./a.npz"])
    assert "--out and --data-out" in error
    assert "a.npz" in error


def test_a_folder_that_the_run_makes_may_hold_its_other_files():
    command = ["reproduce", "vardi2022/fig2b", "--preset", "smoke", "--only", "alpha=0.5", "--jobs", "1"]
    assert main([*command, "--page", "new/page.md", "--json", "new/a.json", "--out", "new"]) == 0
    assert Path("new/page.md").exists()
    assert Path("new/a.json").exists()


def test_a_deep_network_does_not_fit_into_npz(capsys):
    arguments = ["train", *SPHERE, "--width", "4,3", "--regime", "descent", "--until", "steps=1", "--out", "a.npz"]
    assert "choose .pt or .safetensors" in refused(capsys, [*arguments, "--data-out", "data.npz"])


def test_a_checkpoint_is_not_put_in_place_of_something_else(capsys):
    np.savez("mine.npz", X=np.eye(2))
    arguments = ["train", *SPHERE, "--checkpoint", "mine.npz", "--data-out", "data.npz"]
    assert "mine.npz: is not a checkpoint of brittle" in refused(capsys, arguments)
    assert np.load("mine.npz")["X"].shape == (2, 2)


@pytest.fixture
def files(rng):
    network, data = TorchLinearInit().draw(5, 6, rng), Sphere(5).sample(4, rng)
    save_network(network, "net.npz")
    save_data(type(data)(data.X, network.predict(data.X)), "data.npz")


@pytest.mark.parametrize(
    ("command", "option", "writer"),
    [
        (["attack", *FILES], ["--out", "adv.npz"], "brittle.cli.attack.write_npz"),
        (["attack", *FILES], ["--json", "a.json"], "brittle.cli.console.write_json"),
        (["certify", *FILES], ["--plot", "a.png"], "brittle.report.plot.movement.draw_sandwich"),
        (
            ["audit", *FILES, "--remedy", "none", "--budget", "5"],
            ["--report", "a.html"],
            "brittle.report.audit_page.write_audit_page",
        ),
        (["data", "sample", *SPHERE], ["--out", "b.npz"], "brittle.data.save_data"),
    ],
)
def test_a_full_disk_does_not_cost_what_can_be_printed(files, capsys, monkeypatch, command, option, writer):
    def full(*_):
        raise InputError("a: cannot be written (No space left on device)")

    monkeypatch.setattr(writer, full)
    assert main([*command, *option]) == 2
    seen = capsys.readouterr()
    assert len(seen.out.splitlines()) > 3
    assert "No space left" in seen.err
