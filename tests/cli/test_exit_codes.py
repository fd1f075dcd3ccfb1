"""How a command ends: 0 done, 1 a checked claim does not hold, 2 bad input in one line, 70 an error in brittle."""

import json
from pathlib import Path

import pytest

from brittle.attacks import MinimumNorm
from brittle.cli import main
from brittle.cli.console import Deliveries
from brittle.common.errors import InputError
from brittle.data import Data, Sphere, save_data
from brittle.networks import TorchLinearInit, save_network

FILES = ["net.npz", "--data", "data.npz"]
QUICK = ["--examples", "4", "--budget", "5", "--remedy", "none"]
TOO_LARGE = str(2**63)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, rng):
    """With a network that is right on its data."""
    monkeypatch.chdir(tmp_path)
    network, data = TorchLinearInit().draw(5, 6, rng), Sphere(5).sample(6, rng)
    save_network(network, "net.npz")
    save_data(Data(data.X, network.predict(data.X)), "data.npz")
    return tmp_path


def lines(capsys) -> list[str]:
    seen = capsys.readouterr()
    assert "Traceback" not in seen.err
    return seen.err.splitlines()


FULL, BUG = OSError(28, "No space left on device"), ZeroDivisionError("division by zero")


@pytest.mark.parametrize(
    ("failure", "command", "option", "writer"),
    [
        (FULL, ["audit", *FILES, *QUICK], ["--report", "a.html"], "brittle.report.audit_page.write_audit_page"),
        (BUG, ["audit", *FILES, *QUICK], ["--report", "a.html"], "brittle.report.audit_page.write_audit_page"),
        (FULL, ["audit", *FILES, *QUICK], ["--pictures", "p"], "brittle.report.audit_figures.write_audit_pictures"),
        (BUG, ["audit", *FILES, *QUICK], ["--summary", "s.md"], "brittle.report.words.write_summary"),
        (BUG, ["audit", *FILES, *QUICK], ["--proof", "p.npz"], "brittle.proving.prove"),
        (FULL, ["certify", *FILES], ["--plot", "a.png"], "brittle.report.plot.movement.draw_sandwich"),
        (BUG, ["certify", *FILES], ["--proof", "p.npz"], "brittle.proving.prove"),
        (BUG, ["reproduce", "vardi2022/fig2b", "--preset", "smoke"], ["--out", "r"], "brittle.report.figures.draw"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_a_page_that_fails_costs_no_numbers(folder, capsys, monkeypatch, failure, command, option, writer):
    def failing(*_, **__):
        assert writer == "brittle.report.figures.draw" or Path("a.json").exists()  # the numbers come first
        raise failure

    monkeypatch.setattr(writer, failing)
    assert main([*command, *option, "--json", "a.json"]) == (2 if isinstance(failure, OSError) else 70)
    assert len(json.loads((folder / "a.json").read_text())) > 2
    assert any(str(failure.args[-1]) in line for line in lines(capsys))


def test_what_else_fails_is_mentioned(capsys):
    deliveries, done = Deliveries(), []
    for each in (InputError("first"), None, ValueError("second")):
        deliveries(lambda each=each: done.append(1) if each is None else (_ for _ in ()).throw(each))
    with pytest.raises(InputError, match="first"):
        deliveries.finish()
    assert done == [1]
    assert lines(capsys) == ["brittle: ValueError: second"]


def test_an_error_that_nobody_foresaw_is_one_line(capsys, monkeypatch):
    def broken(*_, **__):
        raise IndexError("list index\nout of range")

    monkeypatch.delenv("BRITTLE_DEBUG", raising=False)
    monkeypatch.setattr(MinimumNorm, "run", broken)
    assert main(["certify", *FILES]) == 70
    line = "brittle: an error in brittle itself; BRITTLE_DEBUG=1 shows where: IndexError: list index out of range"
    assert lines(capsys) == [line]
    monkeypatch.setenv("BRITTLE_DEBUG", "1")
    assert main(["certify", *FILES]) == 70
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert shown.endswith("brittle: an error in brittle itself: IndexError: list index out of range\n")


@pytest.mark.parametrize(
    "command",
    [
        ["certify", *FILES, "--seed", TOO_LARGE],
        ["attack", *FILES, "--seed", TOO_LARGE],
        ["train", "--data", "data.npz", "--seed", TOO_LARGE],
        ["kkt", "--data", "data.npz", "--largest", "--seed", TOO_LARGE],
        ["figures", "--jobs", "9" * 400],
        ["certify", *FILES, "--jobs", "9" * 400],
        ["reproduce", "vardi2022/fig2b", "--jobs", "9" * 400],
    ],
    ids=lambda command: f"{command[0]} {command[-2]}",
)
def test_a_number_that_is_too_large_is_one_line(capsys, command):
    assert main(command) == 2
    (line,) = lines(capsys)
    assert f"{command[-2]} is '" in line
    assert "less than or equal to" in line


@pytest.mark.parametrize(
    ("command", "option", "name"),
    [
        (["certify", *FILES], "--json", "a.json"),
        (["certify", *FILES], "--keep", "a"),
        (["certify", *FILES], "--keep", "a/below"),
        (["audit", *FILES], "--pictures", "a"),
        (["audit", *FILES], "--report", "a.html"),
        (["data", "sample", "--setting", "sphere", "--dim", "4", "--examples", "2"], "--out", "a.npz"),
        (["check", "melamed2023/5.1", "--sweep", "dim=4"], "--latex", "a.tex"),
    ],
)
def test_a_link_to_itself_is_one_line(folder, capsys, command, option, name):
    link = folder / name.partition("/")[0]
    link.symlink_to(link.name)
    assert main([*command, option, name]) == 2
    assert lines(capsys) == [f"brittle: {name}: is a symbolic link that leads to itself; name another place"]


@pytest.mark.parametrize(
    "command",
    [
        ["certify", *FILES, "--seed", "v" * 5000],
        ["certify", f"--{'v' * 5000}"],
        ["certify", *FILES, "--method", "v" * 5000],
        ["certify", "net.npz", "--data", "v" * 5000],
        ["v" * 5000],
        ["data", "v" * 5000],
    ],
)
def test_a_long_value_is_shortened(capsys, command):
    assert main(command) == 2
    (line,) = lines(capsys)
    assert len(line) < 500
